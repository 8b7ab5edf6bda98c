//! Requests of a guest for its own snapshots, backups and rollbacks.
//!
//! A request for work is written down and answered with an operation's id; `GET /v1/operations/{id}` follows it. The
//! token identifies the guest: a body may name it, and is refused when it names another.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::label::Label;
use crate::id::{GuestUid, OperationId, SnapshotName};
use crate::operation::OperationStatus;
use crate::protection::Tier;

/// `POST /v1/snapshots`: take a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRequest {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// What it is called; without one the agent makes a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SnapshotName>,
    /// How long it is kept, in seconds; without it as long as the agent's policy says, and never longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_s: Option<u32>,
}

/// `POST /v1/rollback`: go back to a snapshot that was taken through this API. What was written since is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBackRequest {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// To which snapshot.
    pub snapshot: SnapshotName,
}

/// `POST /v1/backups`: take a backup now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// Which guest; it can only be the token's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// Of which tier of its policy, `local` or `off_site`; without it to the host's own backup storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
}

/// Work was accepted: the answer to every call that requests some, with status 202.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// `GET /v1/operations/{operation}` follows it.
    pub operation: OperationId,
    /// Whether it is new.
    pub taken: Acceptance,
    /// How many pieces of work are before it in the guest's lane.
    pub before: u32,
    /// The snapshot's name, where the work takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotName>,
}

/// How work was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// It has its place in the lane.
    Queued,
    /// The same work is under way or waits already: that one is the answer.
    Joined,
}

/// `GET /v1/snapshots`: the guest's existing snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotsView {
    /// Oldest first.
    pub snapshots: Vec<SnapshotView>,
    /// How many the guest may have at once.
    pub quota: u32,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotView {
    /// What it is called.
    pub name: SnapshotName,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// When it is removed.
    pub expires_at: Timestamp,
    /// The operation that took it.
    pub operation: OperationId,
}

/// `GET /v1/backups`: backups that are requested, under way and kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupsView {
    /// Oldest first.
    pub backups: Vec<BackupView>,
}

/// One backup: requested, under way or kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupView {
    /// Its id, which is its operation's.
    pub id: OperationId,
    /// How far it is.
    pub phase: OperationStatus,
    /// What was found when it was there, and only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptBackup>,
}

/// A backup that was found after it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptBackup {
    /// When it was taken.
    pub taken_at: Timestamp,
    /// How large it is.
    pub bytes: u64,
    /// On which storage of the host.
    pub storage: String,
    /// What it holds, and why it is so; none for backups of agents before quiesce windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}
