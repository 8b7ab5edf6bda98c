//! Fake agent: a local API with one certificate, claim and token.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::serve::Listener;
use holdfast_protocol::bootstrap::{Bootstrap, BootstrapSchema, BootstrapToken, BootstrapTokenSchema, Mode};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::{Envelope, EnvelopeSchema, ErrorBody, Metadata};
use holdfast_protocol::id::{CorrelationId, GuestUid, RequestId};
use holdfast_protocol::local::desired::MaintenanceView;
use holdfast_protocol::local::{ClaimRequest, Hello, HelloAnswer};
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::secret::Secret;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use uuid::Uuid;

use crate::fake_windows::{self, Windows};

/// What the agent does with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnClaim {
    /// Gives the token.
    Give,
    /// Notes the claim, then says it is unwell, as if the answer were lost.
    Lose,
    /// Refuses for good.
    Refuse(ErrorCode),
}

/// What the agent does with a request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRequest {
    /// Takes it, and the connection breaks before the answer.
    Lose,
    Refuse(ErrorCode),
}

/// What it saw and what it answers.
#[derive(Default)]
pub struct AgentScript {
    /// What to do with the next claims; after that they are given.
    pub on_claim: VecDeque<OnClaim>,
    /// The redeemers' proofs of the claims, in order.
    pub claims: Vec<String>,
    /// The tokens that are known; the last is handed out.
    pub tokens: Vec<String>,
    /// The hellos that were answered.
    pub hellos: Vec<Hello>,
    /// The hellos with a token that is not known.
    pub strangers: u32,
    /// The requests for work: path, key and body.
    pub requests: Vec<(String, String, serde_json::Value)>,
    /// Answers to the next requests; after that they are taken.
    pub on_request: VecDeque<OnRequest>,
    /// The number of operations before a rollback.
    pub before_rollback: u32,
    /// Whether a rollback is done. A real guest would shut down during it.
    pub rolls_back: bool,
    /// Whether a rollback is under way for as long as this is so.
    pub rolls_back_slowly: bool,
    /// Snapshots that the guest made itself, in addition to those that were requested.
    pub other_snapshots: Vec<String>,
    /// How often work was taken back.
    pub cancelled: u32,
    /// How often the work's status was requested.
    pub looks: u32,
    /// The agent's side of quiesce windows and restore tests.
    pub windows: Windows,
    /// What the guest should run, as the agent reports it.
    pub desired: Option<serde_json::Value>,
    /// What becomes of a build on trial; the agent does not know yet, where it is none.
    pub trial: Option<&'static str>,
    /// What was asked with the question what should run.
    pub asked: Vec<String>,
    /// When it may be upgraded and restarted.
    pub maintenance: MaintenanceView,
    /// The bytes that are handed out.
    pub artifact: Vec<u8>,
    /// How often they were.
    pub fetched: u32,
    /// Where requests came from.
    pub peers: Vec<IpAddr>,
}

/// The agent. It stops when dropped.
pub struct FakeAgent {
    pub endpoint: String,
    pub pin: Pin,
    pub script: Arc<Mutex<AgentScript>>,
    _server: JoinSet<()>,
}

pub const CLAIM: &str = "claim-0123456789abcdef0123456789";
pub const TOKEN: &str = "token-0123456789abcdef0123456789";
pub const NEW_TOKEN: &str = "token-fedcba9876543210fedcba9876";

#[derive(Clone)]
pub struct Shared {
    pub script: Arc<Mutex<AgentScript>>,
    endpoint: String,
    pin: Pin,
}

impl FakeAgent {
    pub async fn start() -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn start_on(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let leaf = rcgen::generate_simple_self_signed(vec!["agent".to_owned()]).unwrap();
        let pin = Pin::of(PinKind::Leaf, leaf.cert.der());
        let endpoint = format!("https://{address}");
        let script =
            Arc::new(Mutex::new(AgentScript { tokens: vec![TOKEN.to_owned()], ..AgentScript::default() }));
        let shared = Shared { script: Arc::clone(&script), endpoint: endpoint.clone(), pin };
        let peers = Arc::clone(&script);
        let tls = TlsListener { inner: listener, acceptor: acceptor(&leaf), peers };
        let router = Router::new()
            .route("/v1/claim", post(claim))
            .route("/v1/hello", post(hello))
            .route("/v1/self", get(whoami))
            .route("/v1/storage", get(storage))
            .route("/v1/desired", get(desired))
            .route("/v1/artifacts/{sha256}", get(artifact))
            .route("/v1/snapshots", post(request).get(snapshots))
            .route("/v1/rollback", post(request))
            .route("/v1/backups", post(request).get(backups))
            .route("/v1/operations/{id}", get(operation).delete(cancel))
            .route("/v1/backups/due", get(fake_windows::due))
            .route("/v1/quiesce-windows", post(fake_windows::ask))
            .route("/v1/quiesce-windows/{id}", get(fake_windows::look).delete(fake_windows::give_up))
            .route("/v1/quiesce-windows/{id}/quiesced", put(fake_windows::quiesced))
            .route("/v1/quiesce-windows/{id}/released", put(fake_windows::released))
            .route("/v1/restore-tests/report", post(fake_windows::report))
            .layer(middleware::from_fn(no_redirects))
            .with_state(shared);
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(tls, router).await.unwrap() });
        Self { endpoint, pin, script, _server: server }
    }

    pub fn bootstrap_token(&self, mode: Mode) -> BootstrapToken {
        let claim = Secret::new(CLAIM.to_owned());
        BootstrapToken {
            schema: BootstrapTokenSchema::V1,
            endpoint: self.endpoint.clone(),
            pin: self.pin,
            claim,
            mode,
        }
    }

    pub fn bootstrap(&self, token: &str) -> Bootstrap {
        bootstrap(&self.endpoint, self.pin, token)
    }

    pub fn plan(&self, on_claim: &[OnClaim]) {
        self.script.lock().unwrap().on_claim = on_claim.iter().copied().collect();
    }

    pub fn read<T>(&self, look: impl FnOnce(&AgentScript) -> T) -> T {
        look(&self.script.lock().unwrap())
    }
}

