//! Tests of the calls against a real store.

mod audit;
mod desired;
mod due_backups;
mod fuzz;
mod holders;
mod openapi;
mod queries;
mod scratch_api;
mod unseen;
mod windows;
mod work;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use holdfast_protocol::bootstrap::Bootstrap;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::{HelloAnswer, MountState, SelfView, StorageView};
use holdfast_protocol::operation::{OperationStatus, OperationView};
use holdfast_protocol::pin::PinKind;
use holdfast_protocol::secret::Secret;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::json;
use tower::ServiceExt;
use uuid::Uuid;

use super::*;
use crate::model::boot::{BootId, BootMoment};
use crate::model::policy::VmidRange;
use crate::model::records::VolumeId;
use crate::operation::log::Event;
use crate::operation::{Image, Operation, Provision, Source, VmidRequest};
use crate::port::clock::Pause;
use crate::port::store::journal::NewOperation;

const WEB: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
const DB: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000002";
const WEB_AT: [u8; 4] = [10, 66, 0, 91];
const DB_AT: [u8; 4] = [10, 66, 0, 92];

/// Does not advance until it is moved, and records how long it was asked to wait.
struct TestClock {
    now: std::sync::Mutex<Timestamp>,
    waits: std::sync::Mutex<Vec<Duration>>,
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }
    fn monotonic(&self) -> Duration {
        Duration::try_from(self.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap()
    }
    fn boot_moment(&self) -> BootMoment {
        let ms = u64::try_from(self.monotonic().as_millis()).unwrap();
        BootMoment { boot: BootId::parse("boot-1").unwrap(), ms }
    }
    fn sleep(&self, pause: Duration) -> Pause<'_> {
        self.waits.lock().unwrap().push(pause);
        Box::pin(tokio::time::sleep(pause))
    }
    fn synchrony(&self) -> crate::port::clock::SyncQuery<'_> {
        Box::pin(async { crate::model::clock_trust::Synchrony::Kept })
    }
}

struct World {
    store: Store,
    clock: Arc<TestClock>,
    router: Router,
    /// The listener of scratch guests.
    tests: Router,
    /// Where Proxmox has the first guest, when it answers.
    web_at: Arc<std::sync::Mutex<Option<IpAddr>>>,
    /// What the agent has seen; at first nothing.
    view: watch::Sender<Arc<HostSnapshot>>,
    _dir: tempfile::TempDir,
}

struct Answer {
    status: StatusCode,
    body: Vec<u8>,
    retry_after: Option<String>,
    allow: Option<String>,
}

impl Answer {
    fn code(&self) -> Option<ErrorCode> {
        serde_json::from_slice::<Envelope<serde_json::Value>>(&self.body).unwrap().error.map(|p| p.code)
    }
    fn data<T: DeserializeOwned>(&self) -> T {
        let envelope: Envelope<T> = serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)));
        envelope.data.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&self.body)))
    }
}

fn desired() -> Desired {
    document(1, "10.66.0.91/24")
}

