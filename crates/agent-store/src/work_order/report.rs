//! Reports on work orders.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::work_order::report::REPORTED_MAX;
use holdfast_protocol::work_order::{HostOrderState, OrderAct, OrderResult, WorkOrderReport};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _};

use super::{COLUMNS, OrderRow, Raw, end_state, ended, raw};
use crate::columns::{from_json, parsed, time};
use crate::request::{self, RequestOrOperation};
use crate::{StoreError, journal_read};
use agent_core::operation::progress::OperationState;
use agent_core::plan::order_report;

/// Phases and log of an order that ended longer ago are left out: the hub has them.
const IN_FULL: SignedDuration = SignedDuration::from_hours(1);

pub(super) fn all(
    connection: &Connection,
    now: Timestamp,
) -> Result<Option<Vec<WorkOrderReport>>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM work_order ORDER BY report IS NULL DESC, taken_at DESC, id LIMIT ?1");
    let rows: Vec<Raw> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map([REPORTED_MAX], raw)?.collect())
        .map_err(StoreError::sqlite("read the orders"))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let reports = rows.into_iter().map(|row| one(connection, &row.row()?, now));
    reports.collect::<Result<Vec<_>, _>>().map(Some)
}

fn one(connection: &Connection, row: &OrderRow, now: Timestamp) -> Result<WorkOrderReport, StoreError> {
    if let Some(report) = &row.report {
        let is_old = report.ended_at.is_some_and(|at| now.duration_since(at) > IN_FULL);
        let mut report = report.clone();
        if is_old {
            (report.phases, report.log) = (Vec::new(), Vec::new());
        }
        return Ok(report);
    }
    let claimed =
        WorkOrderReport { ended_at: None, ..ended(row, HostOrderState::Claimed, None, row.taken_at) };
    let Some(operation) = row.operation else { return Ok(claimed) };
    match request::find_asked(connection, operation)? {
        Some(RequestOrOperation::Operation(progress)) => of_operation(connection, row, &progress),
        Some(RequestOrOperation::Request(_)) => Ok(WorkOrderReport { operation: Some(operation), ..claimed }),
        // Its end is written with that of its order, so this is a record of another program.
        Some(RequestOrOperation::Kept(_)) | None => {
            let problem = ErrorBody::new(ErrorCode::Internal, "the record of its operation is gone");
            Ok(ended(row, HostOrderState::Failed, Some(problem), now))
        }
    }
}

/// An order whose operation is under way, or has just ended.
pub(super) fn of_operation(
    connection: &Connection,
    row: &OrderRow,
    progress: &OperationState,
) -> Result<WorkOrderReport, StoreError> {
    let (view, journal) = (progress.view(), journal_read::entries(connection, progress.id)?);
    let state = end_state(progress.status());
    let problem = match state {
        HostOrderState::Failed => Some(
            view.problem
                .clone()
                .unwrap_or_else(|| ErrorBody::new(ErrorCode::Unavailable, "its operation was taken back")),
        ),
        HostOrderState::Claimed
        | HostOrderState::Running
        | HostOrderState::Succeeded
        | HostOrderState::Cancelled
        | HostOrderState::Expired => None,
    };
    let result = match state {
        HostOrderState::Succeeded => result(connection, row, progress.id)?,
        _ => tested(connection, progress.id)?,
    };
    Ok(WorkOrderReport {
        id: row.id,
        state,
        claimed_at: row.taken_at,
        operation: Some(progress.id),
        ended_at: view.ended_at,
        phases: order_report::phases(&view.steps, &journal),
        log: order_report::log(&view.steps, &journal),
        result,
        problem,
    })
}

fn result(
    connection: &Connection,
    row: &OrderRow,
    operation: OperationId,
) -> Result<Option<OrderResult>, StoreError> {
    match &row.act {
        Some(OrderAct::BackupNow { .. }) => backup(connection, operation),
        Some(OrderAct::Snapshot { .. }) => snapshot(connection, operation),
        Some(OrderAct::RestoreTestNow { .. }) => tested(connection, operation),
        Some(OrderAct::RestartGuest { .. }) => Ok(Some(OrderResult::Restart {})),
        Some(OrderAct::Refresh {} | OrderAct::CollectDiagnostics { .. }) | None => Ok(None),
    }
}

fn backup(connection: &Connection, operation: OperationId) -> Result<Option<OrderResult>, StoreError> {
    let found: Option<(String, String, i64, i64)> = connection
        .prepare_cached("SELECT volid, storage, bytes, taken_at FROM backup WHERE operation = ?1")
        .and_then(|mut select| {
            let of = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            select.query_row([operation.to_string()], of).optional()
        })
        .map_err(StoreError::sqlite("find a backup"))?;
    found
        .map(|(archive, storage, bytes, taken_at)| {
            let bytes = u64::try_from(bytes).map_err(StoreError::unreadable("a backup's size"))?;
            let storage = parsed("a storage", &storage)?;
            Ok(OrderResult::Backup { archive, storage, bytes, taken_at: time(taken_at)? })
        })
        .transpose()
}

fn snapshot(connection: &Connection, operation: OperationId) -> Result<Option<OrderResult>, StoreError> {
    let found: Option<(String, Option<i64>)> = connection
        .prepare_cached("SELECT name, expires_at FROM snapshot WHERE operation = ?1")
        .and_then(|mut select| {
            select.query_row([operation.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .map_err(StoreError::sqlite("find a snapshot"))?;
    found
        .map(|(name, expires_at)| {
            let expires_at = expires_at.map(time).transpose()?;
            Ok(OrderResult::Snapshot { name: parsed("a snapshot", &name)?, expires_at })
        })
        .transpose()
}

/// What a restore test showed, also where its operation came to nothing.
fn tested(connection: &Connection, operation: OperationId) -> Result<Option<OrderResult>, StoreError> {
    let found: Option<(String, i64)> = connection
        .prepare_cached("SELECT verdict, taken_at FROM restore_test WHERE operation = ?1")
        .and_then(|mut select| {
            select.query_row([operation.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .map_err(StoreError::sqlite("find a restore test"))?;
    found
        .map(|(verdict, taken_at)| {
            let verdict = from_json("a verdict", &format!("\"{verdict}\""))?;
            Ok(OrderResult::RestoreTest { verdict, taken_at: time(taken_at)? })
        })
        .transpose()
}
