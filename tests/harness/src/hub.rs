//! The real hub in the same process, without sockets.
//!
//! In: the JSON that an operator and an agent would send. Out: the answers they would get. The hub's threads work in
//! real time; virtual time is stopped while they do. Deliberately absent: TLS; the calling host is passed in, as the
//! handshake would report it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentd::port::hub::{Line, Posted};
use agentd::port::identity::{IdentityFolder, Purpose};
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest};
use holdfast_protocol::enrol::{Enrolled, Invite, InviteRedemption};
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::operator::{DesiredPut, HostDetail, InviteCreated, InviteRequest};
use hubd::api::{ConcurrencyLimits, Hub as Parts, LongPolls, OperatorCallLimits, RateLimits, router};
use hubd::artifacts::{ArtifactFolder, ArtifactLimits, DISK_RESERVE_BYTES};
use hubd::domain::escrow_notice::Recipients;
use hubd::domain::identity::Presented;
use hubd::run::RunError;
use hubd::settings::AlertSettings;
use hubd::store::WriterThread;
use hubd::task::delivery::ReceiverSet;
use jiff::Timestamp;
use net::client::Answer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::clock::Timeline;
use crate::world::folder;

/// The longest answer of a small hub.
const ANSWER_BYTES: usize = 4 << 20;

/// How the host is called.
const HOST: &str = "box1";

struct HubClock(Timeline);

impl hubd::clock::Clock for HubClock {
    fn now(&self) -> Timestamp {
        // The hub stores milliseconds.
        let now = self.0.now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }
}

/// A hub with one enrolled host.
pub struct Hub {
    routes: axum::Router,
    admin: String,
    host: Presented,
    _opened: (Opened, TempDir),
}

/// A hub's routes, for as long as this is held.
pub struct Opened {
    pub routes: axum::Router,
    /// Where the first admin's token is, on the first start.
    pub admin_token: Option<PathBuf>,
    stop: watch::Sender<bool>,
    writer: WriterThread,
    _lock: std::fs::File,
}

impl Opened {
    /// Stops it, and waits until it has closed its files.
    pub async fn close(self) {
        drop((self.routes, self.stop));
        tokio::task::spawn_blocking(|| self.writer.join()).await.unwrap().unwrap();
    }
}

/// Opens a hub in a folder.
///
/// # Errors
/// [`RunError`].
pub async fn open_routes(folder: &Path, clock: Arc<dyn hubd::clock::Clock>) -> Result<Opened, RunError> {
    let opened = hubd::run::open(folder, AlertSettings::default().rules, clock.as_ref()).await?;
    let (stop, stopped) = watch::channel(false);
    let started = clock.now();
    // No operator of these tests leaves a release.
    let limits = ArtifactLimits { bytes_max: 0, disk_reserve_bytes: DISK_RESERVE_BYTES };
    let parts = Parts {
        artifacts: ArtifactFolder::open(folder, limits)?,
        downloads: Arc::default(),
        release_order: tokio::sync::Mutex::default(),
        counters: hubd::api::HubCounters::default(),
        // No task writes what is left there: what does not fit is dropped.
        usage: hubd::api::UsageInbox::new().0,
        store: opened.store,
        authority: opened.authority,
        host_life: hubd::authority::HostLife::default(),
        clock,
        alerts: opened.alerts,
        receivers: watch::channel(ReceiverSet::default().configured(started)).1,
        reached: Recipients::default(),
        public_url: "https://hub.example:8443".to_owned(),
        long_polls: LongPolls::default(),
        live: hubd::api::LiveFeed::default(),
        stop: stopped,
        concurrency: ConcurrencyLimits::default(),
        rates: RateLimits::new(OperatorCallLimits::USUAL),
        sign_in: hubd::api::SignIn::default(),
    };
    let routes = router(Arc::new(parts));
    Ok(Opened { routes, admin_token: opened.admin_token, stop, writer: opened.writer, _lock: opened.lock })
}

/// The agent's requests, sent directly to the routes. The calling host is set here; in production the handshake reports
/// it.
#[derive(Debug)]
struct Routes {
    routes: axum::Router,
    host: Presented,
}

impl Line for Routes {
    fn send<'a>(&'a self, method: Method, path: &'a str, body: Vec<u8>, _: Duration) -> Posted<'a> {
        let ask = Request::builder().method(method).uri(path).extension(self.host);
        let ask = ask.header(header::CONTENT_TYPE, "application/json").body(Body::from(body)).unwrap();
        Box::pin(standing_still(async move {
            let answer = self.routes.clone().oneshot(ask).await.unwrap();
            let status = answer.status().as_u16();
            let body = to_bytes(answer.into_body(), ANSWER_BYTES).await.unwrap().to_vec();
            Ok(Answer::new(status, body))
        }))
    }
}

