//! Requests of guests and work orders, as recorded before the answer.
//!
//! A request's id is the id of the operation it becomes, so one request has at most one operation (I2). The caller
//! follows one id from the first answer to the end.

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, OperationId, SnapshotName};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::work_order::RestartTiming;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::limits;
use super::policy::QuiesceBound;

/// Why a guest gets no more backups for the asking today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a guest may ask for {} backups a day, beside those that are due: ask again later",
    limits::ASKED_BACKUPS_PER_DAY
)]
pub struct BackupsSpent;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Take a snapshot.
    Snapshot {
        /// What it is called.
        name: SnapshotName,
        /// How long it is kept, in seconds; without it as long as the policy says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep_s: Option<u32>,
    },
    /// Delete a snapshot that was taken on the guest's own request.
    ExpireSnapshot { name: SnapshotName },
    /// Go back to a snapshot that was taken on the guest's own request.
    RollBack { snapshot: SnapshotName },
    /// Take a backup.
    Backup {
        /// Of which tier; without it to the host's own backup storage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
    /// Take a backup while the guest's programs stand still.
    QuiescedBackup {
        /// For which tier; without it for the one that is due, else for the local one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// How long they may stand still: the bound that is reported is the bound that is granted.
        bound: QuiesceBound,
    },
    /// What the hub ordered. It is not the guest's request, and does not count as one.
    Ordered(Ordered),
}

/// A work order that becomes an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ordered {
    pub act: OrderedAct,
    /// It does not begin at or after this.
    pub expires_at: Timestamp,
}

/// What a work order that becomes an operation is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OrderedAct {
    Backup {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
    Snapshot {
        name: SnapshotName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep_s: Option<u32>,
    },
    Restart {
        timing: RestartTiming,
    },
    RestoreTest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
}

impl OrderedAct {
    /// The kind of operation it becomes.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Backup { .. } => OperationKind::Backup,
            Self::Snapshot { .. } => OperationKind::Snapshot,
            Self::Restart { .. } => OperationKind::RestartGuest,
            Self::RestoreTest { .. } => OperationKind::RestoreTest,
        }
    }
}

impl Ask {
    /// The kind of operation it becomes.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Snapshot { .. } => OperationKind::Snapshot,
            Self::ExpireSnapshot { .. } => OperationKind::ExpireSnapshot,
            Self::RollBack { .. } => OperationKind::RollBack,
            Self::Backup { .. } => OperationKind::Backup,
            Self::QuiescedBackup { .. } => OperationKind::QuiescedBackup,
            Self::Ordered(order) => order.act.kind(),
        }
    }

    /// The snapshot it is about.
    #[must_use]
    pub const fn snapshot(&self) -> Option<&SnapshotName> {
        match self {
            Self::Snapshot { name, .. } | Self::ExpireSnapshot { name } => Some(name),
            Self::RollBack { snapshot } => Some(snapshot),
            Self::Ordered(Ordered { act: OrderedAct::Snapshot { name, .. }, .. }) => Some(name),
            Self::Ordered(_) | Self::Backup { .. } | Self::QuiescedBackup { .. } => None,
        }
    }
}

/// A request that waits for its lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedRequest {
    /// Its number: requests are served in this order.
    pub serial: u64,
    /// Its id, and its operation's.
    pub id: OperationId,
    /// The guest it is about. It also sent the request, where the hub did not order it.
    pub guest: GuestUid,
    pub ask: Ask,
    pub asked_at: Timestamp,
}

/// A request that has ended without becoming an operation, or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// What was asked.
    pub request: QueuedRequest,
    /// How it ended, if it did.
    pub end: Option<Ended>,
}

/// How a request ended that never became an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why, for the guest.
    pub problem: ErrorBody,
    pub at: Timestamp,
}
