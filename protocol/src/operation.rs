//! Operations as agent, hub, operator and guest agent see them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::ErrorBody;
use crate::id::{CorrelationId, GuestName, GuestUid, OperationId, Vmid};

/// Makes the enum of all kinds, its list and its names.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)+) => {
        /// What an operation does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum OperationKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)+
        }

        impl OperationKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// The kind as written on the wire and in the journal.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    /// Takes over a guest that the records do not know, by an operator's signature.
    AdoptGuest = "adopt_guest",
    /// Makes a volume and mounts it in a guest that was made.
    AttachVolume = "attach_volume",
    /// Takes a backup.
    Backup = "backup",
    /// Destroys a guest, by an operator's signature.
    Destroy = "destroy",
    /// Destroys a copy of a guest with its volumes, by an operator's signature.
    DiscardCopy = "discard_copy",
    /// Removes a snapshot that the agent made.
    ExpireSnapshot = "expire_snapshot",
    /// Makes the root disk or a volume larger.
    Grow = "grow",
    /// Hands a volume to another guest of the same customer, by an operator's signature.
    ReassignVolume = "reassign_volume",
    /// Puts a guest on a newer golden image, with its volumes, by an operator's signature.
    RebaseGuest = "rebase_guest",
    /// Makes a guest by restoring the golden archive.
    Provision = "provision",
    /// Takes a backup while the guest's programs are stopped.
    QuiescedBackup = "quiesced_backup",
    /// Removes a backup that the retention in force no longer keeps.
    PruneBackup = "prune_backup",
    /// Changes CPU, memory, swap or marks.
    Reconfigure = "reconfigure",
    /// Shuts a running guest down and starts it again, by a work order.
    RestartGuest = "restart_guest",
    /// Restores a backup of a guest as a copy, under another number.
    RestoreCopy = "restore_copy",
    /// Restores a backup into a scratch guest to see whether it comes back.
    RestoreTest = "restore_test",
    /// Rolls a guest back to a snapshot that the agent made.
    RollBack = "roll_back",
    /// Takes a snapshot.
    Snapshot = "snapshot",
    /// Starts a guest.
    Start = "start",
    /// Stops a guest.
    Stop = "stop",
    /// Puts a restored copy of a guest in the guest's place, by an operator's signature.
    SwapGuest = "swap_guest",
    /// Exchanges the controller in a guest, with a snapshot to come back to.
    UpdateController = "update_controller",
}

/// The status of an operation. `Done`, `Undone`, `Parked` and `Forgotten` are ends; a person may reopen a parked one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationStatus {
    /// In its lane, not begun.
    Queued,
    /// A step is under way, or the next is about to begin.
    Running,
    /// A step failed; what this operation made is being taken back.
    Undoing,
    /// The state is as wanted, and was read back.
    Done,
    /// It failed, and nothing of it is left.
    Undone,
    /// Stopped on purpose, left untouched, for a person to inspect.
    Parked,
    /// It was parked, and a person ended it and handles what is left of it.
    Forgotten,
}

impl OperationStatus {
    /// For logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Undoing => "undoing",
            Self::Done => "done",
            Self::Undone => "undone",
            Self::Parked => "parked",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether nothing more will happen by itself.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Undone | Self::Parked | Self::Forgotten)
    }
}

/// The status of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Its intent is on disk; its effect may have happened.
    Intended,
    /// Its effect was seen.
    Done,
    /// It failed, or it is unknown whether it happened.
    Failed,
    /// Its undo is under way.
    Undoing,
    /// Its effect was taken back.
    Undone,
}

/// One step of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepView {
    /// The step's name, such as `restore` or `await_hello`.
    pub name: String,
    /// Its status.
    pub status: StepStatus,
    /// What a person may want to know: the last line of its task, what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The Proxmox task that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upid: Option<String>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationView {
    /// Its id.
    pub id: OperationId,
    /// What it does.
    pub kind: OperationKind,
    /// To which guest.
    pub guest: GuestUid,
    /// The other guest that it holds, when there are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<GuestUid>,
    /// That guest's name when the operation was opened.
    pub name: GuestName,
    /// Under which VMID, once that is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// Its status.
    pub status: OperationStatus,
    /// Its steps, in order.
    pub steps: Vec<StepView>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed or was parked, with what a person must do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ErrorBody>,
    /// The correlation id of the click that it serves, where a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// This operation and those before it that were undone for the same cause, which are in no list of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<Alike>,
}

/// Tries of one thing that came to nothing for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alike {
    /// How many, as far back as the agent looked.
    pub count: u32,
    /// When the first of them was opened.
    pub first_at: Timestamp,
}