/// Stops virtual time while other threads work on this.
async fn standing_still<T>(work: impl Future<Output = T>) -> T {
    let (release, held) = std::sync::mpsc::channel::<()>();
    // Time does not jump while a blocking task runs. The task ends when the sender is dropped.
    let guard = tokio::task::spawn_blocking(move || held.recv().is_err());
    let done = work.await;
    drop(release);
    guard.await.unwrap();
    done
}

impl Hub {
    /// A fresh hub, and the host enrolled with it.
    pub async fn open(timeline: Timeline) -> Self {
        standing_still(Self::make(timeline)).await
    }

    async fn make(timeline: Timeline) -> Self {
        let dir = folder();
        let opened = open_routes(&dir.path().join("hub"), Arc::new(HubClock(timeline))).await.unwrap();
        let admin = std::fs::read_to_string(opened.admin_token.as_ref().unwrap()).unwrap();
        let mut hub = Self {
            routes: opened.routes.clone(),
            admin: admin.trim().to_owned(),
            host: Presented { host: uuid::Uuid::nil().to_string().parse().unwrap(), generation: 0 },
            _opened: (opened, dir),
        };
        let enrolled = hub.enrol().await;
        hub.host = Presented { host: enrolled.host_id, generation: enrolled.certificate_generation };
        hub
    }

    async fn enrol(&self) -> Enrolled {
        let goal = InviteRequest { host_name: HOST.parse().unwrap() };
        let made: InviteCreated = self.operator("POST", "/v1/invites", &json!(goal)).await;
        let invite = Invite::open(&made.code).unwrap();
        let box_folder = folder();
        let key = IdentityFolder::open(box_folder.path()).unwrap().pending(Purpose::Enrol).unwrap();
        let request = InviteRedemption { secret: invite.secret, csr_pem: key.csr_pem().unwrap() };
        let ask = Request::post("/v1/enroll").body(Body::from(json!(request).to_string())).unwrap();
        self.answered(ask).await
    }

    /// An operator puts a document.
    pub async fn put_desired(&self, if_match: &str, document: &Value) {
        let put =
            DesiredPut { reason: "a story".to_owned().try_into().unwrap(), document: document.to_string() };
        let ask = Request::put(format!("/v1/hosts/{HOST}/desired"))
            .header(header::IF_MATCH, if_match)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.admin))
            .body(Body::from(json!(put).to_string()))
            .unwrap();
        let _: Value = standing_still(self.answered(ask)).await;
    }

    /// The agent checks in; the answer is not held open.
    pub async fn check_in(&self, request: &CheckinRequest) -> CheckinAnswer {
        let mut ask =
            Request::post("/v1/agent/checkin?wait=0s").body(Body::from(json!(request).to_string())).unwrap();
        ask.extensions_mut().insert(self.host);
        standing_still(self.answered(ask)).await
    }

    /// How the agent of the host sends to this hub.
    #[must_use]
    pub fn line(&self) -> Arc<dyn Line> {
        Arc::new(Routes { routes: self.routes.clone(), host: self.host })
    }

    /// What an operator sees of the host.
    pub async fn host(&self) -> HostDetail {
        standing_still(self.operator("GET", &format!("/v1/hosts/{HOST}"), &Value::Null)).await
    }

    async fn operator<T: serde::de::DeserializeOwned>(&self, method: &str, path: &str, body: &Value) -> T {
        let ask = Request::builder().method(method).uri(path);
        let ask = ask.header(header::AUTHORIZATION, format!("Bearer {}", self.admin));
        self.answered(ask.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn answered<T: serde::de::DeserializeOwned>(&self, mut ask: Request<Body>) -> T {
        let what = format!("{} {}", ask.method(), ask.uri());
        ask.headers_mut().insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        let answer = self.routes.clone().oneshot(ask).await.unwrap();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), ANSWER_BYTES).await.unwrap();
        let frame: Envelope<T> = serde_json::from_slice(&body)
            .unwrap_or_else(|error| panic!("{what}: {error}: {}", String::from_utf8_lossy(&body)));
        match frame.data {
            Some(data) if status == StatusCode::OK || status == StatusCode::CREATED => data,
            _ => panic!("{what}: {status}: {:?}", frame.error),
        }
    }
}
