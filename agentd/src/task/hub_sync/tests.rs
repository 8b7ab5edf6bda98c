//! Tests of the exchange against a small hub.

use std::sync::Mutex;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use axum::routing::post;
use axum::{Json, Router};
use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::generation::Generation;
use jiff::Timestamp;
use rcgen::CertificateSigningRequestParams;
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[path = "../../../../tests/support/small_hub.rs"]
mod small_hub;

use self::small_hub::{Ca, ca, identity, serve, tls};
use super::*;
use crate::port::clock::RealClock;
use crate::task::stop;

/// The same host, as it knows itself.
fn own(identity: &Identity) -> holdfast_protocol::job::SeenHost {
    let fingerprint = "4f2a-9c01-77de-b3a8-0c11".parse().unwrap();
    holdfast_protocol::job::SeenHost { name: identity.enrolled.host_name.clone(), fingerprint }
}

/// Generous: the machine may be busy. Every wait below ends by what it waits for.
const PATIENCE: Duration = Duration::from_secs(20);

struct FakeHub {
    heard: mpsc::Sender<CheckinRequest>,
    document: Mutex<Option<String>>,
    /// Until when maintenance is announced.
    maintenance: Mutex<Option<Timestamp>>,
    /// Work orders that the host has not spoken of.
    orders: Mutex<Vec<Value>>,
    ca: Arc<Ca>,
    /// The CA that it changes to, and who signed its key.
    next_ca: Mutex<Option<NextCa>>,
    /// Requests of a host whose certificate is over, and whether an operator approved them.
    readmission: Mutex<(u32, bool)>,
}

struct NextCa {
    ca: Ca,
    cross_pem: String,
}

impl NextCa {
    fn signed_by(signer: &Ca) -> Self {
        let next = ca();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let cross_pem = params.signed_by(next.key(), &**signer).unwrap().pem();
        Self { ca: next, cross_pem }
    }

    fn pin(&self) -> Pin {
        Pin::of(holdfast_protocol::pin::PinKind::Leaf, self.ca.der())
    }
}

fn framed(data: &Value) -> Json<Value> {
    let id = uuid::Uuid::now_v7();
    Json(
        json!({"schema_version": "holdfast.envelope/v1", "request_id": id, "correlation_id": id, "data": data,
        "error": null, "metadata": {"timestamp": "2026-11-21T12:00:00Z"}}),
    )
}

async fn check_in(State(hub): State<Arc<FakeHub>>, uri: Uri, body: Bytes) -> Json<Value> {
    let is_held = uri.query() != Some("wait=0s");
    let request: CheckinRequest = serde_json::from_slice(&body).unwrap();
    let (sequence, held) = (request.sequence, request.held);
    hub.heard.send(request).await.unwrap();
    let document = hub.document.lock().unwrap().clone().filter(|_| held == Generation::NONE);
    let orders = hub.orders.lock().unwrap().clone();
    if document.is_none() && is_held && orders.is_empty() && hub.next_ca.lock().unwrap().is_none() {
        // Held open until the agent has something to say.
        std::future::pending::<()>().await;
    }
    let mut answer =
        json!({"acknowledged": sequence, "need": "changed", "poll_interval_s": 30, "desired": document});
    if !orders.is_empty() {
        answer["orders"] = json!(orders);
    }
    if let Some(until) = *hub.maintenance.lock().unwrap() {
        answer["maintenance"] = json!({ "until": until });
    }
    if let Some(next) = &*hub.next_ca.lock().unwrap() {
        answer["hub_ca"] = json!(next.pin());
    }
    framed(&answer)
}

async fn renew(State(hub): State<Arc<FakeHub>>, Json(ask): Json<RenewRequest>) -> Json<Value> {
    framed(&serde_json::to_value(issue(&hub, &ask.csr_pem)).unwrap())
}