fn document(generation: u64, web_at: &str) -> Desired {
    let guest = |uid: &str, name: &str, address: &str| {
        json!({"uid": uid, "name": name, "customer": "acme", "run": "running", "golden": "2026.11.1",
            "size": {"cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 4},
            "network": {"bridge": "vmbr1", "address": address},
            "volumes": [{"name": "data", "mount": "/data", "size_gib": 2, "kind": "hot"}]})
    };
    let document = json!({"schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30,
        "guests": [guest(WEB, "web", web_at), guest(DB, "db", "10.66.0.92/24")]});
    Desired::parse(document.to_string().as_bytes()).unwrap()
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock {
            now: std::sync::Mutex::new("2026-11-21T12:00:00Z".parse().unwrap()),
            waits: std::sync::Mutex::default(),
        });
        let store = Store::open(dir.path(), clock.now()).unwrap();
        store.offer_desired(desired(), clock.now()).await.unwrap();
        let (seen, view) = watch::channel(Arc::new(HostSnapshot::default()));
        let pin = Pin::of(PinKind::Leaf, b"leaf");
        let as_clock: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let web_at = Arc::new(std::sync::Mutex::new(None));
        let asked = Arc::clone(&web_at);
        let addresses = GuestAddresses::reported(move |_| *asked.lock().unwrap(), Arc::clone(&as_clock));
        let local = Local::new(
            store.clone(),
            as_clock,
            view,
            ApiSettings {
                pin,
                hub: "https://hub.example".to_owned(),
                quiesce_bound: QuiesceBound::usual(),
                test_guest: Some(IpAddr::from(scratch_api::AT)),
                artifacts: Artifacts::of(dir.path()),
            },
            addresses,
        );
        let tests = routes::test_router(Arc::clone(&local));
        Self { store, clock, router: routes::router(local), tests, web_at, view: seen, _dir: dir }
    }

    fn pass(&self, seconds: i64) {
        let mut now = self.clock.now.lock().unwrap();
        *now += jiff::SignedDuration::from_secs(seconds);
    }

    /// Opens a provision, which makes the guest known, and sets a claim.
    async fn provision(&self, index: usize) -> (OperationId, Secret) {
        let guest = desired().guests()[index].clone();
        let uid = guest.uid;
        let id = OperationId::new(Uuid::now_v7());
        let provision = Provision {
            volume_storages: Vec::new(),
            guest,
            number: VmidRequest::AnyOf {
                range: VmidRange::try_from([100.try_into().unwrap(), 199.try_into().unwrap()]).unwrap(),
                except: Vec::new(),
            },
            source: Source::Image(Image {
                archive: VolumeId::new("local:backup/golden.tar.zst"),
                sha256: "a".repeat(64).try_into().unwrap(),
                file: "/golden".into(),
            }),
            pool: "holdfast".parse().unwrap(),
            storage: "local".parse().unwrap(),
            bulk_storage: None,
            backup_storage: None,
        };
        let new = NewOperation {
            id,
            operation: Operation::Provision(Box::new(provision)),
            generation: Generation::new(1),
            reason: "test".to_owned(),
            at: self.clock.now(),
        };
        self.store.open_operation(new).await.unwrap();
        let claim = Secret::new(format!("claim-{uid}-{}", Uuid::now_v7()));
        let until = self.clock.now() + jiff::SignedDuration::from_secs(600);
        self.store.mint_claim(uid, claim.hash(), until, self.clock.now()).await.unwrap();
        (id, claim)
    }

    async fn send(&self, from: [u8; 4], request: Request<Body>) -> Answer {
        Self::sent(&self.router, from, request).await
    }

    async fn sent(router: &Router, from: [u8; 4], request: Request<Body>) -> Answer {
        let mut request = request;
        let to = SocketAddr::from(([10, 66, 0, 1], 8443));
        request.headers_mut().entry("host").or_insert(to.to_string().parse().unwrap());
        request.extensions_mut().insert(Peer { from: IpAddr::from(from), to });
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let header =
            |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (retry_after, allow) = (header("retry-after"), header("allow"));
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec();
        Answer { status, body, retry_after, allow }
    }

    async fn get(&self, from: [u8; 4], path: &str, token: Option<&str>) -> Answer {
        let mut request = Request::get(path).header("x-request-id", Uuid::nil().to_string());
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.send(from, request.body(Body::empty()).unwrap()).await
    }

    async fn claim(&self, from: [u8; 4], claim: &Secret, redeemer: Option<&str>) -> Answer {
        let body = match redeemer {
            Some(proof) => json!({"claim": claim.expose(), "redeemer": proof}),
            None => json!({"claim": claim.expose()}),
        };
        self.send(from, Request::post("/v1/claim").body(Body::from(body.to_string())).unwrap()).await
    }

    async fn token(&self, index: usize, from: [u8; 4]) -> String {
        let (_, claim) = self.provision(index).await;
        let bootstrap: Bootstrap = self.claim(from, &claim, None).await.data();
        bootstrap.token.expose().to_owned()
    }
}

