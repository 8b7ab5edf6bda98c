//! A hub on a loopback port, and clients of every kind.
//!
//! `World::start().await` gives a hub; `world.admin()` a client with the first admin's token; `world.enrol("box7")` a
//! host with its own certificate. The clock begins at the machine's time, since certificates are checked by it, and
//! moves only when the test says so.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest, Coverage};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{Enrolled, Invite, InviteRedemption};
use holdfast_protocol::envelope::Envelope;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::{DesiredPut, HostView, InviteCreated, InviteRequest};
use holdfast_protocol::report::{AgentSection, ReportSchema, Sections};
use holdfast_protocol::secret::Secret;
use hubd::api::OperatorCallLimits;
use hubd::artifacts::ArtifactLimits;
use hubd::clock::{Clock, SystemClock};
use hubd::domain::oidc::provider::ProviderSettings;
use hubd::domain::sign_in::SignInRules;
use hubd::run::{self, Start};
use hubd::settings::{AlertSettings, CertificateSettings, Database};
use hubd::store::duty::DutyType;
use hubd::store::{SharedStore, Term};
use hubd::task::escrow_notice::NoticeSettings;
use hubd::task::http_post::WebhookSettings;
use hubd::task::leases::LeaseDesk;
use hubd::task::reload::ReloadSource;
use hubd::task::state_snapshots::{SnapshotSchedule, SnapshotSettings};
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, KeyPair};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

pub struct TestClock(Mutex<Timestamp>);