fn issue(hub: &FakeHub, csr_pem: &str) -> Enrolled {
    let csr = CertificateSigningRequestParams::from_pem(csr_pem).unwrap();
    let next = hub.next_ca.lock().unwrap();
    let ca_pem = next.as_ref().map_or_else(|| hub.ca.pem(), |next| hub.ca.pem() + &next.ca.pem());
    Enrolled {
        certificate_pem: csr.signed_by(&**hub.ca).unwrap().pem(),
        ca_pem,
        ca_cross_pem: next.as_ref().map(|next| next.cross_pem.clone()),
        certificate_generation: 2,
        not_after: "2126-12-01T00:00:00Z".parse().unwrap(),
        ..identity("https://hub", &hub.ca, &hub.ca).enrolled
    }
}

/// As a hub answers a host whose certificate is over.
async fn request_enrollment(State(hub): State<Arc<FakeHub>>, Json(ask): Json<Value>) -> Json<Value> {
    let mut readmission = hub.readmission.lock().unwrap();
    readmission.0 += 1;
    if readmission.1 {
        let csr_pem = ask["csr_pem"].as_str().unwrap();
        return framed(&json!({ "approved": issue(&hub, csr_pem) }));
    }
    let pin = Pin::of(holdfast_protocol::pin::PinKind::Spki, b"what the hub says");
    framed(&json!({ "pending": { "request": uuid::Uuid::nil(), "fingerprint": pin, "retry_after_s": 30 } }))
}

struct World {
    store: Store,
    heard: mpsc::Receiver<CheckinRequest>,
    sections: watch::Sender<Arc<Sections>>,
    contact: watch::Receiver<Contact>,
    sync: Option<HubSync>,
    hub: Arc<FakeHub>,
    dir: tempfile::TempDir,
}

async fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let store = Store::open(dir.path(), clock.now()).unwrap();
    let ca = Arc::new(ca());
    let (heard_tx, heard) = mpsc::channel(16);
    let hub = Arc::new(FakeHub {
        heard: heard_tx,
        document: Mutex::new(None),
        maintenance: Mutex::new(None),
        orders: Mutex::new(Vec::new()),
        ca: Arc::clone(&ca),
        next_ca: Mutex::new(None),
        readmission: Mutex::new((0, false)),
    });
    let router = Router::new()
        .route("/v1/agent/checkin", post(check_in))
        .route("/v1/renew", post(renew))
        .with_state(Arc::clone(&hub));
    let base = serve(tls(&ca, &ca, Some(&ca)), router).await;
    let mut identity = identity(&base, &ca, &ca);
    identity.enrolled.not_after = "2126-12-01T00:00:00Z".parse().unwrap();
    let (sections, sections_rx) = watch::channel(Arc::new(Sections::default()));
    let ends_at = identity.enrolled.not_after;
    let start = Contact { reached_at: None, problem: None, certificate_ends_at: ends_at };
    let (contact_tx, contact) = watch::channel(start);
    let sync = HubSync {
        folder: IdentityFolder::open(dir.path()).unwrap(),
        own: own(&identity),
        identity,
        handed: HandOverFolder::of(dir.path()),
        store: store.clone(),
        sections: sections_rx,
        usage: Default::default(),
        contact: contact_tx,
        clock,
        dial: Arc::new(Hub::enrolled),
        dial_without: Arc::new(Hub::without_certificate),
        failpoints: Arc::new(crate::execute::failpoint::Nowhere),
        spread: crate::port::backoff::spread,
    };
    World { store, heard, sections, contact, sync: Some(sync), hub, dir }
}

fn document(generation: u64) -> String {
    format!(
        r#"{{"schema":"holdfast.desired/v1","generation":{generation},"poll_interval_s":30,"guests":[]}}"#
    )
}

async fn next(heard: &mut mpsc::Receiver<CheckinRequest>) -> CheckinRequest {
    tokio::time::timeout(PATIENCE, heard.recv()).await.expect("a check-in in time").unwrap()
}

