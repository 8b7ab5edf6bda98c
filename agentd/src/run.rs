//! The composition root: builds every part from the settings, wires the channels, watches the tasks, stops them.
//!
//! ```text
//! hub_sync ──▶ store ──(change notice)──▶ reconcile ──▶ view ──▶ report ──▶ sections ──▶ hub_sync, status door
//! local_api ──▶ store                        └──▶ watchdog    storage ──▶ report
//! ```
//! What comes in: settings, and the proof that this process is nobody in particular. What goes out: the end, by a signal
//! or because a part broke; a part that ends by itself ends the agent, since half an agent looks alive and is not. The
//! order of the start is: lock and database, identity, certificate, doors, loops, ready.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::BridgeName;
use holdfast_protocol::report::Sections;
use holdfast_protocol::strict::chain;
use holdfast_seal::HostKey;
use holdfast_tls::Trust;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::routes::{router, test_router};
use crate::api::{Local, Standing};
use crate::execute::entry::Keeper;
use crate::execute::failpoint::{self, Failpoints};
use crate::execute::heavy::HeavyLane;
use crate::execute::offsite::Asker;
use crate::execute::{GuestDoor, Ports};
use crate::model::limits;
use crate::model::offsite::Pruners;
use crate::model::policy::{Golden, GoldenDump, Policy, QuiesceBound, Sha256Hex, TestPlace, VmidRange};
use crate::model::record::VolumeId;
use crate::model::storage::StorageView;
use crate::model::view::{ProgressLines, View};
use crate::port::artifacts::Artifacts;
use crate::port::backoff::spread;
use crate::port::clock::{Clock, RealClock};
use crate::port::handover::HandOverFolder;
use crate::port::helper::Helper;
use crate::port::host_key::{self, HostKeyError};
use crate::port::hub::{Contact, Hub};
use crate::port::identity::{Identity, IdentityError, IdentityFolder};
use crate::port::local_tls::{LeafError, LocalLeaf};
use crate::port::mounts::Mounts;
use crate::port::pbs::Direct;
use crate::port::privilege::Unprivileged;
use crate::port::pve::storekeeper;
use crate::port::pve::{ApiToken, Pve, PveClient, PveSettings, RealPace, Role, SetUpError};
use crate::port::status_door::{self, DoorError};
use crate::port::store::roster::LaidDown;
use crate::port::store::{OpenError, Store};
use crate::port::trust_files;
use crate::settings::{ScratchSettings, SecretFileError, Settings, TokenSettings, TrustSettings};
use crate::task::escrow::{EscrowTask, HubCopies};
use crate::task::hub_sync::HubSync;
use crate::task::local_api::{self, ListenError, Listeners};
use crate::task::observe::Eye;
use crate::task::reconcile::{LOOK_AT_LEAST, Reconcile};
use crate::task::report::ReportTask;
use crate::task::status::StatusTask;
use crate::task::stop::{self, Stop, Stopper};
use crate::task::storage::StorageTask;
use crate::task::watchdog::WatchdogTask;

/// How often the host is looked at before there is a document that says how often.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Loops end within their own farewells (three seconds); more than this means that one hangs.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Why the agent did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database, or another agent on it.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The identity's files.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Not enrolled.
    #[error("this box is not enrolled: get an invite (`holdfast host invite NAME`) and run `agentd enroll`")]
    NotEnrolled,
    /// The certificate for guests.
    #[error(transparent)]
    Leaf(#[from] LeafError),
    /// The host's own key.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// The local API's address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The status socket.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// A token's secret.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The client for Proxmox.
    #[error(transparent)]
    Proxmox(#[from] SetUpError),
    /// A setting that other parts would not take.
    #[error("the configuration is refused at `{at}`: {rule}")]
    Setting {
        /// The key.
        at: String,
        /// What is expected.
        rule: &'static str,
    },
    /// The kernel.
    #[error("the kernel refuses what a daemon needs ({what})")]
    Kernel {
        /// What was asked.
        what: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A loop that should run for ever.
    #[error(
        "a part of the agent ended by itself ({part}): this is a fault of this program; it is to be started again"
    )]
    PartEnded {
        /// Which.
        part: &'static str,
    },
}

