//! Quiesce windows between a guest agent and its agent.
//!
//! ```text
//! requested ──lane free──▶ granted ──stacks stopped──▶ quiesced ──▶ capturing ──storage snapshot taken──▶ captured
//!     │                       │                           │              │                                   │
//!     └── cancelled ◀─────────┘                           └──────────────┴───── released ◀──stacks up────────┘
//!                             └── bound passed ──▶ expired (from granted, quiesced or capturing)
//! ```
//!
//! The bound is a number of seconds from the grant, and each side counts it on its own clock that runs through suspend:
//! no time of day crosses the wire. Past it the controller starts what it stopped, whatever the agent says. Where the
//! backup's storage takes no snapshot, `captured` comes with the end of the copy. Deliberately absent: what stacks are,
//! and how they are stopped; that is the controller's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::label::Label;
use super::work::KeptBackup;
use crate::envelope::ErrorBody;
use crate::id::{GuestUid, MountPath, OperationId, StackName};
use crate::job::act::Sha256Text;
use crate::protection::Tier;

/// Stacks of one guest.
pub const STACKS_MAX: usize = 32;

/// Canary files of one guest: one on the root disk and one on each volume that its backups hold.
pub const CANARIES_MAX: usize = 17;

/// `POST /v1/quiesce-windows`: a backup with the guest's stacks stopped. The answer's operation is the window's id, and
/// the backup's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowRequest {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// For which tier; without it for the one that is due, else for the local one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
}

/// How far a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowPhase {
    /// It waits for the guest's lane. Nothing may be stopped yet.
    Requested,
    /// The lane is held, and the bound runs. The controller may stop its stacks.
    Granted,
    /// The controller reported that they are stopped.
    Quiesced,
    /// The backup was begun.
    Capturing,
    /// The content of the backup is fixed: the stacks may run again. The copy continues.
    Captured,
    /// The controller said that they run again.
    Released,
    /// The bound passed before the backup had what it needed.
    Expired,
    /// It was given up before its backup began, or its backup came to nothing.
    Cancelled,
}

impl WindowPhase {
    /// Whether the window is over: nothing that is stopped now is of any use.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Released | Self::Expired | Self::Cancelled)
    }
}

/// `GET /v1/quiesce-windows/{id}`: one window, as the agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowView {
    /// Its id, which is its operation's and its backup's.
    pub id: OperationId,
    /// How far it is.
    pub phase: WindowPhase,
    /// How long stacks may be stopped, in seconds from the grant.
    pub bound_s: u32,
    /// The rest of that time, by the agent's clock, from the grant on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<u32>,
    /// What the backup holds, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// The backup, once it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptBackup>,
    /// Why it expired, was cancelled, or what a person must do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ErrorBody>,
}

/// `PUT /v1/quiesce-windows/{id}/quiesced`: everything that ran is stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quiesced {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// What was stopped for it, and nothing else.
    #[schemars(length(max = 32))]
    pub stacks: Vec<StackName>,
    /// What was written so that a restore test can distinguish the right data from other data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 17))]
    pub canaries: Vec<Canary>,
}

/// A small file with random content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The file system that holds it, by its mount; none for the root disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountPath>,
    /// What its bytes hash to.
    pub sha256: Sha256Text,
}

/// `PUT /v1/quiesce-windows/{id}/released`: what was stopped was started again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Released {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// What would not start; it is tried again and again. None of it, when all is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub down: Vec<DownStack>,
    /// How long ago the controller began to start what it had stopped, in milliseconds on its clock that runs through
    /// suspend. Left out where it does not know: then there is no proof that nothing ran before the copy was fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_ms_ago: Option<u64>,
}

/// A stack that was stopped for a backup and did not come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DownStack {
    /// Which.
    pub stack: StackName,
    /// Why, in the words of the program that should have started it.
    #[schemars(length(min = 1, max = 512))]
    pub why: String,
}
