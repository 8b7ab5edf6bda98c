//! Storage targets: approvals, observations and conditions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{JobId, TargetName};
use holdfast_protocol::report::WaitingForSignature;
use holdfast_protocol::storage::report::TargetReport;
use holdfast_protocol::storage::{Approval, TargetState};

/// Where the helper mounts: each target in a folder of its name.
pub const PARENT: &str = "/mnt/holdfast";

/// The folder of a target.
#[must_use]
pub fn place(target: &TargetName) -> PathBuf {
    PathBuf::from(PARENT).join(target.as_str())
}

/// A target that an operator approved, by the last signature about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRecord {
    /// What was signed for.
    pub approval: Approval,
    /// Whether it is used.
    pub status: TargetState,
    /// The content of the marker on the disk: the job by which this disk was first attached under this name.
    pub mark: JobId,
    /// That the marker is on the disk, once it is.
    pub marked: Option<Marked>,
    /// What the signed job left to do to its entry in Proxmox.
    pub entry: Option<EntryAction>,
}

/// What a signed job left to do to an entry of Proxmox, until that is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAction {
    pub due: EntryDue,
    /// By which job.
    pub job: JobId,
}

/// What is to become of an entry of Proxmox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryDue {
    /// It is there and in use.
    Make,
    /// It is in use no more.
    Disable,
}

impl EntryDue {
    /// As it is in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Make => "make",
            Self::Disable => "disable",
        }
    }
}

/// What was noted when a disk got its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Durable writes of 4 KiB in a second; none where they could not be measured.
    pub iops: Option<u32>,
}

/// What the kernel lists at a target's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountSeen {
    /// The mount's number in the table.
    pub id: u64,
    /// The device, such as `/dev/sdb1`.
    pub source: String,
    /// Whether that device is there.
    pub device: DeviceSeen,
}

/// Whether the device under a mount is there. A mount stays when its disk is pulled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSeen {
    /// The kernel knows it.
    There,
    /// The kernel has taken it away.
    Gone,
}

/// What was found on a mounted disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkerSeen {
    /// Our marker, for this target.
    Ours,
    /// None, and none can be written: why, and what root does.
    Unwritable(String),
    /// None, where there should be ours.
    Missing,
    /// That of another target or host, or no marker at all but something in its place.
    Other(String),
    /// The disk does not answer.
    Unread(String),
    /// Our marker was there, and the disk works no more: what it did not do.
    Failing(String),
}

/// What was heard of a target's server when it was tried last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerSeen {
    /// It was not tried, or there is none.
    #[default]
    NotTried,
    Answers,
    /// It does not: a sentence.
    Silent(String),
}

/// An entry as Proxmox gives it: its fields as text.
pub type EntrySeen = BTreeMap<String, String>;

/// What is remembered of one target since the agent started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetMemory {
    /// The mount that the helper vouched for, and what was found on it.
    pub confirmed: Option<(u64, MarkerSeen)>,
    /// What the helper said last, if it was no: code and sentence.
    pub refusal: Option<(String, String)>,
    /// What was found on the disk, for which it was unmounted again.
    pub wrong: Option<MarkerSeen>,
    /// Whether it was mounted since the agent started.
    pub was_mounted: bool,
    /// Its server, when it was tried last.
    pub server: ServerSeen,
    /// What Proxmox reported of it last.
    pub said: LastStorageState,
}

/// What Proxmox reported last of a storage; no answer does not reset it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastStorageState {
    /// It said none since the agent started.
    #[default]
    Nothing,
    /// It is active.
    Active,
    /// It is not.
    Inactive,
}

/// Whether anything was checked yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstPoll {
    /// Nothing is known: an empty list would say that there is nothing.
    #[default]
    NotYet,
    /// The list is whole.
    Yes,
}

/// All that is reported of storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageView {
    /// Whether the list is whole.
    pub looked: FirstPoll,
    pub targets: Vec<TargetReport>,
    /// What waits for an operator's signature.
    pub waiting: Vec<WaitingForSignature>,
    /// What keeps targets from being used.
    pub problems: Vec<ErrorBody>,
}
