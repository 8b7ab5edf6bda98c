//! A listener with two guests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentd::api::{ApiSettings, Local, routes};
use agentd::model::boot::{BootId, BootMoment};
use agentd::model::clock_trust::Synchrony;
use agentd::model::policy::QuiesceBound;
use agentd::model::view::HostSnapshot;
use agentd::port::artifacts::Artifacts;
use agentd::port::clock::{Clock, Pause, SyncQuery};
use agentd::port::guest_address::GuestAddresses;
use agentd::port::local_tls::LocalLeaf;
use agentd::port::store::Store;
use agentd::port::store::token_holder::Thawed;
use agentd::task::local_api::guests::{KnownAddresses, Member};
use agentd::task::local_api::{self, Listeners, Serving};
use agentd::task::stop::{self, Stopper};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use holdfast_protocol::bootstrap::Bootstrap;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::pin::PinSet;
use holdfast_protocol::secret::Secret;
use jiff::{SignedDuration, Timestamp};
use net::tls::Trust;
use rusqlite::Connection;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::local_api::wire::{Answer, HeadAlone, Wire};
use crate::rows::{Row, rows};

pub const WEB: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
pub const DB: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000002";
pub const WEB_AT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 66, 7, 91));
pub const DB_AT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 66, 7, 92));

/// The wall clock does not advance, so that answers to one request are the same bytes; the other leaps, so that no
/// bucket is empty.
struct LeapingClock(AtomicU64);

impl Clock for LeapingClock {
    fn now(&self) -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }
    fn monotonic(&self) -> Duration {
        Duration::from_secs(30 * self.0.fetch_add(1, Ordering::Relaxed))
    }
    fn boot_moment(&self) -> BootMoment {
        BootMoment { boot: BootId::parse("boot-1").unwrap(), ms: 0 }
    }
    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }
    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(async { Synchrony::Kept })
    }
}

pub struct World {
    pub store: Store,
    pub address: SocketAddr,
    /// The tokens of the two.
    pub web: String,
    pub db: String,
    calls: Arc<AtomicU64>,
    pin: holdfast_protocol::pin::Pin,
    connector: TlsConnector,
    kept: tokio::sync::Mutex<Option<Wire>>,
    stopper: Stopper,
    served: JoinHandle<()>,
    folder: tempfile::TempDir,
}

/// What must come of bytes.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// This code, for any request to any handler.
    Code(ErrorCode),
    /// This code, and no handler was called.
    Unheard(ErrorCode),
    /// Not by this method, and no handler was called; the answer lists these as allowed.
    Allows(&'static [&'static str]),
    /// The same without a body, since that is how a HEAD is answered.
    HeadAlone(u16),
    /// The connection ends, after a bare refusal of the HTTP library or without one; no handler was called.
    Closed,
}

fn desired() -> Desired {
    let guest = |uid: &str, name: &str, address: IpAddr| {
        json!({"uid": uid, "name": name, "customer": "acme", "run": "running", "golden": "2026.11.1",
            "size": {"cores": 1, "memory_mib": 256, "swap_mib": 0, "rootfs_gib": 4},
            "network": {"bridge": "vmbr1", "address": format!("{address}/24")}})
    };
    let document = json!({"schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30,
        "guests": [guest(WEB, "web", WEB_AT), guest(DB, "db", DB_AT)]});
    Desired::parse(document.to_string().as_bytes()).unwrap()
}

/// Guests as our records have them after they were made.
fn made(folder: &std::path::Path) {
    let raw = Connection::open(folder.join("agent.db")).unwrap();
    for (uid, name, vmid) in [(WEB, "web", 300), (DB, "db", 301)] {
        raw.execute(
            "INSERT INTO guest (uid, name, customer, golden, place, vmid, made_by)
             VALUES (?1, ?2, 'acme', '2026.11.1', 'made', ?3, ?1)",
            (uid, name, vmid),
        )
        .unwrap();
    }
}

async fn count(State(calls): State<Arc<AtomicU64>>, request: Request, next: Next) -> Response {
    calls.fetch_add(1, Ordering::SeqCst);
    next.run(request).await
}