impl RunError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Store(OpenError::Held(_)) => 75,
            Self::Store(_) | Self::Identity(_) | Self::Leaf(_) | Self::HostKey(_) | Self::Door(_) => 74,
            Self::NotEnrolled | Self::Secret(_) | Self::Proxmox(_) | Self::Setting { .. } => 78,
            Self::Listen(_) => 69,
            Self::Kernel { .. } => 71,
            Self::PartEnded { .. } => 70,
        }
    }
}

/// The channels between the loops.
struct Wires {
    view: watch::Sender<Arc<View>>,
    storage: watch::Sender<Arc<StorageView>>,
    sections: watch::Sender<Arc<Sections>>,
    contact: watch::Sender<Contact>,
    lines: watch::Sender<ProgressLines>,
    heavy: HeavyLane,
    failpoints: Arc<dyn Failpoints>,
    pruners: watch::Sender<Arc<Pruners>>,
}

/// Everything that is opened before the first loop starts.
struct Parts {
    clock: Arc<dyn Clock>,
    store: Store,
    folder: IdentityFolder,
    identity: Identity,
    leaf: LocalLeaf,
    host_key: Arc<HostKey>,
    keeper: Option<Keeper>,
    pve: Arc<dyn Pve>,
    scratch: Option<Arc<dyn Pve>>,
    policy: Policy,
    artifacts: Artifacts,
    handed: HandOverFolder,
    quiesce_bound: QuiesceBound,
}

/// Runs the agent until it is asked to stop.
///
/// # Errors
/// [`RunError`].
pub async fn run(settings: Settings, _nobody: Unprivileged) -> Result<(), RunError> {
    let mut signals = Signals::listen()?;
    let parts = Parts::open(&settings)?;
    let laid_down = lay_down(&settings.trust, &parts).await;
    let doors = Doors::bind(&settings).await?;
    let (stopper, stop) = stop::pair();
    let mut tasks = start(&settings, parts, doors, &stop, laid_down)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "the agent runs");
    let outcome = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "the agent is asked to stop");
            Ok(())
        }
        ended = tasks.join_next() => Err(RunError::PartEnded { part: part_name(ended) }),
    };
    shut_down(&stopper, tasks).await;
    outcome
}

/// Puts into use what root laid down. A file that is not taken stops nothing but itself: those in use stay, guests are kept
/// all the same, and it is told for as long as this agent runs.
async fn lay_down(trust: &TrustSettings, parts: &Parts) -> Option<Problem> {
    let refused = |error: &dyn std::error::Error| {
        let text = format!("operators and policy are not taken as they lie on this box: {}", chain(error));
        tracing::error!("{text}");
        Some(Problem::new(ErrorCode::TrustFile, text))
    };
    let texts = match trust_files::laid_down(&trust.operators, &trust.policy) {
        Ok(Some(texts)) => texts,
        Ok(None) => {
            tracing::info!("no operators file is laid down");
            return None;
        }
        Err(error) => return refused(&error),
    };
    match parts.store.lay_down(texts, parts.clock.now()).await {
        Ok(LaidDown::Taken) => tracing::info!("operators and policy are in use as root laid them down"),
        Ok(LaidDown::Same) => {}
        Ok(LaidDown::Older(version)) => {
            tracing::info!(version, "the operators and policy on disk are older than the signed ones in use")
        }
        Err(error) => return refused(&error),
    }
    None
}

/// Where guests call, and where throwaway guests do.
struct Doors {
    guests: Listeners,
    tests: Listeners,
}

impl Doors {
    async fn bind(settings: &Settings) -> Result<Self, RunError> {
        let speech = settings.scratch.as_ref().and_then(|scratch| scratch.speech.as_ref());
        let tests = speech.map(|speech| speech.door);
        Ok(Self {
            guests: Listeners::bind(&settings.local_api.listen).await?,
            // The bridge of tests may be made later, or anew: without it nothing is tried, and guests are served all the same.
            tests: Listeners::bind_ahead(tests.as_slice())?,
        })
    }
}

type Tasks = JoinSet<&'static str>;

fn part_name(ended: Option<Result<&'static str, tokio::task::JoinError>>) -> &'static str {
    match ended {
        Some(Ok(name)) => name,
        Some(Err(error)) => {
            tracing::error!(%error, "a loop broke");
            "unknown"
        }
        None => "all",
    }
}

async fn shut_down(stopper: &Stopper, mut tasks: Tasks) {
    stopper.stop();
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_MAX, ended).await.is_err() {
        tracing::warn!("a loop did not end in time and was cut off");
    }
}

