//! Fake hub: scripted answers, and a record of requests.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub const TOKEN: &str = "token-0123456789abcdef";

#[derive(Clone, Debug)]
pub enum Reply {
    Data(Value),
    /// Bytes without an envelope.
    Text(String),
    /// An error: its status, code and sentence.
    Error(u16, &'static str, &'static str),
    /// The request is taken in, and the answer is cut off.
    Cut,
}

#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Default)]
struct Script {
    script: BTreeMap<String, VecDeque<Reply>>,
    requests: Vec<RecordedRequest>,
}

pub struct FakeHub {
    pub url: String,
    pub ca_pem: String,
    pub ca_pin: String,
    script: Arc<Mutex<Script>>,
    home: TempDir,
    _server: JoinSet<()>,
}

impl FakeHub {
    pub async fn start() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(net::tls::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone(), ca.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let pin = net::tls::pin_of(holdfast_protocol::pin::PinKind::Leaf, ca.der()).unwrap();
        let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", inner.local_addr().unwrap());
        let script = Arc::new(Mutex::new(Script::default()));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let tls = TlsListener { inner, acceptor: TlsAcceptor::from(Arc::new(config)) };
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(tls, router).await.unwrap() });
        let home = tempfile::tempdir().unwrap();
        Self { url, ca_pem: ca.pem(), ca_pin: pin.to_string(), script, home, _server: server }
    }

    /// A hub that this home is logged in to.
    pub async fn logged_in() -> Self {
        let hub = Self::start().await;
        hub.on("GET /v1/whoami", Reply::Data(whoami()));
        let output = hub.login(&["--ca-pin", &hub.ca_pin], TOKEN);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        hub
    }

    /// Adds an answer. The last one for a path is given again and again.
    pub fn on(&self, what: &str, reply: Reply) {
        self.script.lock().unwrap().script.entry(what.to_owned()).or_default().push_back(reply);
    }

    pub fn requests(&self, what: &str) -> Vec<RecordedRequest> {
        let script = self.script.lock().unwrap();
        script
            .requests
            .iter()
            .filter(|requests| format!("{} {}", requests.method, requests.path) == what)
            .cloned()
            .collect()
    }

    pub fn login(&self, trust: &[&str], token: &str) -> Output {
        let file = self.file("token", token);
        let mut arguments = vec!["login", &self.url, "--token-file", file.to_str().unwrap()];
        arguments.extend(trust);
        self.holdfast(&arguments)
    }

    pub fn is_logged_in(&self) -> bool {
        self.home.path().join("config/login.json").exists()
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs the command without a terminal.
    pub fn holdfast(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "the program under test")]
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(arguments).env("HOLDFAST_CONFIG", self.home.path().join("config"));
        command.env_remove("NO_COLOR");
        command
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn whoami() -> Value {
    json!({ "name": "ada", "role": "operator", "hub_version": "0.1.0" })
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, 4 << 20).await.unwrap();
    let path = head.uri.path_and_query().unwrap().to_string();
    let requests = RecordedRequest {
        method: head.method.to_string(),
        path,
        headers: head.headers,
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    };
    let what = format!("{} {}", requests.method, requests.path);
    let known = requests.headers["authorization"] == format!("Bearer {TOKEN}");
    let mut script = script.lock().unwrap();
    script.requests.push(requests);
    if !known {
        return frame(Err((401, "UNAUTHENTICATED", "no such token")));
    }
    let reply = script.script.get_mut(&what).map(|replies| {
        if replies.len() > 1 { replies.pop_front().unwrap() } else { replies.front().unwrap().clone() }
    });
    match reply {
        Some(Reply::Data(data)) => frame(Ok(data)),
        Some(Reply::Text(text)) => Response::new(Body::from(text)),
        Some(Reply::Error(status, code, message)) => frame(Err((status, code, message))),
        Some(Reply::Cut) => {
            Response::builder().header("content-length", "1000").body(Body::from("{")).unwrap()
        }
        None => frame(Err((404, "NOT_FOUND", "there is no such thing"))),
    }
}

fn frame(result: Result<Value, (u16, &str, &str)>) -> Response<Body> {
    let mut envelope = json!({
        "schema_version": "holdfast.envelope/v1", "request_id": uuid::Uuid::nil(), "correlation_id": uuid::Uuid::nil(),
        "data": null, "error": null, "metadata": { "timestamp": "2026-11-21T03:00:00Z" }
    });
    let mut status = 200;
    match result {
        Ok(data) => envelope["data"] = data,
        Err((code, name, message)) => {
            status = code;
            envelope["error"] = json!({ "code": name, "message": message });
        }
    }
    let status = StatusCode::from_u16(status).unwrap();
    Response::builder().status(status).body(Body::from(envelope.to_string())).unwrap()
}

struct TlsListener {
    inner: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, peer)) = self.inner.accept().await else { continue };
            // A client that refuses our certificate ends here.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}