impl TestClock {
    pub fn advance(&self, seconds: i64) -> Timestamp {
        let mut now = self.0.lock().unwrap();
        *now += SignedDuration::from_secs(seconds);
        *now
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// As many bytes as a test likes, on however small a disk.
pub const ARTIFACTS: ArtifactLimits = ArtifactLimits { bytes_max: 1 << 30, disk_reserve_bytes: 0 };

/// Tests keep snapshots themselves.
pub const SNAPSHOTS: SnapshotSettings =
    SnapshotSettings { schedule: SnapshotSchedule::Off, bytes_max: 1 << 30 };

/// For tests with more calls than operators make.
pub const MANY_CALLS: OperatorCallLimits = OperatorCallLimits {
    calls_per_token: u32::MAX,
    calls_per_address: u32::MAX,
    attempts_per_address: u32::MAX,
};

/// How the hub of a test is started.
pub struct Options {
    pub webhook: Option<WebhookSettings>,
    pub notice: NoticeSettings,
    pub alerts: AlertSettings,
    pub connections_max: usize,
    pub reload: Option<ReloadSource>,
    pub artifacts: ArtifactLimits,
    pub certificates: CertificateSettings,
    pub database: Database,
    pub operator_calls: OperatorCallLimits,
    pub sign_in: SignInRules,
    pub provider: Option<ProviderSettings>,
    pub listen: std::net::SocketAddr,
}

impl Default for Options {
    fn default() -> Self {
        let (notice, alerts) = (NoticeSettings::default(), AlertSettings::default());
        Self {
            webhook: None,
            notice,
            alerts,
            connections_max: 1000,
            reload: None,
            artifacts: ARTIFACTS,
            certificates: CertificateSettings::default(),
            database: Database::Folder,
            operator_calls: OperatorCallLimits::USUAL,
            sign_in: SignInRules::default(),
            provider: None,
            listen: "127.0.0.1:0".parse().unwrap(),
        }
    }
}

pub struct World {
    pub clock: Arc<TestClock>,
    pub store: SharedStore,
    /// The duties of its hub.
    pub leases: LeaseDesk,
    pub url: String,
    pub folder: PathBuf,
    pub ca_pem: String,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<()>>,
    _temp: Option<tempfile::TempDir>,
}

impl World {
    pub async fn start() -> Self {
        Self::with_webhook(None).await
    }

    pub async fn with_webhook(webhook: Option<WebhookSettings>) -> Self {
        Self::with(Options { webhook, ..Options::default() }).await
    }

    pub async fn with_notice(notice: NoticeSettings) -> Self {
        Self::with(Options { notice, ..Options::default() }).await
    }

    /// A hub with few connections, of which an eighth is for strangers.
    pub async fn narrow(connections_max: usize) -> Self {
        Self::with(Options { connections_max, ..Options::default() }).await
    }

    pub async fn in_folder(folder: PathBuf, webhook: Option<WebhookSettings>) -> Self {
        Self::started(folder, Options { webhook, ..Options::default() }).await
    }

    pub async fn delivery(folder: PathBuf, webhook: Option<WebhookSettings>, notice: NoticeSettings) -> Self {
        Self::started(folder, Options { webhook, notice, ..Options::default() }).await
    }

    /// A hub in a new folder.
    pub async fn with(options: Options) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let mut world = Self::started(temp.path().join("hub"), options).await;
        world._temp = Some(temp);
        world
    }

    pub async fn started(folder: PathBuf, options: Options) -> Self {
        let clock = Arc::new(TestClock(Mutex::new(SystemClock.now())));
        let rules = options.alerts.rules.clone();
        let opened = run::open_on(&folder, &options.database, rules, clock.as_ref()).await.unwrap();
        let store = opened.store.clone();
        let start = Start {
            listen: options.listen,
            public_url: None,
            webhook: options.webhook,
            escrow_notice: options.notice,
            alerts: options.alerts,
            connections_max: options.connections_max,
            usage_bytes_max: u64::MAX,
            artifacts: options.artifacts,
            snapshots: SNAPSHOTS,
            operator_calls: options.operator_calls,
            certificates: options.certificates,
            reload: options.reload,
            sign_in: options.sign_in,
            provider: options.provider,
            clock: clock.clone(),
        };
        let running = run::start(opened, start).await.unwrap();
        let leases = running.leases.clone();
        let (url, ca_pem) =
            (running.public_url.as_str().to_owned(), std::fs::read_to_string(folder.join("ca.pem")).unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        #[expect(clippy::disallowed_methods, reason = "the test ends it and waits for its end")]
        let ended = tokio::spawn(async move {
            let told = async { drop(stopped.await) };
            running.until(told).await.unwrap();
        });
        Self { clock, store, leases, url, folder, ca_pem, stop: Some(stop), ended: Some(ended), _temp: None }
    }

    /// The proof that its hub has a duty.
    pub async fn term<D: DutyType>(&self) -> Term<D> {
        self.leases.lease().taken().await
    }

    /// Stops the hub and gives its folder, to be started again.
    pub async fn stop(mut self) -> (PathBuf, Option<tempfile::TempDir>) {
        drop(self.stop.take());
        let (folder, temp) = (self.folder.clone(), self._temp.take());
        let ended = self.ended.take().unwrap();
        drop(self);
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the hub stops").unwrap();
        (folder, temp)
    }

    pub fn token(&self) -> String {
        std::fs::read_to_string(self.folder.join("admin-token")).unwrap().trim().to_owned()
    }

    pub fn admin(&self) -> Client {
        self.with_token(&self.token())
    }

    pub fn with_token(&self, token: &str) -> Client {
        let mut client = self.anyone();
        let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        client.headers.insert("authorization", value);
        client
    }

    pub fn anyone(&self) -> Client {
        self.client(None)
    }

    pub fn client(&self, identity: Option<(&str, &KeyPair)>) -> Client {
        client(&self.ca_pem, &self.url, identity)
    }

    /// Anybody, from this address of the machine, over connections of its own.
    pub fn from(&self, address: IpAddr) -> Client {
        client_from(&self.ca_pem, &self.url, None, Some(address))
    }

    pub async fn invite(&self, name: &str) -> Invite {
        let request = InviteRequest { host_name: name.parse().unwrap() };
        let made: InviteCreated =
            self.admin().send(Method::POST, "/v1/invites", &request).await.data(StatusCode::CREATED);
        Invite::open(&made.code).unwrap()
    }

    pub async fn enrol(&self, name: &str) -> Host {
        let invite = self.invite(name).await;
        let key = KeyPair::generate().unwrap();
        let enrolled = self.redeem(&invite, &key).await.data(StatusCode::OK);
        self.host(enrolled, key)
    }

    pub fn host(&self, enrolled: Enrolled, key: KeyPair) -> Host {
        let client = self.client(Some((&enrolled.certificate_pem, &key)));
        Host { enrolled, key, client, started_at: self.clock.now() }
    }

    pub async fn redeem(&self, invite: &Invite, key: &KeyPair) -> Answered<Enrolled> {
        let secret = Secret::new(invite.secret.expose().to_owned());
        let request = InviteRedemption { secret, csr_pem: csr(key) };
        self.anyone().send(Method::POST, "/v1/enroll", &request).await
    }

    pub async fn view(&self, name: &str) -> HostView {
        let detail: holdfast_protocol::operator::HostDetail =
            self.admin().get(&format!("/v1/hosts/{name}")).await.data(StatusCode::OK);
        detail.host
    }

    /// Kinds of all events, oldest first.
    pub async fn event_kinds(&self) -> Vec<String> {
        let mut events = self.store.events(hubd::store::EventFilter::default(), 500).await.unwrap();
        events.reverse();
        events.into_iter().map(|event| event.kind).collect()
    }
}

pub fn client(ca_pem: &str, url: &str, identity: Option<(&str, &KeyPair)>) -> Client {
    client_from(ca_pem, url, identity, None)
}

pub fn client_from(
    ca_pem: &str,
    url: &str,
    identity: Option<(&str, &KeyPair)>,
    address: Option<IpAddr>,
) -> Client {
    let mut roots = rustls::RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(ca.unwrap()).unwrap();
    }
    let config = rustls::ClientConfig::builder_with_provider(net::tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((pem, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .local_address(address)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    Client { http, url: url.to_owned(), headers: HeaderMap::new() }
}

pub fn csr(key: &KeyPair) -> String {
    CertificateParams::default().serialize_request(key).unwrap().pem().unwrap()
}

#[derive(Clone)]
pub struct Client {
    pub http: reqwest::Client,
    pub url: String,
    pub headers: HeaderMap,
}

impl Client {
    pub fn with(&self, name: &'static str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.insert(name, HeaderValue::from_str(value).unwrap());
        client
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Answered<T> {
        let request = self.http.get(format!("{}{path}", self.url)).headers(self.headers.clone());
        Answered::read(request.send().await.unwrap()).await
    }

    /// An answer that is no envelope.
    pub async fn text(&self, path: &str) -> String {
        let request = self.http.get(format!("{}{path}", self.url)).headers(self.headers.clone());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.text().await.unwrap()
    }

    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Answered<T> {
        self.send_bytes(method, path, serde_json::to_vec(body).unwrap()).await
    }

    pub async fn send_bytes<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Answered<T> {
        let request = self.http.request(method, format!("{}{path}", self.url));
        Answered::read(request.headers(self.headers.clone()).body(body).send().await.unwrap()).await
    }

    pub async fn put_desired<T: DeserializeOwned>(
        &self,
        host: &str,
        if_match: Option<&str>,
        document: String,
    ) -> Answered<T> {
        let put = DesiredPut { reason: "because the test says so".to_owned().try_into().unwrap(), document };
        let client = if_match.map_or_else(|| self.clone(), |value| self.with("if-match", value));
        client.send(Method::PUT, &format!("/v1/hosts/{host}/desired"), &put).await
    }
}

/// An answer, read strictly as an envelope.
#[derive(Debug)]
pub struct Answered<T> {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub envelope: Envelope<T>,
}

impl<T: DeserializeOwned> Answered<T> {
    async fn read(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        let envelope = serde_json::from_slice(&bytes)
            .unwrap_or_else(|error| panic!("{status}: {error}: {}", String::from_utf8_lossy(&bytes)));
        Self { status, headers, envelope }
    }
}

impl<T> Answered<T> {
    #[track_caller]
    pub fn data(self, status: StatusCode) -> T {
        let Self { envelope, status: actual, .. } = self;
        match envelope.data {
            Some(data) if actual == status => data,
            _ => panic!("{actual}, not {status}: {:?}", envelope.error),
        }
    }

    #[track_caller]
    pub fn code(&self) -> ErrorCode {
        let problem = self.envelope.error.as_ref().unwrap_or_else(|| panic!("{} is no error", self.status));
        assert_eq!(self.status.as_u16(), problem.code.http_status(), "{problem}");
        assert!(self.envelope.data.is_none());
        problem.code
    }
}

/// An enrolled host.
pub struct Host {
    pub enrolled: Enrolled,
    pub key: KeyPair,
    pub client: Client,
    pub started_at: Timestamp,
}

impl Host {
    pub fn full(&self, sequence: u64, held: u64) -> CheckinRequest {
        let agent = AgentSection {
            version: "1.2.3".to_owned(),
            started_at: self.started_at,
            problems: Vec::new(),
            unobserved_since: None,
            recipient: None,
            builds: None,
            maintenance: None,
            tunnels: Vec::new(),
        };
        let sections = Sections { agent: Some(agent), guests: Some(Vec::new()), ..Sections::default() };
        CheckinRequest {
            schema: ReportSchema::V1,
            sequence,
            held: Generation::new(held),
            coverage: Coverage::Full,
            sections,
            usage: Vec::new(),
            diagnostic: None,
        }
    }

    pub fn changed(&self, sequence: u64, held: u64, sections: Sections) -> CheckinRequest {
        CheckinRequest { coverage: Coverage::Changed, sections, ..self.full(sequence, held) }
    }

    pub async fn check_in(&self, request: &CheckinRequest, wait: &str) -> Answered<CheckinAnswer> {
        self.client.send(Method::POST, &format!("/v1/agent/checkin?wait={wait}"), request).await
    }
}

pub fn document(generation: u64) -> String {
    format!(
        "{{\"schema\":\"holdfast.desired/v1\",\"generation\":{generation},\"poll_interval_s\":30,\"guests\":[]}}"
    )
}

/// Waits until a condition holds; a bounded number of checks, none of them a guess at how long it takes.
pub async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let looking = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.unwrap_or_else(|_| panic!("never {what}"));
}