impl Parts {
    fn open(settings: &Settings) -> Result<Self, RunError> {
        let state: &Path = &settings.state.dir;
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        // First of all: it holds the lock that keeps a second agent away from everything else in the folder.
        let store = Store::open(state, clock.now())?;
        let folder = IdentityFolder::open(state)?;
        let identity = folder.read()?.ok_or(RunError::NotEnrolled)?;
        let leaf = LocalLeaf::open(state)?;
        let host_key = Arc::new(host_key::open(state)?);
        let keeper = keeper(settings, &host_key)?;
        let pve = PveClient::new(&pve_settings(settings)?, Arc::new(RealPace::default()))?;
        Ok(Self {
            quiesce_bound: settings.quiesce.bound_s,
            artifacts: Artifacts::of(state),
            handed: HandOverFolder::of(state),
            clock,
            store,
            folder,
            identity,
            leaf,
            host_key,
            keeper,
            scratch: pve.for_scratch().map(|pve| Arc::new(pve) as Arc<dyn Pve>),
            pve: Arc::new(pve),
            policy: policy(settings)?,
        })
    }
}

fn start(
    settings: &Settings,
    parts: Parts,
    doors: Doors,
    stop: &Stop,
    laid_down: Option<Problem>,
) -> Result<Tasks, RunError> {
    let wires = Wires {
        view: watch::channel(Arc::new(View::default())).0,
        storage: watch::channel(Arc::new(StorageView::default())).0,
        sections: watch::channel(Arc::new(Sections::default())).0,
        lines: watch::channel(ProgressLines::new()).0,
        heavy: HeavyLane::new(limits::HEAVY_AT_ONCE),
        failpoints: failpoint::from_environment(),
        pruners: watch::channel(Arc::default()).0,
        contact: watch::channel(Contact {
            reached_at: None,
            problem: None,
            certificate_ends_at: parts.identity.enrolled.not_after,
        })
        .0,
    };
    let status_door = status_door::open(&settings.state.dir)?;
    let bound =
        doors.guests.addresses().map_err(|source| RunError::Kernel { what: "its own addresses", source })?;
    let first = bound.first().ok_or(RunError::Setting {
        at: "local_api.listen".to_owned(),
        rule: "at least one address of the guests' bridge, with port",
    })?;
    let guest_door = GuestDoor { endpoint: format!("https://{first}"), pin: parts.leaf.pin() };

    let mut tasks = Tasks::new();
    start_local_api(&mut tasks, &parts, &wires, doors, stop)?;
    let standing = laid_down.into_iter().collect();
    start_tellers(&mut tasks, &parts, &wires, (status_door, standing), stop);
    start_storage(&mut tasks, &parts, &wires, stop);
    start_reconcile(&mut tasks, settings, &parts, &wires, guest_door, stop);
    let sync = HubSync {
        folder: parts.folder,
        identity: parts.identity,
        handed: parts.handed,
        store: parts.store,
        sections: wires.sections.subscribe(),
        contact: wires.contact,
        clock: parts.clock,
        dial: Arc::new(Hub::enrolled),
        failpoints: wires.failpoints,
        spread,
    };
    let stop = stop.clone();
    tasks.spawn(async move {
        sync.run(stop).await;
        "hub_sync"
    });
    Ok(tasks)
}

fn start_local_api(
    tasks: &mut Tasks,
    parts: &Parts,
    wires: &Wires,
    doors: Doors,
    stop: &Stop,
) -> Result<(), RunError> {
    let local = Local::new(
        parts.store.clone(),
        Arc::clone(&parts.clock),
        wires.view.subscribe(),
        Standing {
            pin: parts.leaf.pin(),
            hub: parts.identity.hub.clone(),
            quiesce_bound: parts.quiesce_bound,
            test_guest: parts.policy.scratch.as_ref().and_then(TestPlace::guest_address),
            artifacts: parts.artifacts.clone(),
        },
    );
    let calls = [(doors.guests, router(Arc::clone(&local))), (doors.tests, test_router(local))];
    for (listeners, router) in calls.into_iter().filter(|(listeners, _)| !listeners.is_empty()) {
        let (tls, stop) = (parts.leaf.server()?, stop.clone());
        tasks.spawn(async move {
            local_api::run(listeners, tls, router, stop).await;
            "local_api"
        });
    }
    Ok(())
}

