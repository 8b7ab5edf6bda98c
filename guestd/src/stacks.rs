//! Stacks of this guest, from `/etc/holdfast/stacks.toml`.
//!
//! What comes in: the file. What goes out: stacks by name, checked as a whole, with the order in which they start. No
//! file: no stacks. Deliberately absent: which parts run; the drivers check that.

mod file;
mod order;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::{StackName, VolumeName};

pub use file::{StacksError, load};

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// In the order in which they start.
    pub stacks: Vec<Stack>,
    /// The longest time that stacks may stay stopped for a backup, even if the agent allows more.
    pub bound_max: Option<Duration>,
    /// What is done when packages change.
    pub apt: Apt,
    /// Unattended security upgrades.
    pub upgrades: Upgrades,
}

/// One stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub name: StackName,
    pub driver: DriverOf,
    /// Starts after these, and stops before them.
    pub after: Vec<StackName>,
    pub limits: Limits,
    pub hooks: Hooks,
    pub wanted: DefaultState,
    pub on_failure: OnFailure,
    pub restore_test: RestoreTest,
    /// By the variable that names the mount.
    pub volumes: BTreeMap<String, VolumeRef>,
}

/// What runs a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverOf {
    /// A project of Docker Compose.
    Compose(Project),
    /// Units of systemd.
    Systemd(Vec<String>),
}

/// Where a project of Docker Compose is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub directory: PathBuf,
    pub file: Option<PathBuf>,
    pub name: Option<String>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub stop: Duration,
    pub start: Duration,
    pub health: Duration,
    pub hook: Duration,
}

/// Programs of a stack's own, each a list of arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before it is stopped for a backup; the backup's window is given up when it fails.
    pub pre_quiesce: Option<Vec<String>>,
    /// After it runs again.
    pub post_resume: Option<Vec<String>>,
    /// Whether it is well.
    pub health: Option<Vec<String>>,
}

/// Whether a stack runs when the file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultState {
    #[default]
    Running,
    Stopped,
}

/// What is done when something of a stack ends by itself and not well, and nothing starts it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It is reported. A database that failed may be better examined before it is started.
    #[default]
    Report,
    /// It is reported and started, with growing pauses.
    Restart,
}

/// Whether a restore test starts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreTest {
    #[default]
    Check,
    Leave,
}

/// The volume that a variable refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRef {
    pub class: Class,
    /// Needed when there are several of the class.
    pub volume: Option<VolumeName>,
}

/// What a volume is kept on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Fast, and in every backup of the guest.
    Hot,
    /// Large, with a decision of its own about backups.
    Bulk,
}

impl Class {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Bulk => "bulk",
        }
    }
}

/// What is done when packages change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apt {
    pub snapshot: AptSnapshot,
    pub after: AptAfter,
    pub keep_hours: u32,
}

impl Default for Apt {
    fn default() -> Self {
        Self { snapshot: AptSnapshot::Off, after: AptAfter::Off, keep_hours: 24 }
    }
}

/// Unattended security upgrades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgrades {
    pub security: Security,
    /// What is done when they change packages.
    pub apt: Apt,
}

impl Default for Upgrades {
    fn default() -> Self {
        let apt = Apt { snapshot: AptSnapshot::Try, after: AptAfter::RollBack, keep_hours: UPGRADE_HOURS };
        Self { security: Security::On, apt }
    }
}

/// How long the snapshot before an upgrade is kept: until the next one, or a week.
const UPGRADE_HOURS: u32 = 7 * 24;

/// Whether they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    #[default]
    On,
    Off,
}

/// Whether a snapshot is taken before packages change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AptSnapshot {
    /// No.
    #[default]
    Off,
    /// If it can be had; packages change without one, too.
    Try,
    /// Without one, no package changes.
    Must,
}

/// What is done when packages have changed, and a stack that was well before is not well any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AptAfter {
    /// No health check is made.
    Off,
    /// It is said.
    Report,
    /// The guest is rolled back to the snapshot.
    RollBack,
}

impl Stacks {
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Whether a part belongs to this stack and not to another: a unit that another stack names stops with the hooks of
    /// that stack, and starts with its volumes.
    pub fn is_of(&self, stack: &Stack, id: &str) -> bool {
        let names = |stack: &Stack| match &stack.driver {
            DriverOf::Systemd(units) => units.iter().any(|unit| unit == id),
            DriverOf::Compose(_) => false,
        };
        names(stack) || !self.stacks.iter().any(names)
    }
}