#[tokio::test]
async fn a_new_guest_claims_says_hello_and_learns_who_it_is() {
    let world = World::new().await;
    let (_, claim) = world.provision(0).await;
    let bootstrap: Bootstrap = world.claim(WEB_AT, &claim, None).await.data();
    assert_eq!(bootstrap.guest.to_string(), WEB);
    assert_eq!((bootstrap.endpoint.as_str(), bootstrap.token_generation), ("https://10.66.0.1:8443", 1));
    let token = bootstrap.token.expose().to_owned();

    let hello = json!({"version": "0.1.0", "health": "well", "boot_id": "b-1"}).to_string();
    let request = Request::post("/v1/hello").header("authorization", format!("Bearer {token}"));
    let answer = world.send(WEB_AT, request.body(Body::from(hello)).unwrap()).await;
    assert_eq!(answer.data::<HelloAnswer>().again_in_s, 60);
    let record = world.store.guest(bootstrap.guest).await.unwrap().unwrap();
    assert_eq!(record.hello.unwrap().boot_id, "b-1");

    let view: SelfView = world.get(WEB_AT, "/v1/self", Some(&token)).await.data();
    assert_eq!((view.name.as_str(), view.limits), ("web", LIMITS));
    let storage: StorageView = world.get(WEB_AT, "/v1/storage", Some(&token)).await.data();
    assert_eq!((storage.volumes[0].mount.as_str(), storage.volumes[0].state), ("/data", MountState::Unknown));
    for (paths, state) in [(vec![], MountState::Desired), (vec!["/data".to_owned()], MountState::Attached)] {
        let mounts = [(bootstrap.guest, paths.into_iter().collect())].into();
        world.view.send_replace(Arc::new(HostSnapshot { mounts, ..HostSnapshot::default() }));
        let storage: StorageView = world.get(WEB_AT, "/v1/storage", Some(&token)).await.data();
        assert_eq!(storage.volumes[0].state, state);
    }
    assert_eq!(view.golden_age, None, "the host was not observed yet");
    let built_at = world.clock.now() - jiff::SignedDuration::from_hours(50);
    let seen = json!({ "uid": bootstrap.guest, "name": "web", "vmid": 100, "status": "managed", "run": "running",
        "golden": "2026.11.1", "golden_built_at": built_at });
    let guests = vec![serde_json::from_value(seen).unwrap()];
    world.view.send_replace(Arc::new(HostSnapshot { guests, ..HostSnapshot::default() }));
    let view: SelfView = world.get(WEB_AT, "/v1/self", Some(&token)).await.data();
    let age = view.golden_age.unwrap();
    assert_eq!((age.built_at, age.days), (built_at, 2));
}

#[tokio::test]
async fn no_one_learns_why_a_token_is_not_accepted() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let none = world.get(WEB_AT, "/v1/self", None).await;
    let unknown = world.get(WEB_AT, "/v1/self", Some("made-up")).await;
    let elsewhere = world.get(DB_AT, "/v1/self", Some(&token)).await;
    let empty = world.get(WEB_AT, "/v1/self", Some("")).await;
    for answer in [&none, &unknown, &elsewhere, &empty] {
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(answer.body, none.body);
    }
    let twice = Request::get("/v1/self")
        .header("x-request-id", Uuid::nil().to_string())
        .header("authorization", format!("Bearer {token}"))
        .header("authorization", format!("Bearer {token}"));
    assert_eq!(world.send(WEB_AT, twice.body(Body::empty()).unwrap()).await.body, none.body);
}

#[tokio::test]
async fn a_claim_serves_once_in_time_and_from_its_guest_alone() {
    let world = World::new().await;
    let (_, claim) = world.provision(0).await;
    // From another address: refused, and not used up.
    assert_eq!(world.claim(DB_AT, &claim, None).await.code(), Some(ErrorCode::ClaimRefused));
    let unknown = Secret::new("no-such-claim-at-all".to_owned());
    assert_eq!(world.claim(WEB_AT, &unknown, None).await.code(), Some(ErrorCode::ClaimRefused));
    world.pass(601);
    assert_eq!(world.claim(WEB_AT, &claim, None).await.code(), Some(ErrorCode::ClaimRefused));
    assert!(
        world.store.guest(WEB.parse().unwrap()).await.unwrap().unwrap().access
            == crate::model::records::Access::Open
    );
}

#[tokio::test]
async fn a_lost_answer_is_repeated_for_the_same_redeemer_alone() {
    let world = World::new().await;
    let (_, claim) = world.provision(0).await;
    let first: Bootstrap = world.claim(WEB_AT, &claim, Some("proof-of-the-guest")).await.data();
    let second: Bootstrap = world.claim(WEB_AT, &claim, Some("proof-of-the-guest")).await.data();
    let stale = world.get(WEB_AT, "/v1/self", Some(first.token.expose())).await;
    assert_eq!(stale.status, StatusCode::UNAUTHORIZED, "the unseen token is worth nothing");
    let fresh = world.get(WEB_AT, "/v1/self", Some(second.token.expose())).await;
    assert_eq!(fresh.status, StatusCode::OK);

    let other = world.claim(WEB_AT, &claim, Some("proof-of-another")).await;
    assert_eq!(other.code(), Some(ErrorCode::ClaimTwice));
    let frozen = world.get(WEB_AT, "/v1/self", Some(second.token.expose())).await;
    assert_eq!(frozen.code(), Some(ErrorCode::Frozen), "the first redeemer is frozen too");
}

