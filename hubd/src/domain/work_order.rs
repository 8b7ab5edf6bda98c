//! The states of work orders, and their bounds.
//!
//! In: the state of an order, and what happened to it. Out: its next state, or the refusal. The host decides: what it
//! says of an order that it took goes over what the hub assumed while it heard nothing. Deliberately absent: what an
//! act does, and whether its guest exists; the host knows that.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::work_order::{HostOrderState, WorkOrderState};
use jiff::SignedDuration;

use super::event::EventKind;

/// Orders of one host that have not ended.
pub const OPEN_PER_HOST_MAX: u32 = 64;

/// Orders of one guest that have not ended.
pub const OPEN_PER_GUEST_MAX: u32 = 4;

/// Orders of one host that are kept, whatever became of them.
pub const KEPT_PER_HOST_MAX: u32 = 500;

/// Texts of readings that are kept for one host, each at most 64 KiB.
pub const TEXTS_PER_HOST_MAX: u32 = 16;

/// How much later than its host the hub lets an order expire. A host that took it in time has spoken of it by then, or is
/// away.
pub const EXPIRY_MARGIN: SignedDuration = SignedDuration::from_secs(120);

/// How long an order may wait at most.
pub const LIFE_MAX_S: u32 = 24 * 3_600;

/// Whether an operator asked for it to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRequest {
    None,
    Made,
}

/// An order, as far as its states go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStanding {
    pub state: WorkOrderState,
    pub cancel: CancelRequest,
}

/// What a new order has to fit in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrders {
    pub of_host: u32,
    /// Of the same guest; none where it is for no guest.
    pub of_guest: u32,
}

/// Why an order is not made, or not taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkOrderError {
    #[error(
        "{OPEN_PER_HOST_MAX} work orders of this host have not ended: wait, or cancel some (`holdfast order list`)"
    )]
    HostFull,
    #[error(
        "{OPEN_PER_GUEST_MAX} work orders of this guest have not ended: wait, or cancel some (`holdfast order list`)"
    )]
    GuestFull,
    #[error("an order waits {LIFE_MAX_S} s at most: name a shorter life")]
    Life,
    #[error("the order is under way, and its operation is not cut off: wait for its end")]
    UnderWay,
    #[error("the order has ended ({}): there is nothing to cancel", .0.as_str())]
    Over(WorkOrderState),
}

impl WorkOrderError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::HostFull | Self::GuestFull => ErrorCode::Quota,
            Self::Life => ErrorCode::Range,
            Self::UnderWay | Self::Over(_) => ErrorCode::UnderWay,
        }
    }
}

/// Whether one more order may be made.
///
/// # Errors
/// [`WorkOrderError`].
pub const fn admit(open: OpenOrders, life_s: u32) -> Result<(), WorkOrderError> {
    if life_s > LIFE_MAX_S {
        return Err(WorkOrderError::Life);
    }
    if open.of_host >= OPEN_PER_HOST_MAX {
        return Err(WorkOrderError::HostFull);
    }
    if open.of_guest >= OPEN_PER_GUEST_MAX {
        return Err(WorkOrderError::GuestFull);
    }
    Ok(())
}

/// The state after a host's report.
///
/// An order that the hub gave up may have been taken all the same, so its host is believed. A failed one goes on when a
/// person had its parked operation tried again.
#[must_use]
pub const fn reported(state: WorkOrderState, said: HostOrderState) -> WorkOrderState {
    use HostOrderState as Said;
    use WorkOrderState::{Cancelled, Claimed, Expired, Failed, Pending, Running, Succeeded};
    match (state, said) {
        (Succeeded, _) => Succeeded,
        (Failed, Said::Claimed | Said::Cancelled | Said::Expired | Said::Failed) => Failed,
        (Running, Said::Claimed) => Running,
        (Cancelled, Said::Expired | Said::Cancelled) => Cancelled,
        (Expired, Said::Cancelled | Said::Expired) => Expired,
        (Pending | Claimed | Cancelled | Expired, Said::Claimed) => Claimed,
        (Pending | Claimed | Running | Failed | Cancelled | Expired, Said::Running) => Running,
        (Pending | Claimed | Running | Failed | Cancelled | Expired, Said::Succeeded) => Succeeded,
        (Pending | Claimed | Running | Cancelled | Expired, Said::Failed) => Failed,
        (Pending | Claimed | Running, Said::Cancelled) => Cancelled,
        (Pending | Claimed | Running, Said::Expired) => Expired,
    }
}

/// The state after its time is over, and the host has not spoken of it.
#[must_use]
pub const fn time_over(order: OrderStanding) -> WorkOrderState {
    match (order.state, order.cancel) {
        (WorkOrderState::Pending, CancelRequest::Made) => WorkOrderState::Cancelled,
        (WorkOrderState::Pending, CancelRequest::None) => WorkOrderState::Expired,
        (state, _) => state,
    }
}

/// What asking for it to be taken back comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The host is asked.
    Requested,
    /// It was asked for before, or it is cancelled.
    Known,
}

/// Judges a cancellation. The host has the last word: it may have begun.
///
/// # Errors
/// [`WorkOrderError`]; nothing changes.
pub const fn cancel(order: OrderStanding) -> Result<CancelOutcome, WorkOrderError> {
    match (order.state, order.cancel) {
        (WorkOrderState::Pending | WorkOrderState::Claimed, CancelRequest::None) => {
            Ok(CancelOutcome::Requested)
        }
        (WorkOrderState::Pending | WorkOrderState::Claimed, CancelRequest::Made)
        | (WorkOrderState::Cancelled, _) => Ok(CancelOutcome::Known),
        (WorkOrderState::Running, _) => Err(WorkOrderError::UnderWay),
        (state @ (WorkOrderState::Succeeded | WorkOrderState::Failed | WorkOrderState::Expired), _) => {
            Err(WorkOrderError::Over(state))
        }
    }
}

/// Whether answers to check-ins carry it.
#[must_use]
pub const fn waits(order: OrderStanding) -> bool {
    match order.state {
        WorkOrderState::Pending => true,
        WorkOrderState::Claimed => matches!(order.cancel, CancelRequest::Made),
        WorkOrderState::Running
        | WorkOrderState::Succeeded
        | WorkOrderState::Failed
        | WorkOrderState::Cancelled
        | WorkOrderState::Expired => false,
    }
}

/// The event to record of a new state.
#[must_use]
pub const fn event(before: WorkOrderState, now: WorkOrderState) -> Option<EventKind> {
    match (before, now) {
        (WorkOrderState::Succeeded, WorkOrderState::Succeeded)
        | (WorkOrderState::Failed, WorkOrderState::Failed)
        | (WorkOrderState::Cancelled, WorkOrderState::Cancelled)
        | (WorkOrderState::Expired, WorkOrderState::Expired) => None,
        (_, WorkOrderState::Succeeded) => Some(EventKind::WorkOrderSucceeded),
        (_, WorkOrderState::Failed) => Some(EventKind::WorkOrderFailed),
        (_, WorkOrderState::Cancelled) => Some(EventKind::WorkOrderCancelled),
        (_, WorkOrderState::Expired) => Some(EventKind::WorkOrderExpired),
        (_, WorkOrderState::Pending | WorkOrderState::Claimed | WorkOrderState::Running) => None,
    }
}

#[cfg(test)]
mod tests;
