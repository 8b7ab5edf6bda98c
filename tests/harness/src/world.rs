//! One world: a simulated Proxmox and an agent's folder.
//!
//! In: a template's folder, copied. Out: agents that live until their story kills them, and what there is afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentd::execute::{DigestCache, GuestEndpoint, Ports};
use agentd::port::bridge::Bridges;
use agentd::port::clock::Clock;
use agentd::port::pve::{ApiToken, Pve, PveClient, Role};
use agentd::port::store::{OpenError, Store};
use agentd::port::target_probe::TargetProbe;
use agentd::task::observe::Observer;
use holdfast_protocol::pin::{Pin, PinKind};
use holdfast_protocol::secret::Secret;
use jiff::Timestamp;
use pve_sim::Sim;
use pve_sim::node::{Figures, Node};
use tempfile::TempDir;

use crate::clock::{BoxClock, SimClock, Timeline};
use crate::fixtures::Kit;
use crate::log::Log;
use crate::points::Conductor;
use crate::power::server::Served;
use crate::scene::Scene;
use crate::transport::InProcess;
use crate::window_memory::Memory;
use power_disk::fate::Fate;

/// How long a simulated worker rests between two of its steps.
const PACE: Duration = Duration::from_millis(40);

/// More requests than this in one story mean that the agent is in an endless loop.
const REQUESTS_MAX: usize = 20_000;

/// The beginning of the name of each process's own folder; its number follows.
const LISTING: &str = "holdfast-harness-";

/// Where this process makes its worlds: in memory where the machine offers it. Templates live as long as their process,
/// so leftovers of ended processes are removed first.
fn listing() -> &'static Path {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    OWN.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        for entry in std::fs::read_dir(&base).unwrap().flatten() {
            let owner =
                entry.file_name().to_str().and_then(|name| name.strip_prefix(LISTING)?.parse::<u32>().ok());
            if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
                // Another process may be doing the same at this moment.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let own = base.join(format!("{LISTING}{}", std::process::id()));
        std::fs::create_dir_all(&own).unwrap();
        own
    })
}

/// A fresh folder there.
#[must_use]
pub fn folder() -> TempDir {
    TempDir::new_in(listing()).unwrap()
}

/// Removes everything that this process made; no world is used afterwards.
pub fn clean_up() {
    std::fs::remove_dir_all(listing()).unwrap();
}

pub struct World {
    pub node: Arc<Node>,
    pub timeline: Timeline,
    pub log: Arc<Log>,
    /// The common parts.
    pub kit: Kit,
    /// The clock of the agent's host.
    pub box_clock: BoxClock,
    /// What the guests' controllers remember of windows.
    pub windows: Memory,
    patience: usize,
    clock: Arc<SimClock>,
    /// The disk that holds the agent's folder, when it is one that loses unsynced data.
    power: Option<Arc<Served>>,
    agent: PathBuf,
    dir: TempDir,
}

/// What a world begins with.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// The time at the beginning.
    pub at: Timestamp,
    /// The first process number, larger than any that the folder knows.
    pub number: u64,
    /// The seed of random values.
    pub seed: u64,
}

/// How often the node's status daemon looks, in seconds: its list of guests is as old as that.
const STATUS_ROUND_S: i64 = 10;

/// The seed folder of this crate.
fn seed_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seed")
}

impl World {
    /// Opens a world in a folder, which it owns from now on.
    #[must_use]
    pub fn open(dir: TempDir, beginning: Beginning, kit: Kit) -> Self {
        let timeline = Timeline::starting_at(beginning.at);
        let log = Arc::new(Log::default());
        let clock = Arc::new(SimClock::new(timeline, beginning.number, beginning.seed, Arc::clone(&log)));
        let opened = Sim::builder()
            .state_dir(dir.path().join("pve"))
            .seed(seed_folder())
            .clock(Arc::clone(&clock) as Arc<dyn pve_sim::clock::Clock>)
            .pace(PACE)
            .login_delay(Duration::ZERO)
            .figures(Figures::Every(STATUS_ROUND_S))
            .guard()
            .open()
            .unwrap();
        let box_clock = BoxClock::right(timeline);
        let patience = REQUESTS_MAX;
        let windows = Memory::default();
        let agent = dir.path().join("agent");
        Self {
            node: opened.node,
            timeline,
            log,
            kit,
            box_clock,
            windows,
            patience,
            clock,
            power: None,
            agent,
            dir,
        }
    }

    /// The same with another kit.
    #[must_use]
    pub fn with_kit(self, kit: Kit) -> Self {
        Self { kit, ..self }
    }