pub fn bootstrap(endpoint: &str, pin: Pin, token: &str) -> Bootstrap {
    Bootstrap {
        schema: BootstrapSchema::V1,
        customer: "acme".parse().unwrap(),
        guest: GuestUid::new(Uuid::from_u128(7)),
        hub: "https://hub.example:8440".to_owned(),
        endpoint: endpoint.to_owned(),
        pin,
        token: Secret::new(token.to_owned()),
        token_generation: 1,
    }
}

async fn no_redirects(request: Request, next: Next) -> Response {
    assert!(request.uri().path().starts_with("/v1/"));
    next.run(request).await
}

async fn claim(State(shared): State<Shared>, body: Bytes) -> Response {
    let request: ClaimRequest = serde_json::from_slice(&body).unwrap();
    assert_eq!(request.claim.expose(), CLAIM);
    let mut script = shared.script.lock().unwrap();
    script.claims.push(request.redeemer.unwrap().expose().to_owned());
    match script.on_claim.pop_front().unwrap_or(OnClaim::Give) {
        OnClaim::Give => {
            let token = script.tokens.last().unwrap().clone();
            answer(bootstrap(&shared.endpoint, shared.pin, &token))
        }
        OnClaim::Lose => refuse(ErrorCode::Unavailable),
        OnClaim::Refuse(code) => refuse(code),
    }
}

async fn hello(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, &headers) {
        script.strangers += 1;
        return refuse(ErrorCode::Unauthenticated);
    }
    script.hellos.push(serde_json::from_slice(&body).unwrap());
    answer(HelloAnswer { again_in_s: 1 })
}

async fn desired(State(shared): State<Shared>, headers: HeaderMap, uri: Uri) -> Response {
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, &headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    let mut view = serde_json::json!({ "maintenance": script.maintenance });
    if let Some(controller) = &script.desired {
        view["controller"] = controller.clone();
    }
    if let Some(query) = uri.query() {
        if query.starts_with("trial=") {
            view["trial"] = script.trial.unwrap_or("undecided").into();
        }
        script.asked.push(query.to_owned());
    }
    answer(view)
}

async fn artifact(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, &headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    script.fetched += 1;
    Bytes::from(script.artifact.clone()).into_response()
}

