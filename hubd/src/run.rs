//! The composition root: opening, starting, supervising and stopping the hub.
//!
//! In: [`Settings`]. Out: a running [`Hub`](crate::api::Hub) until `stop`. Only this module sees everything.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alerts::Ruleset;
use held_files::atomic_file::{self, FileError};
use held_files::held_folder::{HeldError, HeldFolder};
use holdfast_protocol::json::chain;
use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::api::{
    self, ConcurrencyLimits, Downloads, HubCounters, LiveFeed, LongPolls, OperatorCallLimits, Provider,
    ProviderClientError, RateLimits, SignIn, UsageInbox,
};
use crate::artifacts::{ArtifactError, ArtifactFolder, ArtifactLimits};
use crate::authority::{Authority, AuthorityError, Fresh, ServerCertificate, ServerCertificateError};
use crate::clock::Clock;
use crate::domain::alerting::AlertContext;
use crate::domain::alerting::notice_text::HubName;
use crate::domain::alerting::own::{DatabaseState, SettingsState};
use crate::domain::oidc::provider::ProviderSettings;
use crate::domain::sign_in::SignInRules;
use crate::postgres::{self, Postgres, Users};
use crate::serve::{self, HostVerifier, Serving, TlsError};
use crate::settings::{AlertSettings, CertificateSettings, Database, PublicUrl, Settings, certificate_names};
use crate::sqlite::{OpenError, Sqlite};
use crate::store::{HolderId, SharedStore, StoreError, WriterThread};
use crate::task::alerts::AlertTimer;
use crate::task::certificates::CertificateWatch;
use crate::task::customer_contact::ContactRoute;
use crate::task::delivery::{Deliveries, ReceiverSet};
use crate::task::escrow_notice::{NoticeSettings, Notifier};
use crate::task::http_post::{WebhookError, WebhookSettings};
use crate::task::leases::{LeaseDesk, LeaseKeeper};
use crate::task::reload::{Reload, ReloadSource};
use crate::task::state_snapshots::{self, SnapshotSettings};
use crate::task::webhook::Forwarder;
use crate::task::{
    changes, database_check, deadman, live, rollouts, sign_in_refusals, upkeep, usage, watcher, webhook,
    work_orders,
};

mod admin;

pub use admin::{ADMIN_TOKEN_FILE, AdminError, TOKEN_LIFE, new_token};

/// Where everything is kept, opened.
pub struct OpenHub {
    /// The store.
    pub store: SharedStore,
    /// Its writer's thread.
    pub writer: WriterThread,
    pub authority: Arc<Authority>,
    /// What decisions on alerts depend on.
    pub alerts: AlertContext,
    /// Its folder.
    pub folder: PathBuf,
    /// Where the first admin's token was written, on the first start.
    pub admin_token: Option<PathBuf>,
    /// Held while the hub runs, so that there is only one.
    pub lock: File,
}