#[tokio::test]
async fn a_document_is_taken_a_change_is_reported_and_a_stop_says_goodbye() {
    let mut world = world().await;
    *world.hub.document.lock().unwrap() = Some(document(3));
    let (stopper, stop) = stop::pair();
    let sync = world.sync.take().unwrap();
    let story = async {
        let first = next(&mut world.heard).await;
        assert_eq!((first.sequence, first.coverage, first.held), (1, Coverage::Full, Generation::NONE));
        let second = next(&mut world.heard).await;
        assert_eq!((second.coverage, second.held.number()), (Coverage::Changed, 3));
        assert!(second.sections.guests.is_none(), "nothing of the guests has changed");
        let held = next(&mut world.heard).await;
        assert!(held.sections.is_empty(), "all is told: this one is held open");
        // The hub holds it open; a change does not wait for it.
        world.sections.send_replace(Arc::new(Sections { guests: Some(Vec::new()), ..Sections::default() }));
        let third = next(&mut world.heard).await;
        assert!(third.sections.guests.is_some());
        next(&mut world.heard).await;
        stopper.stop();
        let last = next(&mut world.heard).await;
        assert_eq!(last.coverage, Coverage::Farewell);
        assert!(last.sequence > third.sequence);
    };
    tokio::join!(sync.run(stop), story);
    assert_eq!(world.store.desired_section().await.unwrap().held.number(), 3);
    assert!(world.contact.borrow().reached_at.is_some());
}

/// It begins once it is known what runs, and ends when the hub does not announce it any more.
#[tokio::test]
async fn announced_maintenance_is_kept_with_what_ran_and_ended() {
    let mut world = world().await;
    let until = RealClock::start().now() + jiff::SignedDuration::from_hours(1);
    *world.hub.maintenance.lock().unwrap() = Some(until);
    let (stopper, stop) = stop::pair();
    let sync = world.sync.take().unwrap();
    let store = world.store.clone();
    let mut changes = store.changes();
    let story = async {
        next(&mut world.heard).await;
        assert_eq!(store.host_maintenance().await.unwrap(), None, "nothing was observed yet");
        let guest = json!({ "uid": uuid::Uuid::from_u128(1), "name": "web-1", "status": "managed", "run": "running" });
        let sections =
            Sections { guests: Some(vec![serde_json::from_value(guest).unwrap()]), ..Sections::default() };
        world.sections.send_replace(Arc::new(sections.clone()));
        changes.wait_for(|changes| changes.answers == 1).await.unwrap();
        let kept = store.host_maintenance().await.unwrap().unwrap();
        assert_eq!((kept.guests.len(), kept.announced_until, kept.ended_at), (1, until, None));
        *world.hub.maintenance.lock().unwrap() = None;
        world.sections.send_replace(Arc::new(Sections { waiting: Some(Vec::new()), ..sections }));
        changes.wait_for(|changes| changes.answers == 2).await.unwrap();
        assert!(store.host_maintenance().await.unwrap().unwrap().ended_at.is_some());
        world.heard.close();
        stopper.stop();
    };
    tokio::time::timeout(PATIENCE * 3, async { tokio::join!(Box::pin(sync.run(stop)), story) })
        .await
        .expect("in time");
}

/// Taken once, however often the hub repeats it; its text goes until the hub has it.
#[tokio::test]
async fn an_order_is_taken_once_and_its_text_goes_once() {
    use holdfast_protocol::work_order::{DiagnosticName, OrderResult};
    let mut world = world().await;
    let id = uuid::Uuid::from_u128(5);
    let text = r#"{"act":{"kind":"collect_diagnostics","name":"locks"},"expires_at":"2126-12-01T00:00:00Z"}"#;
    world.hub.orders.lock().unwrap().push(json!({ "id": id, "call": "carry_out", "text": text }));
    let (stopper, stop) = stop::pair();
    let sync = world.sync.take().unwrap();
    let store = world.store.clone();
    let mut changes = store.changes();
    let story = async {
        changes.wait_for(|changes| changes.requests == 1).await.unwrap();
        next(&mut world.heard).await;
        let again = next(&mut world.heard).await;
        assert!(again.diagnostic.is_none(), "nothing was read yet");
        assert_eq!(store.open_readings().await.unwrap().len(), 1, "the repeat is the same order");
        world.hub.orders.lock().unwrap().clear();
        let result = OrderResult::Diagnostics { name: DiagnosticName::Locks, bytes: 8 };
        let outcome = Ok((result, Some("no locks".to_owned())));
        store
            .settle_reading(id.to_string().parse().unwrap(), outcome, RealClock::start().now())
            .await
            .unwrap();
        world.sections.send_replace(Arc::new(Sections { guests: Some(Vec::new()), ..Sections::default() }));
        let mut sent = next(&mut world.heard).await;
        while sent.diagnostic.is_none() {
            sent = next(&mut world.heard).await;
        }
        assert_eq!(sent.diagnostic.unwrap().text, "no locks");
        // The one after it comes once the answer was heard.
        let after = next(&mut world.heard).await;
        assert!(after.diagnostic.is_none());
        assert_eq!(store.waiting_text().await.unwrap(), None);
        world.heard.close();
        stopper.stop();
    };
    let both = Box::pin(async { tokio::join!(sync.run(stop), story) });
    tokio::time::timeout(PATIENCE * 3, both).await.expect("in time");
}