async fn whoami(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if !knows(&shared.script.lock().unwrap(), &headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    answer(serde_json::json!({
        "uid": Uuid::from_u128(7), "name": "web-1", "customer": "acme", "golden": "2026.11.1",
        "golden_age": { "built_at": "2026-11-01T02:00:00Z", "days": 20 },
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.66.0.91/24" },
        "agent_version": "0.1.0",
        "limits": { "requests_per_minute": 60, "connections": 4, "body_bytes": 16384 }
    }))
}

async fn storage(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    {
        let mut script = shared.script.lock().unwrap();
        if !knows(&script, &headers) {
            return refuse(ErrorCode::Unauthenticated);
        }
        if script.windows.deaf.contains("storage") {
            script.windows.missed.insert("storage");
            return refuse(ErrorCode::Unavailable);
        }
    }
    answer(serde_json::json!({ "rootfs_gib": 8, "volumes": [
        { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot", "state": "attached" }
    ] }))
}

/// Its id, and that of its operation, is the count of different keys.
async fn request(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 16).await.unwrap();
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, &parts.headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    let key = parts.headers["idempotency-key"].to_str().unwrap().to_owned();
    script.requests.push((parts.uri.path().to_owned(), key, serde_json::from_slice(&bytes).unwrap()));
    match script.on_request.pop_front() {
        // The connection is closed with the task that serves it.
        Some(OnRequest::Lose) => {
            drop(script);
            std::panic::resume_unwind(Box::new("the answer is lost"));
        }
        Some(OnRequest::Refuse(code)) => return refuse(code),
        None => {}
    }
    let before = if parts.uri.path() == "/v1/rollback" { script.before_rollback } else { 1 };
    answer(serde_json::json!({ "operation": Uuid::from_u128(9), "taken": "queued", "before": before }))
}

async fn operation(State(shared): State<Shared>, request: Request) -> Response {
    let slow = shared.script.lock().unwrap().rolls_back_slowly;
    if slow {
        // As an agent does that holds the call back until something changes.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, request.headers()) {
        return refuse(ErrorCode::Unauthenticated);
    }
    assert!(request.uri().query().unwrap().starts_with("wait="));
    script.looks += 1;
    let path = script.requests.last().map(|request| request.0.clone()).unwrap_or_default();
    let (kind, status) = match (script.looks, path.as_str()) {
        (1, _) => ("backup", "queued"),
        (_, "/v1/rollback") if script.rolls_back_slowly => ("roll_back", "running"),
        (_, "/v1/rollback") if script.rolls_back => ("roll_back", "done"),
        (_, "/v1/rollback") => ("roll_back", "undone"),
        (_, _) => ("backup", "done"),
    };
    let problem = (status == "undone").then(|| ErrorBody::new(ErrorCode::NeedsSignature, "says the test"));
    answer(serde_json::json!({
        "id": Uuid::from_u128(9), "kind": kind, "guest": Uuid::from_u128(7), "name": "web-1", "status": status,
        "steps": [], "opened_at": "2026-11-21T12:00:00Z", "problem": problem
    }))
}

async fn cancel(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let mut script = shared.script.lock().unwrap();
    if !knows(&script, &headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    script.cancelled += 1;
    answer(serde_json::json!({
        "id": Uuid::from_u128(9), "kind": "roll_back", "guest": Uuid::from_u128(7), "name": "web-1",
        "status": "undone", "steps": [], "opened_at": "2026-11-21T12:00:00Z"
    }))
}

/// First the requested snapshots, then the others.
async fn snapshots(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let script = shared.script.lock().unwrap();
    if !knows(&script, &headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    let wished = script.requests.iter().filter(|request| request.0 == "/v1/snapshots");
    let wished = wished.filter_map(|request| request.2["name"].as_str().map(str::to_owned));
    let one = |name: String| {
        serde_json::json!({
            "name": name, "taken_at": "2026-11-21T12:00:00Z", "expires_at": "2026-11-22T12:00:00Z",
            "operation": Uuid::from_u128(9)
        })
    };
    let all: Vec<_> = wished.chain(script.other_snapshots.iter().cloned()).map(one).collect();
    answer(serde_json::json!({ "snapshots": all, "quota": 9 }))
}

async fn backups(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if !knows(&shared.script.lock().unwrap(), &headers) {
        return refuse(ErrorCode::Unauthenticated);
    }
    answer(serde_json::json!({ "backups": [
        { "id": Uuid::from_u128(9), "phase": "done",
          "kept": { "taken_at": "2026-11-21T12:00:00Z", "bytes": 5_242_880, "storage": "backup2" } }
    ] }))
}

pub fn knows(script: &AgentScript, headers: &HeaderMap) -> bool {
    let shown = headers["authorization"].to_str().unwrap().strip_prefix("Bearer ").unwrap();
    script.tokens.iter().any(|token| token == shown)
}

pub fn answer<T: Serialize>(data: T) -> Response {
    let envelope = envelope(Some(data), None);
    (StatusCode::OK, axum::Json(envelope)).into_response()
}

pub fn refuse(code: ErrorCode) -> Response {
    let envelope = envelope::<()>(None, Some(ErrorBody::new(code, "says the test")));
    (StatusCode::from_u16(code.http_status()).unwrap(), axum::Json(envelope)).into_response()
}

fn envelope<T>(data: Option<T>, error: Option<ErrorBody>) -> Envelope<T> {
    Envelope {
        schema_version: EnvelopeSchema::V1,
        request_id: RequestId::new(Uuid::new_v4()),
        correlation_id: CorrelationId::new(Uuid::new_v4()),
        data,
        error,
        metadata: Metadata { timestamp: "2026-11-21T12:00:00Z".parse().unwrap() },
    }
}

fn acceptor(leaf: &rcgen::CertifiedKey<rcgen::KeyPair>) -> TlsAcceptor {
    let key = rustls::pki_types::PrivateKeyDer::try_from(leaf.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

struct TlsListener {
    inner: TcpListener,
    acceptor: TlsAcceptor,
    peers: Arc<Mutex<AgentScript>>,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, peer)) = self.inner.accept().await else { continue };
            // A client that refuses our leaf ends here; it sends nothing.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                self.peers.lock().unwrap().peers.push(peer.ip());
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}
