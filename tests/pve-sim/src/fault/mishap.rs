//! The list of faults that a seed can choose from.
//!
//! In: a [`Mishap`], its target, and random numbers from the caller. Out: the [`Order`]s that cause it; and from [`heal`] those that
//! repair the node. Deliberately absent: chance itself, and what must hold afterwards.
use super::admin::Edit;
use super::control::Order;
use super::{Aim, Fault};

/// The guest, storages and token that a mishap hits.
#[derive(Debug, Clone)]
pub struct Target {
    pub vmid: u32,
    /// The storage of its volumes.
    pub storage: String,
    /// The storage of its backups.
    pub backups: String,
    /// One of the agent's tokens.
    pub token: String,
}

/// Who causes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A call or its answer fails, once.
    Wire,
    /// A worker fails, once.
    Worker,
    /// The node is not as it should be, until it is healed.
    Node,
    /// A person changes the guest, and nothing undoes it.
    Hand,
}

macro_rules! mishaps {
    ($($name:ident: $origin:ident, $text:literal;)*) => {
        /// One kind of failure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Mishap { $(#[doc = $text] $name),* }

        impl Mishap {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Who causes it.
            #[must_use]
            pub const fn origin(self) -> Origin {
                match self { $(Self::$name => Origin::$origin),* }
            }

            /// A short description.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

mishaps! {
    LostReply: Wire, "a reply is lost";
    LostRequest: Wire, "a request is lost";
    CutBody: Wire, "half a body arrives";
    HtmlBody: Wire, "a page instead of JSON";
    DaemonDown: Wire, "595";
    DaemonSlow: Wire, "596, and yet it takes effect";
    Unauthorised: Wire, "401 for one call";
    Unavailable: Wire, "503";
    NoClusterFiles: Wire, "the cluster's files are gone for one call";
    Outage: Wire, "the daemon restarts";
    HeldConfig: Wire, "a guest's lock file is held";
    KilledWorker: Worker, "a worker is killed";
    FailedWorker: Worker, "a worker fails";
    UnknownEnd: Worker, "unexpected status after all was done";
    VanishedTask: Worker, "a task vanishes from the index";
    Warning: Worker, "WARNINGS: 1";
    KeptVolume: Worker, "destroy says OK and leaves a volume";
    NoGrowth: Worker, "resize says OK and nothing grew";
    NoArchive: Worker, "vzdump says OK and there is no archive";
    Orphan: Worker, "a backup's worker dies and its client goes on";
    HeldBackups: Worker, "the lock for backups is held";
    StorageAway: Node, "a storage is away";
    BackupsAway: Node, "the backups' storage is away";
    StorageFull: Node, "a storage is full";
    NoQuorum: Node, "no configuration can be written";
    DeadToken: Node, "a token has expired";
    ClockAhead: Node, "the node's clock is ahead";
    ClockBehind: Node, "the node's clock is behind";
    Reboot: Node, "the node reboots";
    HandStop: Hand, "somebody stops the guest";
    HandStart: Hand, "somebody starts the guest";
    HandDestroy: Hand, "somebody destroys the guest";
    Reuse: Hand, "somebody reuses the number";
    Impostor: Hand, "somebody restores another guest under the number, tags and all";
    Unmark: Hand, "somebody removes the mark";
    Unpool: Hand, "somebody takes the guest out of the pool";
    Unprotect: Hand, "somebody takes protection off";
    Attach: Hand, "somebody attaches a volume";
    Resize: Hand, "somebody changes the memory";
    Lock: Hand, "somebody locks the guest";
}

/// Parts of paths that a fault on the wire may be aimed at.
pub const PATHS: &[(&str, &str)] = &[
    ("POST", "/nodes/pve1/lxc"),
    ("POST", "/status/start"),
    ("POST", "/status/stop"),
    ("POST", "/status/shutdown"),
    ("POST", "/vzdump"),
    ("POST", "/snapshot"),
    ("POST", "/rollback"),
    ("POST", "/move_volume"),
    ("DELETE", "/snapshot/"),
    ("DELETE", "/lxc/"),
    ("PUT", "/config"),
    ("PUT", "/resize"),
    ("GET", "/config"),
    ("GET", "/status/current"),
    ("GET", "/tasks"),
    ("GET", "/content"),
    ("GET", "/cluster/"),
    ("GET", "/lxc"),
    ("", ""),
];

/// Kinds of workers and the phases in which one may die.
pub const PHASES: &[(&str, &str)] = &[
    ("vzrestore", "start"),
    ("vzrestore", "recovering"),
    ("vzrestore", "unpacking"),
    ("vzrestore", "unpacked"),
    ("vzrestore", "configured"),
    ("vzstart", "start"),
    ("vzstart", "booted"),
    ("vzstop", "start"),
    ("vzshutdown", "start"),
    ("resize", "start"),
    ("resize", "resized"),
    ("vzdump", "start"),
    ("vzdump", "locked"),
    ("vzdump", "snapshotting"),
    ("vzdump", "snapshotted"),
    ("vzdump", "copy"),
    ("vzsnapshot", "snapshotting"),
    ("vzsnapshot", "snapshotted"),
    ("vzdelsnapshot", "deleting"),
    ("vzrollback", "start"),
    ("vzrollback", "rolling back"),
    ("move_volume", "start"),
    ("move_volume", "copied"),
    ("vzdestroy", "start"),
    ("vzdestroy", "freed"),
];

fn pick<T: Clone>(list: &[T], draw: &mut dyn FnMut() -> u64) -> Option<T> {
    let at = draw().checked_rem(list.len() as u64)?;
    list.get(usize::try_from(at).ok()?).cloned()
}

fn aim(draw: &mut dyn FnMut() -> u64) -> Aim {
    let (method, path) = pick(PATHS, draw).unwrap_or(("", ""));
    Aim { method: method.to_owned(), path: path.to_owned() }
}

fn worker(draw: &mut dyn FnMut() -> u64) -> (String, String) {
    let (task, phase) = pick(PHASES, draw).unwrap_or(("vzdump", ""));
    (task.to_owned(), phase.to_owned())
}

impl Mishap {
    /// The orders that cause it.
    pub fn orders(self, target: &Target, draw: &mut dyn FnMut() -> u64) -> Vec<Order> {
        match self.origin() {
            Origin::Wire => vec![Order::Arm(self.on_the_wire(target, draw))],
            Origin::Worker => vec![Order::Arm(self.in_a_worker(target, draw))],
            Origin::Node => vec![Order::Edit(self.of_the_node(target, draw))],
            Origin::Hand => self.by_hand(target).into_iter().map(Order::Edit).collect(),
        }
    }

    fn on_the_wire(self, target: &Target, draw: &mut dyn FnMut() -> u64) -> Fault {
        match self {
            Self::LostReply => Fault::LostReply { on: aim(draw) },
            Self::LostRequest => Fault::LostRequest { on: aim(draw) },
            Self::CutBody => Fault::CutBody { on: aim(draw) },
            Self::HtmlBody => Fault::HtmlBody { on: aim(draw) },
            Self::DaemonDown => Fault::DaemonDown { on: aim(draw) },
            Self::DaemonSlow => Fault::DaemonSlow { on: aim(draw) },
            Self::Unauthorised => Fault::Unauthorised { on: aim(draw) },
            Self::Unavailable => Fault::Unavailable { on: aim(draw) },
            Self::NoClusterFiles => Fault::NoClusterFiles { on: aim(draw) },
            Self::HeldConfig => Fault::HeldConfig { vmid: target.vmid },
            _ => Fault::Outage { calls: 1 + u32::try_from(draw() % 6).unwrap_or(0) },
        }
    }

    fn in_a_worker(self, target: &Target, draw: &mut dyn FnMut() -> u64) -> Fault {
        let (task, phase) = worker(draw);
        let vmid = target.vmid;
        match self {
            Self::KilledWorker => Fault::KillWorker { task, phase },
            Self::FailedWorker => {
                Fault::FailWorker { task, phase, text: "command failed: exit code 5".to_owned() }
            }
            Self::UnknownEnd => Fault::UnknownEnd { task },
            Self::VanishedTask => Fault::VanishTask { task },
            Self::Warning => Fault::WarnWorker { task },
            Self::KeptVolume => Fault::KeepVolume { vmid },
            Self::NoGrowth => Fault::NoGrow { vmid },
            Self::NoArchive => Fault::NoArchive { vmid },
            Self::Orphan => Fault::OrphanBackup { vmid, after_ms: draw() % 50 },
            _ => Fault::HeldBackups,
        }
    }

    fn of_the_node(self, target: &Target, draw: &mut dyn FnMut() -> u64) -> Edit {
        let seconds = i64::try_from(1 + draw() % 7_200).unwrap_or(1);
        match self {
            Self::StorageAway => Edit::StorageOffline { storage: target.storage.clone() },
            Self::BackupsAway => Edit::StorageOffline { storage: target.backups.clone() },
            Self::StorageFull => Edit::StorageFill { storage: target.storage.clone(), percent: Some(100) },
            Self::NoQuorum => Edit::Quorum { held: false },
            Self::DeadToken => Edit::TokenExpiry { id: target.token.clone(), expire: 1 },
            Self::ClockAhead => Edit::Clock { ahead_s: seconds },
            Self::ClockBehind => Edit::Clock { ahead_s: -seconds },
            _ => Edit::Reboot,
        }
    }

    fn by_hand(self, target: &Target) -> Vec<Edit> {
        let vmid = target.vmid;
        let unset = |key: &str| Edit::Unset { vmid, key: key.to_owned() };
        match self {
            Self::HandStop => vec![Edit::Stop { vmid }],
            Self::HandStart => vec![Edit::Start { vmid }],
            Self::HandDestroy => vec![Edit::Destroy { vmid }],
            Self::Reuse => vec![Edit::Reuse { vmid, storage: target.storage.clone() }],
            Self::Impostor => vec![Edit::Impostor { vmid, storage: target.storage.clone() }],
            Self::Unmark => vec![unset("tags"), unset("description")],
            Self::Unpool => vec![Edit::Unpool { vmid }],
            Self::Unprotect => vec![unset("protection")],
            Self::Resize => vec![Edit::Set { vmid, key: "memory".to_owned(), value: "99".to_owned() }],
            Self::Lock => vec![Edit::Set { vmid, key: "lock".to_owned(), value: "disk".to_owned() }],
            _ => vec![Edit::Attach {
                vmid,
                key: "mp9".to_owned(),
                storage: target.storage.clone(),
                mount: "/srv/by-hand".to_owned(),
            }],
        }
    }
}

/// The orders that end every lasting fault. Changes by hand stay, except a lock, which its owner removes.
#[must_use]
pub fn heal(target: &Target) -> Vec<Order> {
    let online = |storage: &String| Order::Edit(Edit::StorageOnline { storage: storage.clone() });
    vec![
        Order::Clear,
        online(&target.storage),
        online(&target.backups),
        Order::Edit(Edit::StorageFill { storage: target.storage.clone(), percent: None }),
        Order::Edit(Edit::Quorum { held: true }),
        Order::Edit(Edit::TokenExpiry { id: target.token.clone(), expire: 0 }),
        Order::Edit(Edit::Clock { ahead_s: 0 }),
    ]
}