/// Why the hub does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{path} cannot be opened: the hub's user must be able to")]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Make(#[from] FileError),
    /// A folder above it.
    #[error(transparent)]
    Above(#[from] HeldError),
    /// Another hub runs here.
    #[error("another hub runs in {path}: stop it first, or choose another folder")]
    Locked { path: PathBuf },
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The database belongs to hubs with other keys.
    #[error(
        "the keys in {folder} are of the CA {ours}, the hosts in the database have certificates of {kept}, and the hub was \
         not started: copy seed.key, ca.key, ca.pem and countersign.key from the folder of a hub of this database"
    )]
    OtherCa { folder: PathBuf, ours: String, kept: String },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Postgres(#[from] postgres::OpenError),
    /// The first admin.
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Provider(#[from] ProviderClientError),
    /// The database, later.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address cannot be listened on.
    #[error("nothing can listen on {address}: is another program there? else choose another with --listen")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The hub listens on all addresses and has no public URL.
    #[error("the hub listens on every address: say with --public-url how agents and operators reach it")]
    NoPublicUrl,
    /// The listener's certificate.
    #[error(transparent)]
    Certificate(#[from] ServerCertificateError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Files of releases.
    #[error(transparent)]
    Artifacts(#[from] ArtifactError),
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    /// A task ended that should not.
    #[error("a part of the hub ended by itself: look at the log above, and start it again")]
    TaskEnded,
}

/// Opens a folder with its own database; in an empty one everything is made.
///
/// # Errors
/// [`RunError`].
pub async fn open(folder: &Path, rules: Ruleset, clock: &dyn Clock) -> Result<OpenHub, RunError> {
    open_on(folder, &Database::Folder, rules, clock).await
}

/// Opens a folder whose rows are in this database; in an empty one everything else is made.
///
/// # Errors
/// [`RunError`].
pub async fn open_on(
    folder: &Path,
    database: &Database,
    rules: Ruleset,
    clock: &dyn Clock,
) -> Result<OpenHub, RunError> {
    let failed = |source| RunError::Folder { path: folder.to_owned(), source };
    if !folder.is_dir() {
        // Both are synced into the parent folder: without the folder's own entry, a loss of power would lose everything
        // in it.
        folder
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .map(HeldFolder::make_all)
            .transpose()?;
        atomic_file::private_folder(folder)?;
    }
    let lock =
        File::options().create(true).truncate(false).write(true).open(folder.join("lock")).map_err(failed)?;
    if lock.try_lock().is_err() {
        return Err(RunError::Locked { path: folder.to_owned() });
    }
    let alerts = AlertContext::new(rules, clock.now());
    let (authority, store, writer) = match database {
        Database::Folder => {
            let path = self::database(folder);
            let fresh = if path.exists() { Fresh::No } else { Fresh::Yes };
            let authority = Authority::open_or_make(folder, fresh, clock.now())?;
            let (store, writer) = Sqlite::open(&path, alerts.clone())?;
            (authority, store, writer)
        }
        Database::Postgres(server) => {
            let (server, context) = (server.clone(), alerts.clone());
            let open = move || Postgres::open(&server, context, Users::Hub);
            let opened = tokio::task::spawn_blocking(open).await.map_err(|_| RunError::TaskEnded)?;
            let (store, writer) = opened?;
            // The first operator is made at the end of the first start.
            let fresh = if store.operators().await?.is_empty() { Fresh::Yes } else { Fresh::No };
            (Authority::open_or_make(folder, fresh, clock.now())?, store, writer)
        }
    };
    let authority = Arc::new(authority);
    let (ours, former) = {
        let cas = authority.cas();
        (cas.serving().pin().to_string(), cas.former().map(|pin| pin.to_string()))
    };
    let kept = store.keep_ca(ours.clone(), former).await?;
    if kept != ours {
        return Err(RunError::OtherCa { folder: folder.to_owned(), ours, kept });
    }
    let admin_token = admin::first_admin(&store, folder, clock.now()).await?;
    Ok(OpenHub { store, writer, authority, alerts, folder: folder.to_owned(), admin_token, lock })
}

/// The database of a folder.
#[must_use]
pub fn database(folder: &Path) -> PathBuf {
    folder.join("hub.db")
}

/// A hub that runs.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// How it is reached.
    pub public_url: PublicUrl,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    /// The duties that this hub has.
    pub leases: LeaseDesk,
    store: SharedStore,
    holder: HolderId,
    writer: WriterThread,
    _lock: File,
}

/// Start options of a hub.
pub struct Start {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The public URL, if set.
    pub public_url: Option<PublicUrl>,
    /// Where events go, if anywhere.
    pub webhook: Option<WebhookSettings>,
    /// Addresses for notices of escrow reads.
    pub escrow_notice: NoticeSettings,
    /// Receivers of alerts.
    pub alerts: AlertSettings,
    /// Connections at a time.
    pub connections_max: usize,
    /// Bytes of kept use, at most.
    pub usage_bytes_max: u64,
    /// Bounds of the files of releases.
    pub artifacts: ArtifactLimits,
    /// When snapshots of state are kept.
    pub snapshots: SnapshotSettings,
    /// How often operators may call.
    pub operator_calls: OperatorCallLimits,
    /// Certificates of hosts and of the listener.
    pub certificates: CertificateSettings,
    /// Where rules and receivers are read again from, if anywhere.
    pub reload: Option<ReloadSource>,
    /// How people sign in.
    pub sign_in: SignInRules,
    /// Who else vouches for people.
    pub provider: Option<ProviderSettings>,
    pub clock: Arc<dyn Clock>,
}

impl Start {
    #[must_use]
    pub fn new(settings: Settings, reload: Option<ReloadSource>, clock: Arc<dyn Clock>) -> Self {
        Self {
            listen: settings.listen,
            public_url: settings.public_url,
            webhook: settings.webhook,
            escrow_notice: settings.escrow_notice,
            alerts: settings.alerts,
            connections_max: settings.connections_max,
            usage_bytes_max: settings.usage_bytes_max,
            artifacts: settings.artifacts,
            snapshots: settings.snapshots,
            operator_calls: OperatorCallLimits::USUAL,
            certificates: settings.certificates,
            reload,
            sign_in: settings.sign_in,
            provider: settings.provider,
            clock,
        }
    }
}

/// Starts the hub.
///
/// # Errors
/// [`RunError`]; nothing runs then.
pub async fn start(opened: OpenHub, start: Start) -> Result<Running, RunError> {
    let OpenHub { store, writer, authority, alerts, folder, lock, .. } = opened;
    let listen = |source| RunError::Listen { address: start.listen, source };
    let listener = TcpListener::bind(start.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let public_url = match start.public_url {
        Some(url) => url,
        None if address.ip().is_unspecified() => return Err(RunError::NoPublicUrl),
        None => PublicUrl::of(address),
    };
    let artifacts = ArtifactFolder::open(&folder, start.artifacts)?;
    // A hub that stopped between a deletion and the removal of its files goes on here.
    artifacts.keep_only(&store.named_artifacts().await?)?;
    let provider = net::tls::provider();
    let names = certificate_names(&public_url, address.ip());
    let certificate = ServerCertificate::make(&authority, &provider, names, start.clock.now())?;
    let certificate = Arc::new(certificate.with_files(start.certificates.files, &provider)?);
    let clients = Arc::new(HostVerifier::new(&authority.cas().accepted())?);
    let resolver = Arc::clone(&certificate);
    let tls = serve::server_config(Arc::clone(&clients), resolver)?;
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let holder = HolderId::new(Uuid::new_v4());
    let (keeper, leases) = LeaseKeeper::new(store.clone(), holder);
    keeper.ask().await;
    tasks.spawn(keeper.run(stopped.clone()));
    let long_polls = LongPolls::default();
    if let Some(changed) = store.changed_hosts() {
        tasks.spawn(changes::run(changed, long_polls.clone(), stopped.clone()));
    }
    let live = LiveFeed::default();
    tasks.spawn(live::run(store.clone(), live.clone(), stopped.clone()));
    match start.webhook {
        Some(webhook) => {
            let clock = Arc::clone(&start.clock);
            let forwarder =
                Forwarder::new(webhook, Arc::clone(&provider), (store.clone(), leases.lease()), clock)?;
            tasks.spawn(forwarder.run(stopped.clone()));
        }
        None => {
            tasks.spawn(webhook::pass_over(store.clone(), leases.lease(), stopped.clone()));
        }
    }
    let reached = start.escrow_notice.reached();
    let clock = Arc::clone(&start.clock);
    tasks.spawn(deadman::run(store.clone(), leases.lease(), alerts.clone(), clock, stopped.clone()));
    tasks.spawn(rollouts::run(store.clone(), leases.lease(), Arc::clone(&start.clock), stopped.clone()));
    tasks.spawn(work_orders::run(store.clone(), leases.lease(), Arc::clone(&start.clock), stopped.clone()));
    let timer = AlertTimer::new(store.clone(), leases.lease(), Arc::clone(&start.clock), folder);
    let (checked, database) = watch::channel(DatabaseState::default());
    let clock = Arc::clone(&start.clock);
    tasks.spawn(database_check::run(store.clone(), clock, checked, stopped.clone()));
    let (reloaded, settings) = watch::channel(SettingsState::default());
    let timer = timer.with_backup(start.alerts.backup).with_checks(database).with_settings(settings);
    tasks.spawn(timer.run(stopped.clone()));
    let hub =
        HubName { pin: authority.cas().serving().pin().to_string(), url: public_url.as_str().to_owned() };
    let set = ReceiverSet::new(start.alerts.receivers, start.alerts.reach).with_files(start.alerts.files);
    let (configured, receivers) = watch::channel(set.configured(start.clock.now()));
    let (channels, set) = watch::channel(set);
    let contacts =
        ContactRoute { set: set.clone(), mail: start.escrow_notice.mail.clone(), hub: hub.clone() };
    let (queue, clock) = ((store.clone(), leases.lease()), Arc::clone(&start.clock));
    let notifier = Notifier::new(start.escrow_notice, Arc::clone(&provider), queue, clock, contacts)?;
    tasks.spawn(notifier.run(stopped.clone()));
    let deliveries = Deliveries::new(set, (store.clone(), leases.lease()), Arc::clone(&start.clock), hub);
    tasks.spawn(deliveries.run(stopped.clone()));
    let (clock, alerts_context) = (Arc::clone(&start.clock), alerts.clone());
    let reload =
        Reload { store: store.clone(), clock, alerts: alerts_context, channels, configured, state: reloaded };
    if let Some(source) = start.reload {
        tasks.spawn(reload.run(source, stopped.clone()));
    }
    if let Some(settings) = start.alerts.watcher {
        tasks.spawn(watcher::run(settings, start.alerts.reach, store.clone(), stopped.clone()));
    }
    let watch = CertificateWatch {
        authority: Arc::clone(&authority),
        certificate: Arc::clone(&certificate),
        clients,
        provider: Arc::clone(&provider),
        clock: Arc::clone(&start.clock),
    };
    tasks.spawn(watch.run(stopped.clone()));
    let upkeep = upkeep::Upkeep {
        store: store.clone(),
        lease: leases.lease(),
        authority: Arc::clone(&authority),
        certificate,
        provider,
        clock: Arc::clone(&start.clock),
        usage_bytes_max: start.usage_bytes_max,
    };
    tasks.spawn(upkeep::run(upkeep, stopped.clone()));
    let clock = Arc::clone(&start.clock);
    tasks.spawn(state_snapshots::run(start.snapshots, store.clone(), clock, stopped.clone()));
    let (usage, waiting) = UsageInbox::new();
    let clock = Arc::clone(&start.clock);
    tasks.spawn(usage::run(waiting, store.clone(), clock, stopped.clone()));
    let crypto = net::tls::provider();
    let vouching = start.provider.map(|settings| Provider::new(settings, crypto)).transpose()?;
    let sign_in = SignIn::new(start.sign_in).with_provider(vouching);
    let (refusals, clock) = (sign_in.refusals(), Arc::clone(&start.clock));
    tasks.spawn(sign_in_refusals::run(refusals, store.clone(), clock, stopped.clone()));
    let hub = api::Hub {
        store: store.clone(),
        authority,
        host_life: start.certificates.host_life,
        clock: start.clock,
        alerts,
        receivers,
        reached,
        public_url: public_url.as_str().to_owned(),
        counters: HubCounters::default(),
        usage,
        artifacts,
        release_order: tokio::sync::Mutex::default(),
        downloads: Arc::new(Downloads::default()),
        long_polls,
        live,
        stop: stopped.clone(),
        concurrency: ConcurrencyLimits::default(),
        rates: RateLimits::new(start.operator_calls),
        sign_in,
    };
    let router = api::router(Arc::new(hub));
    let connections_max = start.connections_max;
    tasks.spawn(serve::serve(Serving { listener, tls, router, connections_max, stop: stopped }));
    Ok(Running { address, public_url, stop, tasks, leases, store, holder, writer, _lock: lock })
}

impl Running {
    /// Waits for `stop`, then stops in order: connections and tasks, then the writer.
    ///
    /// # Errors
    /// [`RunError::TaskEnded`] when a part of the hub ended by itself.
    pub async fn until(mut self, told: impl Future<Output = ()>) -> Result<(), RunError> {
        let ended = tokio::select! {
            () = told => Ok(()),
            _ = self.tasks.join_next() => Err(RunError::TaskEnded),
        };
        self.stop.send_replace(true);
        let mut outcome = ended;
        while let Some(task) = self.tasks.join_next().await {
            if task.is_err() {
                outcome = Err(RunError::TaskEnded);
            }
        }
        // Another hub need not wait for the end of the leases.
        if let Err(error) = self.store.end_leases(self.holder).await {
            tracing::warn!(action = "end_leases", result = "failed", error = %chain(&error));
        }
        // The writer ends with the last handle of its store.
        drop(self.store);
        let writer = self.writer;
        match tokio::task::spawn_blocking(move || writer.join()).await {
            Ok(Ok(())) => outcome,
            Ok(Err(_)) | Err(_) => Err(RunError::TaskEnded),
        }
    }
}

/// For `DAYS` of the command line.
#[must_use]
pub const fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(days as i64 * 24)
}
