//! The node: everything the calls work on, put together once.
//!
//! [`World`] is what changes under one lock (access, storages, guests); tasks, faults and the clock have their own. Long work such as
//! unpacking an archive is done without the lock, behind the guest's `lock:` value, as on the real one.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::access::config::AccessConfig;
use crate::access::credential::{Caller, Secrets};
use crate::access::evaluate::Judge;
use crate::clock::{Clock, Settable};
use crate::fail::{Fallible, host};
use crate::fault::Faults;
use crate::guard::{Guard, Watch};
use crate::guest::config_folder::ConfigFolder;
use crate::power::Power;
use crate::schema::table::{Table, TableError};
use crate::state::Paths;
use crate::storage::config::StorageConfig;
use crate::storage::volume::Store;
use crate::task::index::{Tasks, write_whole};

/// Knobs of an instance.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a worker rests between its steps.
    pub pace: Duration,
    /// How long a failed login is held back; the real one takes three seconds.
    pub login_delay: Duration,
    /// Whether a running guest takes a new mount point.
    pub hot_mounts: HotMounts,
    /// The fingerprint shown by `/nodes`.
    pub fingerprint: String,
    /// Whether requests are watched for what our agent must never send.
    pub watch: Watch,
    /// How old the figures of guests may be in the list of the cluster's resources.
    pub figures: Figures,
}

/// How old the figures of guests may be in the list of the cluster's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// They are read for each answer.
    Live,
    /// They are from the last round of the status daemon, which runs every so many seconds. Locks, tags and pools are live.
    Every(i64),
}

/// Whether the node is going down in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoingDown {
    Yes,
    /// It is not.
    No,
}

/// Whether a running guest takes a new mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HotMounts {
    Work,
    /// The node has no AppArmor, and the attempt fails; its kernel has no traffic control either.
    NoAppArmor,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pace: Duration::from_millis(20),
            login_delay: Duration::from_secs(3),
            hot_mounts: HotMounts::Work,
            fingerprint: String::new(),
            watch: Watch::Off,
            figures: Figures::Live,
        }
    }
}

/// What changes under the lock.
#[derive(Debug)]
pub struct World {
    /// Users, roles, access lists, pools.
    pub access: AccessConfig,
    pub secrets: Secrets,
    pub storage: StorageConfig,
    pub guests: ConfigFolder,
    paths: Paths,
    root: std::path::PathBuf,
    run: std::path::PathBuf,
}

#[derive(Debug)]
pub struct Node {
    /// `pve1`
    pub name: String,
    /// The call table.
    pub table: Arc<Table>,
    /// Where things are.
    pub paths: Paths,
    pub clock: Arc<dyn Clock>,
    /// The same clock, for a caller that sets it wrong on purpose.
    pub settable: Arc<Settable>,
    pub settings: Settings,
    pub tasks: Tasks,
    pub faults: Faults,
    /// What must never be sent.
    pub guard: Guard,
    /// Which guests run.
    pub power: Power,
    /// Only one backup job at a time.
    pub backup_lock: Mutex<()>,
    /// The last round of the status daemon.
    pub round: Mutex<crate::round::Round>,
    /// Sizes of guests' folders.
    pub folder_sizes: Mutex<crate::folder_sizes::FolderSizes>,
    going_down: AtomicBool,
    world: Mutex<World>,
}

/// Why a node cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The committed call table is broken.
    #[error("the call table is not usable")]
    Table(#[source] TableError),
    /// The state folder cannot be used.
    #[error(
        "the state folder cannot be used; check that it is writable and was written by this program: {what}"
    )]
    State {
        what: &'static str,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

impl Node {
    /// Opens a seeded state folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(
        state: &Path,
        clock: Arc<dyn Clock>,
        settings: Settings,
        power: Power,
    ) -> Result<Arc<Self>, OpenError> {
        let paths = Paths::new(state);
        let name = "pve1".to_owned();
        let state = |what| move |source| OpenError::State { what, source };
        let text = |file: &str| match std::fs::read_to_string(paths.etc(file)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            other => other,
        };
        let secrets = Secrets {
            tokens: Secrets::parse(&text("token.cfg").map_err(state("token.cfg"))?, ' '),
            passwords: Secrets::parse(&text("shadow.cfg").map_err(state("shadow.cfg"))?, ':'),
            key: text("ticket.key").map_err(state("ticket.key"))?,
        };
        let world = World {
            access: AccessConfig::parse(&text("user.cfg").map_err(state("user.cfg"))?),
            secrets,
            storage: StorageConfig::parse(&text("storage.cfg").map_err(state("storage.cfg"))?),
            guests: ConfigFolder::open(&paths.lxc(), &name).map_err(state("lxc"))?,
            root: paths.root(),
            run: paths.run(),
            paths: paths.clone(),
        };
        let settable = Arc::new(Settable::new(clock));
        let clock: Arc<dyn Clock> = Arc::<Settable>::clone(&settable);
        let tasks = Tasks::open(&paths.tasks(), clock.now_s()).map_err(state("tasks"))?;
        let table = Table::shared().map_err(OpenError::Table)?;
        let guard = Guard::open(settings.watch, &paths.run()).map_err(state("guard.jsonl"))?;
        Ok(Arc::new(Self {
            name,
            table,
            paths,
            clock,
            settable,
            settings,
            tasks,
            faults: Faults::default(),
            guard,
            power,
            backup_lock: Mutex::new(()),
            round: Mutex::default(),
            folder_sizes: Mutex::default(),
            going_down: AtomicBool::new(false),
            world: Mutex::new(world),
        }))
    }

    /// Takes the lock. Held only for short, synchronous work.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends going down.
    pub fn go_down(&self, is: GoingDown) {
        self.going_down.store(is == GoingDown::Yes, Ordering::SeqCst);
    }

    /// Whether it is going down in good order.
    #[must_use]
    pub fn is_going_down(&self) -> bool {
        self.going_down.load(Ordering::SeqCst)
    }

    /// A fresh MAC address with the vendor's prefix.
    #[must_use]
    pub fn fresh_mac(&self) -> String {
        let mut tail = [0_u8; 3];
        self.clock.random(&mut tail);
        let [a, b, c] = tail;
        format!("BC:24:11:{a:02X}:{b:02X}:{c:02X}")
    }
}

impl World {
    /// Judges for a caller.
    #[must_use]
    pub fn judge<'a>(&'a self, who: &'a Caller) -> Judge<'a> {
        Judge { config: &self.access, who: &who.id }
    }

    /// The storages with their places.
    #[must_use]
    pub fn store(&self) -> Store<'_> {
        Store { config: &self.storage, root: &self.root, run: &self.run }
    }

    /// Writes the user configuration and the secrets.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save_access(&self) -> Fallible<()> {
        let write = |name: &str, text: String| {
            write_whole(&self.paths.etc(name), &text)
                .map_err(|error| host("write of user configuration", &error))
        };
        write("user.cfg", self.access.print())?;
        write("token.cfg", Secrets::print(&self.secrets.tokens, ' '))?;
        write("shadow.cfg", Secrets::print(&self.secrets.passwords, ':'))
    }

    /// Writes the storage configuration.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_storage(&self) -> Fallible<()> {
        write_whole(&self.paths.etc("storage.cfg"), &self.storage.print())
            .map_err(|error| host("write of storage configuration", &error))
    }
}
