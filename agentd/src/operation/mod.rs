//! What the agent does to guests: each operation is a linear list of typed steps, with a log that is a table.
//!
//! What comes in: a decision of the plan. What goes out: steps, events, and where the operation stands. All of it is
//! pure and is written to the journal as JSON with a version. Deliberately absent: doing anything.
//!
//! | module | what |
//! | --- | --- |
//! | [`step`] | what each step is: its undo, its probe, its bound |
//! | [`log`] | events, and `next(status, event)`, the only definition of what may follow what |
//! | [`progress`] | the fold of a log: facts found, and the view for people |

pub mod log;
pub mod progress;
pub mod step;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::{GuestName, GuestUid, PoolName, StorageName, Vmid};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};
use serde::{Deserialize, Serialize};

use crate::model::policy::{Golden, Sha256Hex, VmidRange};
use crate::model::record::VolumeId;

use step::Step;

/// The version of specs and events in the journal.
pub const JOURNAL_VERSION: u32 = 1;

/// One operation, with everything it needs to know. Nothing is looked up in the document again once it is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Makes a guest by restoring the golden archive.
    Provision(Box<Provision>),
    /// Starts a guest.
    Start(Target),
    /// Stops a guest.
    Stop(Target),
    /// Changes CPU, memory, swap, or puts protection back.
    Reconfigure(Reconfigure),
    /// Makes one disk larger.
    Grow(Grow),
}

/// A guest that was made, by all we know it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Our identity for it.
    pub uid: GuestUid,
    /// Its name when the operation was opened.
    pub name: GuestName,
    /// Its number.
    pub vmid: Vmid,
}

/// Everything that making a guest needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provision {
    /// The guest as it should be.
    pub guest: DesiredGuest,
    /// Which number.
    pub number: NumberWish,
    /// The golden archive.
    pub archive: VolumeId,
    /// What its bytes must hash to.
    pub archive_sha256: Sha256Hex,
    /// Where the agent reads those bytes.
    pub archive_file: std::path::PathBuf,
    /// The pool.
    pub pool: PoolName,
    /// Root disk and hot volumes.
    pub storage: StorageName,
    /// Bulk volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk_storage: Option<StorageName>,
    /// Where the first backup goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_storage: Option<StorageName>,
}

impl Provision {
    /// Fills in the golden.
    #[must_use]
    pub fn golden(&self) -> Golden {
        Golden {
            archive: self.archive.clone(),
            sha256: self.archive_sha256.clone(),
            file: self.archive_file.clone(),
        }
    }
}

/// Which VMID a new guest gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberWish {
    /// This one, as the document says.
    Exactly(Vmid),
    /// A free one of the range, never used for another guest of ours.
    AnyOf {
        /// The range.
        range: VmidRange,
        /// Numbers of the range that the document asks for by name, for other guests.
        except: Vec<Vmid>,
    },
}

/// New sizes. What is not set stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconfigure {
    /// The guest.
    pub target: Target,
    /// Cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryMib>,
    /// Swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapMib>,
    /// Whether protection, which somebody took off, is put back.
    pub protection: KeepProtection,
}

/// What becomes of a guest's protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepProtection {
    /// It is on.
    AsItIs,
    /// It was taken off by hand; it is put back.
    PutBack,
}

/// A disk that becomes larger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grow {
    /// The guest.
    pub target: Target,
    /// Which of its disks.
    pub disk: DiskRef,
    /// How large it becomes.
    pub size: DiskGib,
}

/// A disk of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskRef {
    /// The root disk.
    Rootfs,
    /// A mount, by its slot.
    Mount(u8),
}

impl Operation {
    /// What it does.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Provision(_) => OperationKind::Provision,
            Self::Start(_) => OperationKind::Start,
            Self::Stop(_) => OperationKind::Stop,
            Self::Reconfigure(_) => OperationKind::Reconfigure,
            Self::Grow(_) => OperationKind::Grow,
        }
    }

    /// To which guest.
    #[must_use]
    pub fn uid(&self) -> GuestUid {
        match self {
            Self::Provision(provision) => provision.guest.uid,
            Self::Start(target) | Self::Stop(target) => target.uid,
            Self::Reconfigure(change) => change.target.uid,
            Self::Grow(grow) => grow.target.uid,
        }
    }

    /// That guest's name.
    #[must_use]
    pub fn name(&self) -> &GuestName {
        match self {
            Self::Provision(provision) => &provision.guest.name,
            Self::Start(target) | Self::Stop(target) => &target.name,
            Self::Reconfigure(change) => &change.target.name,
            Self::Grow(grow) => &grow.target.name,
        }
    }

    /// The guest's number, where it has one before the operation begins.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        match self {
            Self::Provision(_) => None,
            Self::Start(target) | Self::Stop(target) => Some(target.vmid),
            Self::Reconfigure(change) => Some(change.target.vmid),
            Self::Grow(grow) => Some(grow.target.vmid),
        }
    }

    /// Its steps, in order. The same operation always has the same steps, so a step's place names it in the journal.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        match self {
            Self::Provision(provision) => provision_steps(provision),
            Self::Start(_) => vec![Step::Start, Step::ConfirmRunning],
            Self::Stop(_) => vec![Step::ShutDown, Step::ConfirmStopped],
            Self::Reconfigure(_) => vec![Step::Configure],
            Self::Grow(_) => vec![Step::GrowDisk],
        }
    }
}

/// The order of `4-guests.md`: the mark before anything lasting, volumes before the protection that forbids them, the
/// claim at the last moment because it lives ten minutes.
fn provision_steps(provision: &Provision) -> Vec<Step> {
    let mut steps = vec![Step::ChooseVmid, Step::JudgeArchive, Step::Restore, Step::Mark, Step::GrowRootfs];
    let volumes = provision.guest.volumes.len().min(holdfast_protocol::desired::VOLUMES_MAX);
    steps.extend((0..volumes).filter_map(|index| u8::try_from(index).ok()).map(Step::AttachVolume));
    steps.extend([Step::Protect, Step::HandOverClaim, Step::FirstStart, Step::AwaitHello, Step::DropClaim]);
    if provision.backup_storage.is_some() {
        steps.push(Step::FirstBackup);
    }
    steps.push(Step::ReadBack);
    steps
}
