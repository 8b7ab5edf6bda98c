//! Work orders as operators see them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OrderAct;
use super::diagnostic::DiagnosticText;
use super::report::{HostOrderState, WorkOrderReport};
use crate::id::{CorrelationId, OperatorName, WorkOrderId};
use crate::size::OrderSeconds;

/// Orders something from a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkOrderRequest {
    /// What.
    pub act: OrderAct,
    /// How long it may wait before it begins; an hour without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_s: Option<OrderSeconds>,
}

/// The state of an order, as the hub knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkOrderState {
    /// The host has not spoken of it.
    Pending,
    /// The host took it, and it waits there.
    Claimed,
    /// It is under way.
    Running,
    /// It is done.
    Succeeded,
    /// It came to nothing.
    Failed,
    /// It was taken back before it began.
    Cancelled,
    /// Its time ended before it began.
    Expired,
}

impl WorkOrderState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Claimed,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Whether nothing more will happen by itself.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled | Self::Expired)
    }

    /// For tables and columns.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

impl From<HostOrderState> for WorkOrderState {
    fn from(state: HostOrderState) -> Self {
        match state {
            HostOrderState::Claimed => Self::Claimed,
            HostOrderState::Running => Self::Running,
            HostOrderState::Succeeded => Self::Succeeded,
            HostOrderState::Failed => Self::Failed,
            HostOrderState::Cancelled => Self::Cancelled,
            HostOrderState::Expired => Self::Expired,
        }
    }
}

/// An order, as the hub holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkOrderView {
    /// Its id.
    pub id: WorkOrderId,
    /// What is ordered.
    pub act: OrderAct,
    /// Its state.
    pub state: WorkOrderState,
    /// Who ordered it.
    pub by: OperatorName,
    /// When.
    pub created_at: Timestamp,
    /// It does not begin at or after this.
    pub expires_at: Timestamp,
    /// When an operator asked for it to be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<Timestamp>,
    /// The host's report on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<WorkOrderReport>,
    /// The correlation id of the click that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
}

/// An order with the text that was read for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkOrderDetail {
    /// The order.
    pub order: WorkOrderView,
    /// The text of a reading, where it arrived and is still kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<DiagnosticText>,
}