/// Those who only tell: the report, the status door, systemd.
fn start_tellers(
    tasks: &mut Tasks,
    parts: &Parts,
    wires: &Wires,
    (door, standing): (tokio::net::UnixListener, Vec<Problem>),
    stop: &Stop,
) {
    let report = ReportTask {
        store: parts.store.clone(),
        view: wires.view.subscribe(),
        storage: wires.storage.subscribe(),
        sections: wires.sections.clone(),
        clock: Arc::clone(&parts.clock),
        started_at: parts.clock.now(),
        standing,
        handed: parts.handed.clone(),
        recipient: parts.host_key.recipient().ok(),
    };
    let status = StatusTask {
        host: parts.identity.enrolled.host_id,
        host_name: parts.identity.enrolled.host_name.clone(),
        hub: parts.identity.hub.clone(),
        contact: wires.contact.subscribe(),
        store: parts.store.clone(),
        handed: parts.handed.clone(),
        sections: wires.sections.subscribe(),
        view: wires.view.subscribe(),
        lines: wires.lines.subscribe(),
        heavy: wires.heavy.watch(),
        clock: Arc::clone(&parts.clock),
        failpoints: Arc::clone(&wires.failpoints),
    };
    let watchdog = WatchdogTask {
        view: wires.view.subscribe(),
        sections: wires.sections.subscribe(),
        contact: wires.contact.subscribe(),
        clock: Arc::clone(&parts.clock),
    };
    let (for_report, for_status, for_watchdog) = (stop.clone(), stop.clone(), stop.clone());
    tasks.spawn(async move {
        report.run(for_report).await;
        "report"
    });
    tasks.spawn(async move {
        status.run(door, for_status).await;
        "status"
    });
    tasks.spawn(async move {
        watchdog.run(for_watchdog).await;
        "watchdog"
    });
}

fn start_storage(tasks: &mut Tasks, parts: &Parts, wires: &Wires, stop: &Stop) {
    let storage = StorageTask {
        store: parts.store.clone(),
        helper: Helper::shipped(),
        mounts: Arc::new(Mounts::of_the_kernel()),
        view: wires.storage.clone(),
        pve: Arc::clone(&parts.pve),
        keeper: parts.keeper.clone(),
        asker: Asker { key: Arc::clone(&parts.host_key), dial: Arc::new(Direct) },
        pruners: wires.pruners.clone(),
        clock: Arc::clone(&parts.clock),
    };
    let copies = EscrowTask {
        store: parts.store.clone(),
        storage: wires.storage.subscribe(),
        hub: HubCopies { folder: parts.folder.clone(), dial: Arc::new(Hub::enrolled) },
        clock: Arc::clone(&parts.clock),
        failpoints: Arc::clone(&wires.failpoints),
    };
    let (stop, for_copies) = (stop.clone(), stop.clone());
    tasks.spawn(async move {
        storage.run(stop).await;
        "storage"
    });
    tasks.spawn(async move {
        copies.run(for_copies).await;
        "escrow"
    });
}

