//! Work orders to read the whole host anew.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::WorkOrderId;
use holdfast_protocol::work_order::{OrderAct, OrderResult};
use jiff::Timestamp;

use crate::port::store::work_order::OpenReading;
use crate::port::store::{Store, StoreError};

/// The orders that the next observation serves. Those whose time is over end here.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn due(store: &Store, now: Timestamp) -> Result<Vec<WorkOrderId>, StoreError> {
    if store.refusal().is_some() {
        return Ok(Vec::new());
    }
    let mut due = Vec::new();
    for OpenReading { id, act, expires_at, .. } in store.open_readings().await? {
        match act {
            OrderAct::Refresh {} if now < expires_at => due.push(id),
            OrderAct::Refresh {} => {
                let text = "its time was over before Proxmox could be read: order it anew";
                let problem = ErrorBody::new(ErrorCode::Unavailable, text);
                store.settle_reading(id, Err(problem), now).await?;
            }
            OrderAct::CollectDiagnostics { .. }
            | OrderAct::BackupNow { .. }
            | OrderAct::Snapshot { .. }
            | OrderAct::RestartGuest { .. }
            | OrderAct::RestoreTestNow { .. } => {}
        }
    }
    Ok(due)
}

/// Ends them after an observation.
///
/// # Errors
/// [`StoreError`].
pub(super) async fn settle(
    store: &Store,
    served: Vec<WorkOrderId>,
    observed_at: Timestamp,
) -> Result<(), StoreError> {
    for id in served {
        store.settle_reading(id, Ok((OrderResult::Refresh { observed_at }, None)), observed_at).await?;
    }
    Ok(())
}
