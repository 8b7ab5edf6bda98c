//! How far a work order is, as its host says.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnostic::DiagnosticName;
use crate::envelope::ErrorBody;
use crate::id::{OperationId, SnapshotName, StorageName, WorkOrderId};
use crate::local::restore_test::TestVerdict;
use crate::operation::StepStatus;

/// Phases of one order in a report, at most. No operation has more steps.
pub const PHASES_MAX: usize = 32;

/// Lines at the end of a log that are reported.
pub const LOG_LINES_MAX: usize = 20;

/// Bytes of one line of a log.
pub const LOG_LINE_BYTES_MAX: usize = 240;

/// Orders in one report: those that are open, and the newest that ended.
pub const REPORTED_MAX: u32 = 64;

/// The state of an order at its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostOrderState {
    /// It was taken, once, and waits for its lane.
    Claimed,
    /// It is under way.
    Running,
    /// It is done.
    Succeeded,
    /// It was refused, or came to nothing: the problem says why.
    Failed,
    /// It was taken back before it began.
    Cancelled,
    /// Its time ended before it began.
    Expired,
}

impl HostOrderState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Claimed, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Expired];

    /// Whether nothing more will happen by itself.
    #[must_use]
    pub const fn is_end(self) -> bool {
        !matches!(self, Self::Claimed | Self::Running)
    }

    /// For tables and columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// One phase of an order: a step of its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderPhase {
    /// The step's name, such as `back_up`.
    pub name: String,
    /// Its status.
    pub status: StepStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was first tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<Timestamp>,
    /// From its first try to its end, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum OrderResult {
    /// A backup.
    Backup {
        /// Its archive, as Proxmox names it.
        archive: String,
        /// Where it is stored.
        storage: StorageName,
        /// Its size.
        bytes: u64,
        /// When it was taken.
        taken_at: Timestamp,
    },
    /// A snapshot.
    Snapshot {
        /// What it is called.
        name: SnapshotName,
        /// When it may be removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// A restore test.
    RestoreTest {
        /// What it showed.
        verdict: TestVerdict,
        /// When the backup was taken that was tried.
        taken_at: Timestamp,
    },
    /// The guest runs again.
    Restart {},
    /// The host was read.
    Refresh {
        /// When.
        observed_at: Timestamp,
    },
    /// A text, which the hub keeps.
    Diagnostics {
        /// Which reading.
        name: DiagnosticName,
        /// Its length.
        bytes: u64,
    },
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkOrderReport {
    /// Its id.
    pub id: WorkOrderId,
    /// Its state.
    pub state: HostOrderState,
    /// When the host took it.
    pub claimed_at: Timestamp,
    /// The operation that it became, or that was under way for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Its phases, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub phases: Vec<OrderPhase>,
    /// The end of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub log: Vec<String>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<OrderResult>,
    /// Why it came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ErrorBody>,
}