/// Both guests are where the document has them.
fn by_document(vmid: Vmid) -> Option<IpAddr> {
    [(300, WEB_AT), (301, DB_AT)].iter().find(|(number, _)| vmid.number() == *number).map(|(_, at)| *at)
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "the server under test, joined at the end of it")]
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(LeapingClock(AtomicU64::new(1)));
        let store = Store::open(folder.path(), clock.now()).unwrap();
        store.offer_desired(desired(), clock.now()).await.unwrap();
        made(folder.path());
        let leaf = LocalLeaf::open(folder.path()).unwrap();
        let (_, view) = watch::channel(Arc::new(HostSnapshot::default()));
        let local = Local::new(
            store.clone(),
            Arc::clone(&clock),
            view,
            ApiSettings {
                pin: leaf.pin(),
                hub: "https://hub.example".to_owned(),
                quiesce_bound: QuiesceBound::usual(),
                test_guest: None,
                artifacts: Artifacts::of(folder.path()),
            },
            GuestAddresses::reported(by_document, Arc::clone(&clock)),
        );
        let calls = Arc::new(AtomicU64::new(0));
        let counted = routes::table()
            .into_iter()
            .map(|(path, call)| (path, call.route_layer(from_fn_with_state(Arc::clone(&calls), count))));
        let router = routes::guarded(local, counted.collect());
        let listeners = Listeners::bind(&[SocketAddr::from(([127, 66, 7, 1], 0))]).await.unwrap();
        let address = listeners.addresses().unwrap()[0];
        let (stopper, stop) = stop::pair();
        let members = [(WEB_AT, WEB), (DB_AT, DB)];
        let known: KnownAddresses =
            members.map(|(at, uid)| (at, Member::Guest(uid.parse().unwrap()))).into_iter().collect();
        let (_, known) = watch::channel(Arc::new(known));
        let tls = leaf.server().unwrap();
        let serving = Serving { listeners, tls, router, known, store: store.clone(), clock };
        let served = tokio::spawn(local_api::run(serving, stop));
        let tls = net::tls::client(&Trust::Pins(PinSet::from(leaf.pin()))).unwrap();
        let connector = TlsConnector::from(Arc::new(tls));
        let (web, db) = (String::new(), String::new());
        let mut world = Self {
            store,
            address,
            web,
            db,
            calls,
            pin: leaf.pin(),
            connector,
            kept: tokio::sync::Mutex::default(),
            stopper,
            served,
            folder,
        };
        world.web = world.claim(WEB, WEB_AT).await;
        world.db = world.claim(DB, DB_AT).await;
        for (from, token) in [(WEB_AT, &world.web), (DB_AT, &world.db)] {
            world.serves(from, token).await;
        }
        world
    }

    pub fn trust(&self) -> Trust {
        Trust::Pins(PinSet::from(self.pin))
    }

    pub async fn end(self) {
        self.stopper.stop();
        tokio::time::timeout(Duration::from_secs(10), self.served).await.unwrap().unwrap();
    }

    /// Mints a claim and trades it, as a guest does.
    pub async fn claim(&self, uid: &str, from: IpAddr) -> String {
        let uid: GuestUid = uid.parse().unwrap();
        let claim = Secret::new(format!("claim-{uid}-{}", uuid::Uuid::now_v7()));
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let until = now + SignedDuration::from_secs(600);
        self.store.mint_claim(uid, claim.hash(), until, now).await.unwrap();
        let body = json!({"claim": claim.expose()}).to_string();
        let answer = self.ask(from, &self.request("POST", "/v1/claim", None, &body)).await.unwrap();
        let envelope: Envelope<Bootstrap> = serde_json::from_slice(&answer.body).unwrap();
        envelope.data.unwrap().token.expose().to_owned()
    }

    /// As an operator lets a guest in again after a check.
    pub async fn thaw(&self, uid: &str) {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let why = "the copy is gone".to_owned();
        assert_eq!(self.store.thaw(uid.parse().unwrap(), why, now).await.unwrap(), Thawed::Yes);
    }

    /// A request as a client would say it.
    pub fn request(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> String {
        let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        self.head(method, path, &format!("{bearer}content-length: {}\r\n", body.len())) + body
    }

    /// A request's head with these lines in it. The id is always the same, so that answers can be compared.
    pub fn head(&self, method: &str, path: &str, lines: &str) -> String {
        let id = uuid::Uuid::nil();
        format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nx-request-id: {id}\r\n{lines}\r\n", self.address)
    }

    /// A connection from this address. Slots of connections that just ended are free within a moment.
    pub async fn connect(&self, from: IpAddr) -> Wire {
        self.connect_with(&self.connector, from).await
    }

    pub async fn connect_with(&self, connector: &TlsConnector, from: IpAddr) -> Wire {
        let connecting = async {
            loop {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind(SocketAddr::new(from, 0)).unwrap();
                let stream = socket.connect(self.address).await.unwrap();
                let name = ServerName::IpAddress(self.address.ip().into());
                match connector.connect(name, stream).await {
                    Ok(stream) => return Wire::new(stream),
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), connecting).await.unwrap()
    }

    pub async fn ask(&self, from: IpAddr, request: &str) -> Option<Answer> {
        let mut wire = self.connect(from).await;
        wire.say(request.as_bytes()).await;
        wire.answer(HeadAlone::No).await
    }

    /// A correct request of the first guest is served, over a connection that stays open as long as the agent allows.
    async fn still_serves(&self) {
        let request = self.request("GET", "/v1/self", Some(&self.web), "");
        let mut kept = self.kept.lock().await;
        if let Some(wire) = kept.as_mut() {
            wire.say(request.as_bytes()).await;
            if let Some(answer) = wire.answer(HeadAlone::No).await {
                assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
                return;
            }
        }
        let mut fresh = self.connect(WEB_AT).await;
        fresh.say(request.as_bytes()).await;
        assert_eq!(fresh.answer(HeadAlone::No).await.unwrap().status, 200);
        *kept = Some(fresh);
    }

    /// A right request of this guest is served.
    pub async fn serves(&self, from: IpAddr, token: &str) {
        let answer = self.ask(from, &self.request("GET", "/v1/self", Some(token), "")).await.unwrap();
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }

    /// Every row of every table.
    pub fn state(&self) -> Vec<Row> {
        rows(&self.folder.path().join("agent.db"))
    }

    /// How often a handler was called so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Sends bytes and checks the result: exactly this, nothing on disk changed, and the correct request that follows
    /// is served.
    pub async fn refuses(&self, name: &str, from: IpAddr, bytes: &[u8], expect: Expect) -> Option<Answer> {
        let (before, calls) = (self.state(), self.calls());
        let mut wire = self.connect(from).await;
        wire.say(bytes).await;
        let head_alone = if matches!(expect, Expect::HeadAlone(_)) { HeadAlone::Yes } else { HeadAlone::No };
        let answer = wire.answer(head_alone).await;
        let reported = answer.as_ref().map(|answer| (answer.status, String::from_utf8_lossy(&answer.body)));
        let code = answer.as_ref().and_then(Answer::code);
        match expect {
            Expect::Code(wanted) => assert_eq!(code, Some(wanted), "{name}: {reported:?}"),
            Expect::Unheard(wanted) => assert_eq!(code, Some(wanted), "{name}: {reported:?}"),
            Expect::Allows(methods) => {
                assert_eq!(code, Some(ErrorCode::MethodNotAllowed), "{name}: {reported:?}");
                let allow = answer.as_ref().and_then(|answer| answer.header("allow"));
                let mut said: Vec<&str> = allow.unwrap_or_default().split(", ").collect();
                let mut taken: Vec<String> = methods.iter().map(|method| method.to_lowercase()).collect();
                said.sort_unstable();
                taken.sort_unstable();
                assert_eq!(said, taken, "{name}");
            }
            Expect::HeadAlone(status) => {
                assert_eq!(answer.as_ref().map(|answer| answer.status), Some(status), "{name}: {reported:?}");
            }
            Expect::Closed => {
                let bare = answer.as_ref().is_none_or(|it| (400..500).contains(&it.status));
                assert!(bare, "{name}: {reported:?}");
                assert!(wire.ends().await, "{name}: the connection goes on");
            }
        }
        if let (Some(code), Some(answer)) = (code, &answer) {
            assert_eq!(answer.status, code.http_status(), "{name}");
        }
        if !matches!(expect, Expect::Code(_)) {
            assert_eq!(self.calls(), calls, "{name}: a handler was called");
        }
        assert_eq!(self.state(), before, "{name}: a refusal changed something");
        self.still_serves().await;
        answer
    }
}
