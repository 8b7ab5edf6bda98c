//! `GET /v1/operations/{id}`: how far one of the guest's own operations is, at once or when it changes; and `DELETE`, which
//! cancels one that has not begun. What was asked for and waits is an operation that has not begun.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::operation::{OperationStatus, OperationView};
use serde::Deserialize;

use super::Local;
use super::auth::GuestScope;
use super::error::ApiError;
use super::frame::Data;
use super::work::Call;
use crate::model::request::RequestRecord;
use crate::port::store::Changes;
use crate::port::store::request::{Asked, Cancelled};

/// Shorter than what gateways and clients cut off.
const WAIT_SECONDS_MAX: u64 = 55;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    wait: Option<String>,
}

pub(super) async fn operation(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    ask: Result<Query<Wait>, QueryRejection>,
) -> Result<Data<OperationView>, ApiError> {
    let id: OperationId = id.parse().map_err(|_| ApiError::NotFound("operation"))?;
    let wait = wait_of(ask)?;
    // Listened to before the first look, so that no change falls between the two.
    let mut changes = local.store.changes();
    let of = |now: &Changes| (now.operations, now.requests);
    let mut seen = of(&changes.borrow_and_update());
    let first = look(&local, &scope, id).await?;
    let Some(wait) = wait.filter(|_| !first.status.is_end()) else { return Ok(Data(first)) };
    let changed = async {
        loop {
            let woken = changes.wait_for(|now| of(now) != seen).await.map(|now| of(&now));
            match woken {
                Ok(now) => seen = now,
                // The store closed: the agent is stopping.
                Err(_) => return look(&local, &scope, id).await,
            }
            let now = look(&local, &scope, id).await?;
            if now != first {
                return Ok(now);
            }
        }
    };
    match tokio::time::timeout(wait, changed).await {
        Ok(outcome) => outcome.map(Data),
        Err(_) => Ok(Data(first)),
    }
}

/// How long to wait for a change; none is not at all.
pub(super) fn wait_of(ask: Result<Query<Wait>, QueryRejection>) -> Result<Option<Duration>, ApiError> {
    let refused = || ApiError::Part { what: "the query", rule: "the only part is wait, of 1s to 55s" };
    let Query(ask) = ask.map_err(|_| refused())?;
    match ask.wait.as_deref().map(seconds) {
        None => Ok(None),
        Some(Some(wait)) => Ok(Some(wait)),
        Some(None) => Err(refused()),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?.parse::<u64>().ok()?;
    (1..=WAIT_SECONDS_MAX).contains(&number).then(|| Duration::from_secs(number))
}

/// Cancels what has not begun. What is under way says so and goes on.
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
        Cancelled::TooLate(_) => Err(ApiError::UnderWay),
        Cancelled::NotYours => Err(ApiError::NotYours),
        Cancelled::Unknown => Err(ApiError::NotFound("operation")),
    }
}

/// One of the guest's own operations, or what it asked for and is not one yet.
pub(super) async fn look(
    local: &Local,
    scope: &GuestScope,
    id: OperationId,
) -> Result<OperationView, ApiError> {
    match local.store.asked(id).await?.ok_or(ApiError::NotFound("operation"))? {
        Asked::Operation(progress) if progress.operation.uid() == scope.uid() => Ok(progress.view()),
        Asked::Request(record) if record.request.guest == scope.uid() => Ok(view_of(record, scope)),
        Asked::Operation(_) | Asked::Request(_) => Err(ApiError::NotYours),
    }
}

/// A request as its guest sees it: an operation that waits, or of which nothing is left.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_whole_seconds_within_its_bound() {
        assert_eq!(seconds("30s"), Some(Duration::from_secs(30)));
        for bad in ["", "30", "0s", "56s", "-1s", "1.5s", "30m", "s"] {
            assert_eq!(seconds(bad), None, "{bad:?}");
        }
    }
}
