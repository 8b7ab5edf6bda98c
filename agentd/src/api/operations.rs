//! `GET` and `DELETE /v1/operations/{id}`.

use std::sync::Arc;

use axum::extract::{Path, State};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::operation::{OperationStatus, OperationView};

use super::Local;
use super::auth::GuestScope;
use super::envelope::Data;
use super::error::ApiError;
use super::wait::Wait;
use super::work::Call;
use crate::model::request::RequestRecord;
use crate::port::store::request::{Cancelled, RequestOrOperation};

pub(super) async fn operation(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    wait: Wait,
) -> Result<Data<OperationView>, ApiError> {
    let id: OperationId = id.parse().map_err(|_| ApiError::NotFound("operation"))?;
    wait.for_change(&local, || look(&local, &scope, id)).await
}

/// Cancels what has not begun. An operation that is under way is answered as such and continues.
pub(super) async fn cancel(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    call: Call,
) -> Result<Data<OperationView>, ApiError> {
    let id: OperationId = id.parse().map_err(|_| ApiError::NotFound("operation"))?;
    match local.store.cancel_request(scope.uid(), id, call.key(&[])?, local.clock.now()).await? {
        Cancelled::Ended(record) => Ok(Data(view_of(record, &scope))),
        Cancelled::TooLate(progress) if progress.status().is_end() => Err(ApiError::Over),
        Cancelled::Over => Err(ApiError::Over),
        Cancelled::TooLate(_) => Err(ApiError::UnderWay),
        Cancelled::NotYours => Err(ApiError::NotYours),
        Cancelled::Unknown => Err(ApiError::NotFound("operation")),
    }
}

/// One of the guest's own operations, or a request of it that is not an operation yet.
pub(super) async fn look(
    local: &Local,
    scope: &GuestScope,
    id: OperationId,
) -> Result<OperationView, ApiError> {
    match local.store.asked(id).await?.ok_or(ApiError::NotFound("operation"))? {
        RequestOrOperation::Operation(progress) if progress.operation.uid() == scope.uid() => {
            Ok(progress.view())
        }
        RequestOrOperation::Request(record) if record.request.guest == scope.uid() => {
            Ok(view_of(record, scope))
        }
        RequestOrOperation::Kept(view) if view.guest == scope.uid() => Ok(*view),
        RequestOrOperation::Operation(_) | RequestOrOperation::Kept(_) | RequestOrOperation::Request(_) => {
            Err(ApiError::NotYours)
        }
    }
}

/// A request as its guest sees it: an operation that waits, or one of which nothing is left.
fn view_of(record: RequestRecord, scope: &GuestScope) -> OperationView {
    let (ended_at, problem) = record.end.map(|end| (end.at, end.problem)).unzip();
    let status = if problem.is_some() { OperationStatus::Undone } else { OperationStatus::Queued };
    OperationView {
        id: record.request.id,
        kind: record.request.ask.kind(),
        guest: record.request.guest,
        other: None,
        name: scope.record().name.clone(),
        vmid: scope.record().place.vmid(),
        status,
        steps: Vec::new(),
        opened_at: record.request.asked_at,
        ended_at,
        problem,
        correlation_id: None,
        alike: None,
    }
}