fn start_reconcile(
    tasks: &mut Tasks,
    settings: &Settings,
    parts: &Parts,
    wires: &Wires,
    door: GuestDoor,
    stop: &Stop,
) {
    let policy = parts.policy.clone();
    let storages: BTreeSet<_> =
        [Some(&policy.storage), policy.bulk_storage.as_ref(), policy.backup_storage.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
    let eye = Eye::new(Arc::clone(&parts.pve), Arc::clone(&parts.clock), policy.pool.clone(), storages);
    let ports = Ports::new(Arc::clone(&parts.pve), parts.store.clone(), Arc::clone(&parts.clock), door);
    let (lines, heavy) = (wires.lines.clone(), wires.heavy.clone());
    let (scratch, failpoints) = (parts.scratch.clone(), Arc::clone(&wires.failpoints));
    let (pruners, artifacts) = (wires.pruners.subscribe(), parts.artifacts.clone());
    let ports = Ports { scratch, lines, heavy, failpoints, pruners, artifacts, ..ports };
    let reconcile = Reconcile {
        ports,
        eye,
        policy,
        node: settings.proxmox.node.clone(),
        every: LOOK_EVERY,
        at_least: LOOK_AT_LEAST,
        view: wires.view.clone(),
        stop: stop.clone(),
    };
    tasks.spawn(async move {
        reconcile.run().await;
        "reconcile"
    });
}

/// What the client for Proxmox needs, read from the settings and the files they name.
///
/// # Errors
/// When a secret cannot be read.
pub fn pve_settings(settings: &Settings) -> Result<PveSettings, SecretFileError> {
    let proxmox = &settings.proxmox;
    let token = |token: &TokenSettings| Ok(ApiToken { id: token.id.clone(), secret: token.read_secret()? });
    let mut tokens = BTreeMap::from([
        (Role::Observe, token(&proxmox.tokens.observe)?),
        (Role::Operate, token(&proxmox.tokens.operate)?),
        (Role::Allocate, token(&proxmox.tokens.allocate)?),
    ]);
    if let Some(scratch) = &settings.scratch {
        tokens.insert(Role::Scratch, token(&scratch.token)?);
    }
    Ok(PveSettings {
        url: proxmox.url.clone(),
        node: proxmox.node.clone(),
        trust: Trust::Pins(proxmox.pins.clone()),
        tokens,
    })
}

/// What may change entries of storages. Its token stays sealed until a signed job wants it.
fn keeper(settings: &Settings, key: &Arc<HostKey>) -> Result<Option<Keeper>, SetUpError> {
    let Some(entries) = &settings.storage_entries else { return Ok(None) };
    let carrier = storekeeper::carrier(&settings.proxmox.url, &Trust::Pins(settings.proxmox.pins.clone()))?;
    let (token, targets) = (entries.sealed_token.clone(), entries.targets.clone());
    Ok(Some(Keeper { key: Arc::clone(key), token, carrier, targets }))
}

/// What root named in the configuration, and so approved where it stands with its digest.
fn policy(settings: &Settings) -> Result<Policy, RunError> {
    let refused = |at: String, rule| RunError::Setting { at, rule };
    let proxmox = &settings.proxmox;
    let mut goldens = BTreeMap::new();
    for (index, golden) in settings.golden.iter().enumerate() {
        let named = golden.sha256.as_ref().map(|text| Sha256Hex::try_from(text.to_ascii_lowercase()));
        let sha256 = named.transpose().map_err(|rule| refused(format!("golden[{index}].sha256"), rule))?;
        let archive = VolumeId::new(golden.archive.clone());
        let file = golden.file.clone();
        goldens.insert(golden.version.clone(), Golden { archive, sha256, file, made_at: None });
    }
    Ok(Policy {
        range: VmidRange::try_from(proxmox.vmid_range)
            .map_err(|rule| refused("proxmox.vmid_range".to_owned(), rule))?,
        pool: proxmox.pool.clone(),
        storage: proxmox.storage.clone(),
        bulk_storage: proxmox.bulk_storage.clone(),
        backup_storage: proxmox.backup_storage.clone(),
        bridge: proxmox.bridge.clone(),
        goldens,
        golden_dump: settings.golden_dump.as_ref().map(|dump| GoldenDump {
            storage: dump.storage.clone(),
            folder: dump.folder.clone(),
            refresh_days: dump.refresh_days,
        }),
        brake: settings.brake.rule(),
        scratch: settings.scratch.as_ref().map(|scratch| test_place(scratch, &proxmox.bridge)).transpose()?,
    })
}

fn test_place(scratch: &ScratchSettings, bridge: &BridgeName) -> Result<TestPlace, RunError> {
    let refused = |rule| RunError::Setting { at: "scratch.vmid_range".to_owned(), rule };
    Ok(TestPlace {
        range: VmidRange::try_from(scratch.vmid_range).map_err(refused)?,
        pool: scratch.pool.clone(),
        storage: scratch.storage.clone(),
        bridge: bridge.clone(),
        memory: scratch.memory_mib,
        cores: scratch.cores,
        speech: scratch.speech.clone(),
    })
}

/// The two signals that ask a daemon to stop.
struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, RunError> {
        let kernel = |source| RunError::Kernel { what: "signals", source };
        Ok(Self {
            term: signal(SignalKind::terminate()).map_err(kernel)?,
            interrupt: signal(SignalKind::interrupt()).map_err(kernel)?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