#[tokio::test]
async fn a_refused_document_is_reported_at_once_and_not_asked_for_again() {
    let mut world = world().await;
    *world.hub.document.lock().unwrap() = Some(document(3).replace("guests", "guestz"));
    let (stopper, stop) = stop::pair();
    let sync = world.sync.take().unwrap();
    let (sections, store) = (world.sections.clone(), world.store.clone());
    let story = async {
        next(&mut world.heard).await;
        // As the report's loop does it: each change in the store that must be reported wakes the hub's loop.
        let mut changes = store.changes();
        changes.wait_for(|changes| changes.desired > 0).await.unwrap();
        sections.send_replace(Arc::new(Sections { waiting: Some(Vec::new()), ..Sections::default() }));
        let second = next(&mut world.heard).await;
        let refused = second.sections.desired.unwrap().refused.unwrap();
        assert_eq!(
            (refused.generation.unwrap().number(), refused.problem.code),
            (3, ErrorCode::UnknownField)
        );
        stopper.stop();
    };
    let ends = async {
        tokio::join!(sync.run(stop), story);
    };
    tokio::time::timeout(PATIENCE * 3, ends).await.expect("ended in time");
    assert_eq!(world.store.desired_section().await.unwrap().held, Generation::NONE);
}

#[tokio::test]
async fn a_hub_that_is_away_is_said_to_be_away() {
    let mut world = world().await;
    let mut sync = world.sync.take().unwrap();
    sync.identity.hub = "https://127.0.0.1:1".to_owned();
    let (stopper, stop) = stop::pair();
    let story = async {
        let reported = world.contact.wait_for(|contact| contact.problem.is_some());
        let reported = tokio::time::timeout(PATIENCE, reported).await.unwrap().unwrap().clone();
        assert_eq!((reported.problem.unwrap().code, reported.reached_at), (ErrorCode::Unavailable, None));
        stopper.stop();
    };
    tokio::join!(sync.run(stop), story);
}

#[tokio::test]
async fn an_old_certificate_is_renewed_and_the_new_one_kept() {
    let mut world = world().await;
    *world.hub.document.lock().unwrap() = Some(document(3));
    let mut sync = world.sync.take().unwrap();
    sync.identity.enrolled.not_before = "2020-01-01T00:00:00Z".parse().unwrap();
    sync.identity.enrolled.not_after = "2021-01-01T00:00:00Z".parse().unwrap();
    let folder = IdentityFolder::open(world.dir.path()).unwrap();
    let (stopper, stop) = stop::pair();
    let story = async {
        next(&mut world.heard).await;
        // The second check-in comes with the new certificate, after it was kept.
        next(&mut world.heard).await;
        assert_eq!(folder.read().unwrap().unwrap().enrolled.certificate_generation, 2);
        stopper.stop();
    };
    tokio::join!(sync.run(stop), story);
}

/// The rounds of the exchange until `folder` holds an identity with so many CAs.
async fn until_cas(heard: &mut mpsc::Receiver<CheckinRequest>, folder: &IdentityFolder, count: usize) {
    loop {
        next(heard).await;
        let identity = folder.read().unwrap();
        if identity.is_some_and(|identity| hub_ca::pins(&identity.enrolled.ca_pem).len() == count) {
            return;
        }
    }
}