#[tokio::test]
async fn a_body_is_bounded_and_strict() {
    let world = World::new().await;
    let cases = [
        (Body::from("x".repeat(16 * 1024 + 1)), ErrorCode::Size),
        (Body::from("{"), ErrorCode::Syntax),
        (Body::from(r#"{"claim":"0123456789abcdef","guest":"other"}"#), ErrorCode::UnknownField),
        (Body::from("{}"), ErrorCode::Missing),
    ];
    for (body, code) in cases {
        let answer = world.send(WEB_AT, Request::post("/v1/claim").body(body).unwrap()).await;
        assert_eq!(answer.code(), Some(code));
    }
}

#[tokio::test]
async fn an_operation_is_its_own_guests_alone() {
    let world = World::new().await;
    let token = world.token(0, WEB_AT).await;
    let (others, _) = world.provision(1).await;
    let answer = world.get(WEB_AT, &format!("/v1/operations/{others}"), Some(&token)).await;
    assert_eq!((answer.status, answer.code()), (StatusCode::FORBIDDEN, Some(ErrorCode::NotYours)));
    for (path, code) in [
        (format!("/v1/operations/{}", Uuid::now_v7()), ErrorCode::NotFound),
        ("/v1/operations/17".to_owned(), ErrorCode::NotFound),
        (format!("/v1/operations/{others}?wait=1h"), ErrorCode::Range),
        (format!("/v1/operations/{others}?guest=1"), ErrorCode::Range),
        ("/v1/unknown".to_owned(), ErrorCode::NotFound),
        ("/v1/claim".to_owned(), ErrorCode::MethodNotAllowed),
    ] {
        assert_eq!(world.get(WEB_AT, &path, Some(&token)).await.code(), Some(code), "{path}");
    }
}

#[tokio::test]
async fn a_waiting_look_returns_when_the_operation_moves() {
    let world = World::new().await;
    let (id, claim) = world.provision(0).await;
    let token: Bootstrap = world.claim(WEB_AT, &claim, None).await.data();
    let path = format!("/v1/operations/{id}?wait=30s");
    // The reads of the wait itself queue in the store between these writes, so some writes come after its first read.
    let moved = async {
        let mut progress = world.store.operation(id).await.unwrap().unwrap();
        let steps = u16::try_from(progress.steps().len()).unwrap();
        let each =
            |step| [Event::Intended { step }, Event::Succeeded { step, facts: Vec::new(), note: None }];
        for event in std::iter::once(Event::Begun).chain((0..steps).flat_map(each)) {
            progress = world.store.append(&progress, event, world.clock.now()).await.unwrap();
        }
    };
    let both = async { tokio::join!(world.get(WEB_AT, &path, Some(token.token.expose())), moved).0 };
    let answer = tokio::time::timeout(Duration::from_secs(10), both).await.expect("woken by the change");
    assert_eq!(answer.data::<OperationView>().id, id);
    let path = format!("/v1/operations/{id}");
    let view: OperationView = world.get(WEB_AT, &path, Some(token.token.expose())).await.data();
    assert_eq!(view.status, OperationStatus::Running);
}

#[tokio::test]
async fn one_guest_that_asks_too_often_slows_no_other() {
    let world = World::new().await;
    let (loud, quiet) = (world.token(0, WEB_AT).await, world.token(1, DB_AT).await);
    for _ in 0..REQUESTS_PER_MINUTE {
        assert_eq!(world.get(WEB_AT, "/v1/self", Some(&loud)).await.status, StatusCode::OK);
    }
    assert!(world.clock.waits.lock().unwrap().is_empty());
    let refused = world.get(WEB_AT, "/v1/self", Some(&loud)).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.retry_after.as_deref(), Some("1"));
    // Refused a moment later, so that a guest that calls again as soon as it is answered causes no flood.
    assert_eq!(*world.clock.waits.lock().unwrap(), [Duration::from_millis(200)]);
    assert_eq!(world.get(DB_AT, "/v1/self", Some(&quiet)).await.status, StatusCode::OK);
    // Without a token the address counts: its claim, and all calls with the token.
    for _ in REQUESTS_PER_MINUTE + 2..ADDRESS_REQUESTS_PER_MINUTE {
        assert_eq!(world.get(WEB_AT, "/v1/self", None).await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(world.get(WEB_AT, "/v1/self", None).await.status, StatusCode::TOO_MANY_REQUESTS);
    world.pass(60);
    assert_eq!(world.get(WEB_AT, "/v1/self", Some(&loud)).await.status, StatusCode::OK);
}
