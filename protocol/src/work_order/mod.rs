//! Work orders: what the hub orders without a signature.
//!
//! What comes in: one act of a closed list, and how long the order may wait. What goes out: how far it is, its phases,
//! the end of its log and its result. An order names an act, never a procedure or a command. Deliberately absent:
//! everything that loses data or protection; that is a signed job ([`crate::job`]), and no order can express it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`diagnostic`] | named readings of a host, and their texts |
//! | [`report`] | how far an order is, as its host says |
//! | [`view`] | an order as operators see it |

pub mod diagnostic;
pub mod report;
pub mod view;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CorrelationId, GuestUid, SnapshotName, WorkOrderId};
use crate::json::{self, JsonError};
use crate::protection::Tier;
use crate::size::OrderSeconds;

pub use diagnostic::{DIAGNOSTIC_BYTES_MAX, DiagnosticName, DiagnosticText};
pub use report::{HostOrderState, OrderPhase, OrderResult, WorkOrderReport};
pub use view::{WorkOrderDetail, WorkOrderRequest, WorkOrderState, WorkOrderView};

/// Longer than any order.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Orders in one answer to a check-in, at most. The rest come with the next.
pub const ORDERS_PER_ANSWER: u32 = 8;

/// How long an order waits at most where its request names nothing: an hour.
pub const LIFE_S: u32 = 3_600;

/// What is ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum OrderAct {
    /// Takes a backup of a guest now, whatever is due.
    BackupNow {
        /// Of which guest.
        guest: GuestUid,
        /// Of which tier; without it to the host's own backup storage.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
    /// Takes a snapshot of a guest. It goes when its time is over.
    Snapshot {
        /// Of which guest.
        guest: GuestUid,
        /// What it is called.
        name: SnapshotName,
        /// How long it is kept; a day without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep_s: Option<OrderSeconds>,
    },
    /// Shuts a running guest down by its own shutdown time, and starts it again.
    RestartGuest {
        /// Which guest.
        guest: GuestUid,
        /// Whether it waits for the guest's maintenance window.
        timing: RestartTiming,
    },
    /// Tries the newest good backup of a guest now, whatever is due.
    RestoreTestNow {
        /// Of which guest.
        guest: GuestUid,
        /// Of which tier; without it the newest of any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
    /// Reads the whole host anew, whatever was read lately.
    Refresh {},
    /// Reads one named thing of the host, as a bounded text.
    CollectDiagnostics {
        /// Which.
        name: DiagnosticName,
        /// Only of this guest, where the reading is of guests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guest: Option<GuestUid>,
    },
}

/// When a guest may be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartTiming {
    /// In its maintenance window; where it has none, at once.
    InWindow,
    /// At once, inside or outside its window.
    AtOnce,
}

impl OrderAct {
    /// The act as written on the wire.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::BackupNow { .. } => "backup_now",
            Self::Snapshot { .. } => "snapshot",
            Self::RestartGuest { .. } => "restart_guest",
            Self::RestoreTestNow { .. } => "restore_test_now",
            Self::Refresh {} => "refresh",
            Self::CollectDiagnostics { .. } => "collect_diagnostics",
        }
    }

    /// The guest that it is about.
    #[must_use]
    pub const fn guest(&self) -> Option<GuestUid> {
        match self {
            Self::BackupNow { guest, .. }
            | Self::Snapshot { guest, .. }
            | Self::RestartGuest { guest, .. }
            | Self::RestoreTestNow { guest, .. } => Some(*guest),
            Self::Refresh {} => None,
            Self::CollectDiagnostics { guest, .. } => *guest,
        }
    }
}

/// An order as the hub passes it on.
///
/// The order itself is text: a host that does not understand it refuses that order alone, and the check-in goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueuedOrder {
    /// Its id. A host takes each id once.
    pub id: WorkOrderId,
    /// What the host is to do with it.
    pub call: OrderCall,
    /// The [`OrderText`].
    #[schemars(length(max = 4096))]
    pub text: String,
    /// The id of the click that made it. For records alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
}

/// What a host is to do with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderCall {
    /// Carry it out.
    CarryOut,
    /// Take it back where it has not begun.
    Cancel,
}

/// The text of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderText {
    /// What is ordered.
    pub act: OrderAct,
    /// It does not begin at or after this.
    pub expires_at: Timestamp,
}

impl OrderText {
    /// Reads one.
    ///
    /// # Errors
    /// [`JsonError`], at the first mistake. Its code says that this version does not know the order.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        json::parse("a work order", text.as_bytes(), TEXT_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests;