#[tokio::test]
async fn a_new_ca_of_the_hub_is_taken_with_the_next_renewal_and_only_with_its_proof() {
    let mut world = world().await;
    let signed = NextCa::signed_by(&world.hub.ca);
    let (new, old) = (signed.pin(), hub_ca::pins(&world.hub.ca.pem()));
    *world.hub.next_ca.lock().unwrap() = Some(signed);
    let sync = world.sync.take().unwrap();
    let folder = IdentityFolder::open(world.dir.path()).unwrap();
    let (stopper, stop) = stop::pair();
    let story = async {
        until_cas(&mut world.heard, &folder, 2).await;
        world.heard.close();
        stopper.stop();
    };
    tokio::join!(sync.run(stop), story);
    let kept = folder.read().unwrap().unwrap();
    assert_eq!(hub_ca::pins(&kept.enrolled.ca_pem), [old[0], new]);
    assert_eq!(kept.learned_cas.iter().map(|ca| ca.pin).collect::<Vec<_>>(), [new]);
    assert_eq!(kept.enrolled.ca_cross_pem, None, "the proof is not kept");
    // A client of both CAs is made of it.
    assert!(Hub::enrolled(&kept).is_ok());
}

#[tokio::test]
async fn a_new_ca_that_the_old_one_did_not_sign_changes_nothing() {
    let mut world = world().await;
    *world.hub.next_ca.lock().unwrap() = Some(NextCa::signed_by(&ca()));
    let sync = world.sync.take().unwrap();
    let before = sync.identity.enrolled.ca_pem.clone();
    let folder = IdentityFolder::open(world.dir.path()).unwrap();
    let (stopper, stop) = stop::pair();
    let story = async {
        next(&mut world.heard).await;
        next(&mut world.heard).await;
        world.heard.close();
        stopper.stop();
    };
    tokio::join!(sync.run(stop), story);
    assert!(folder.read().unwrap().is_none(), "no other identity was written");
    assert_eq!(hub_ca::pins(&before).len(), 1);
    assert!(folder.pending(Purpose::Renewal).is_ok(), "the key of the renewal stays for the next try");
}

/// The hub requires a certificate of a CA that the agent's is not of, as after a change that it missed.
#[tokio::test]
async fn a_host_with_an_ended_certificate_asks_with_its_key_and_goes_on_when_approved() {
    let mut world = world().await;
    let router = Router::new()
        .route("/v1/enrollment-requests", post(request_enrollment))
        .with_state(Arc::clone(&world.hub));
    let open = serve(tls(&world.hub.ca, &world.hub.ca, None), router).await;
    let mut sync = world.sync.take().unwrap();
    let stranger = identity(&sync.identity.hub, &world.hub.ca, &ca());
    sync.identity.key_pem = stranger.key_pem;
    sync.identity.enrolled.certificate_pem = stranger.enrolled.certificate_pem;
    let own = sync.identity.held_key().unwrap().fingerprint();
    sync.dial_without = Arc::new(move |identity| {
        Hub::without_certificate(&Identity { hub: open.clone(), ..identity.clone() })
    });
    sync.spread = || 0;
    let folder = IdentityFolder::open(world.dir.path()).unwrap();
    let (stopper, stop) = stop::pair();
    let story = async {
        let problem = world.contact.wait_for(|contact| contact.problem.is_some());
        let problem =
            tokio::time::timeout(PATIENCE, problem).await.unwrap().unwrap().problem.clone().unwrap();
        assert_eq!(problem.code, ErrorCode::Certificate);
        assert!(problem.message.contains(&format!("--fingerprint {own} --returns")), "{}", problem.message);
        world.hub.readmission.lock().unwrap().1 = true;
        // The next certificate is good: the hub is heard again.
        next(&mut world.heard).await;
        world.heard.close();
        stopper.stop();
    };
    tokio::join!(sync.run(stop), story);
    let kept = folder.read().unwrap().unwrap();
    assert_eq!(kept.enrolled.certificate_generation, 2);
    assert_eq!(kept.held_key().unwrap().fingerprint(), own, "the key is the same");
    assert!(world.hub.readmission.lock().unwrap().0 >= 2);
}