    /// The same for a story of weeks, in which even an idle agent sends many requests.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { patience: usize::MAX, ..self }
    }

    /// The simulator's state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("pve")
    }

    /// The agent's folder.
    #[must_use]
    pub fn agent_folder(&self) -> PathBuf {
        self.agent.clone()
    }

    /// Puts the agent's folder on a disk that loses its power before this change.
    pub fn lay_on_disk(&mut self, cut_at: u64) -> Arc<Served> {
        std::fs::create_dir_all(&self.agent).unwrap();
        let disk = Arc::new(Served::at(&self.agent, cut_at));
        self.power = Some(Arc::clone(&disk));
        disk
    }

    /// The power is back: the agent's folder is what is found on the disk. Programs of the previous life keep their
    /// open files, which accept nothing any more.
    pub fn power_is_back(&mut self, fate: Fate) {
        let Some(disk) = self.power.take() else { return };
        let found =
            tempfile::Builder::new().prefix("agent-found-").tempdir_in(self.dir.path()).unwrap().keep();
        disk.found(fate, &found);
        disk.take_out();
        self.agent = found;
    }

    /// An agent on this world, with the planned faults.
    pub async fn agent(&self, conductor: &Arc<Conductor>) -> Ports {
        let transport = InProcess {
            node: Arc::clone(&self.node),
            timeline: self.timeline,
            conductor: Arc::clone(conductor),
            log: Arc::clone(&self.log),
            patience: self.patience,
        };
        let node = "pve1".parse().unwrap();
        let pve =
            PveClient::over(Arc::new(transport), node, &self.tokens(), Arc::new(self.timeline)).unwrap();
        let store = self.store().await;
        let listener = GuestEndpoint {
            endpoint: "https://10.66.0.1:8443".to_owned(),
            pin: Pin::of(PinKind::Leaf, b"leaf"),
        };
        let clock: Arc<dyn Clock> = Arc::new(self.box_clock.clone());
        let failpoints = Arc::clone(conductor) as Arc<dyn agentd::execute::failpoint::Failpoints>;
        let scratch = pve.for_scratch().map(|pve| Arc::new(pve) as Arc<dyn Pve>);
        let bridges = self.bridges();
        Ports {
            failpoints,
            scratch,
            bridges,
            digests: digests(),
            targets: TargetProbe::reported(|_| Ok(())),
            ..Ports::new(Arc::new(pve), store, clock, listener)
        }
    }

    /// A bridge for tests, with nothing plugged in.
    fn bridges(&self) -> Bridges {
        let root = self.dir.path().join("net");
        std::fs::create_dir_all(root.join("hftest0/brif")).unwrap();
        Bridges::at(root)
    }

    /// The tasks of an agent that was just killed hold its folder until the runtime has dropped them.
    pub(crate) async fn store(&self) -> Store {
        std::fs::create_dir_all(self.agent_folder()).unwrap();
        self.store_in(&self.agent).await
    }

    /// The same of another folder.
    pub(crate) async fn store_in(&self, folder: &Path) -> Store {
        for _ in 0..1_000 {
            match Store::open_on_callers_thread(folder, self.box_clock.now()) {
                Err(OpenError::Held(_)) => tokio::task::yield_now().await,
                // Nothing runs on a host without power.
                Err(_) if self.power.as_ref().is_some_and(|disk| disk.is_cut()) => {
                    std::future::pending::<()>().await;
                }
                opened => return opened.unwrap(),
            }
        }
        panic!("somebody holds the agent's folder {}", folder.display())
    }

    /// The observer of the host for an agent.
    #[must_use]
    pub fn eye(&self, ports: &Ports) -> Observer {
        let policy = self.kit.policy();
        let storages = [Some(policy.storage), policy.bulk_storage, policy.backup_storage];
        let storages = storages.into_iter().flatten().collect();
        let place = ("pve1".parse().unwrap(), policy.pool);
        Observer::new(Arc::clone(&ports.pve), Arc::clone(&ports.clock), place, storages)
    }

    fn tokens(&self) -> BTreeMap<Role, ApiToken> {
        let world = self.node.world();
        [Role::Observe, Role::Operate, Role::Allocate, Role::Scratch]
            .into_iter()
            .map(|role| {
                let id = format!("hf@pve!{role}");
                let secret = Secret::new(world.secrets.tokens.get(&id).unwrap().clone());
                (role, ApiToken { id, secret })
            })
            .collect()
    }

    /// Waits until no task of the simulator runs any more.
    pub async fn settle(&self) {
        self.clock.settle().await;
    }

    /// What there is.
    #[must_use]
    pub fn scene(&self) -> Scene {
        Scene::of(&self.state())
    }

    /// The beginning of a template that is made of this world.
    #[must_use]
    pub fn ending(&self, seed: u64) -> Beginning {
        let at = self.timeline.now().checked_add(jiff::SignedDuration::from_mins(5)).unwrap();
        Beginning { at, number: self.clock.number() + 1, seed }
    }

    /// Gives the folder away.
    #[must_use]
    pub fn into_folder(self) -> TempDir {
        self.dir
    }
}

/// The golden's hash is computed once for all worlds.
fn digests() -> Arc<DigestCache> {
    static KEPT: OnceLock<Arc<DigestCache>> = OnceLock::new();
    Arc::clone(KEPT.get_or_init(Arc::default))
}

/// Copies a folder with everything in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
