//! Work orders of the hub: taken once, bounded, and reported.
//!
//! An order that becomes an operation is a row here and a request of the same id, in one transaction with its audit
//! line: whatever kills the agent, it is neither lost nor done twice (I2). Its end is written in the transaction that ends
//! its request or its operation. What is only read is settled by the task that read it. Deliberately absent: what the
//! order does (`plan::work_orders`).

mod intake;
mod report;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, OperationId, WorkOrderId};
use holdfast_protocol::work_order::{
    DiagnosticText, HostOrderState, OrderAct, OrderResult, QueuedOrder, WorkOrderReport,
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::columns::{from_json, json, micros, parsed, time};
use super::{Part, Store, StoreError, audit};
use agent_core::operation::log::Status;
use agent_core::operation::progress::OperationState;

pub use intake::OrderOutcome;

/// Texts of readings that wait for the hub, at most. The oldest goes first.
const TEXTS_WAITING_MAX: u32 = 8;

/// An order on record.
#[derive(Clone, Debug)]
struct OrderRow {
    id: WorkOrderId,
    act: Option<OrderAct>,
    taken_at: Timestamp,
    expires_at: Timestamp,
    operation: Option<OperationId>,
    report: Option<WorkOrderReport>,
    correlation: Option<CorrelationId>,
}

/// An order that is only read for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReading {
    pub id: WorkOrderId,
    pub act: OrderAct,
    pub expires_at: Timestamp,
    pub correlation: Option<CorrelationId>,
}

const COLUMNS: &str = "id, act, taken_at, expires_at, operation, report, correlation";

struct Raw {
    id: String,
    act: Option<String>,
    times: [i64; 2],
    operation: Option<String>,
    report: Option<String>,
    correlation: Option<String>,
}

fn raw(row: &rusqlite::Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        id: row.get(0)?,
        act: row.get(1)?,
        times: [row.get(2)?, row.get(3)?],
        operation: row.get(4)?,
        report: row.get(5)?,
        correlation: row.get(6)?,
    })
}

impl Raw {
    fn row(self) -> Result<OrderRow, StoreError> {
        let [taken_at, expires_at] = self.times;
        Ok(OrderRow {
            id: parsed("an order", &self.id)?,
            act: self.act.map(|act| from_json("an order", &act)).transpose()?,
            taken_at: time(taken_at)?,
            expires_at: time(expires_at)?,
            operation: self.operation.map(|id| parsed("an operation", &id)).transpose()?,
            report: self.report.map(|report| from_json("an order's report", &report)).transpose()?,
            correlation: self.correlation.map(|id| parsed("a correlation id", &id)).transpose()?,
        })
    }
}

fn find(connection: &Connection, id: WorkOrderId) -> Result<Option<OrderRow>, StoreError> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM work_order WHERE id = ?1"))
        .and_then(|mut select| select.query_row([id.to_string()], raw).optional())
        .map_err(StoreError::sqlite("find an order"))?
        .map(Raw::row)
        .transpose()
}

/// Orders that wait for this request or operation, or are under way with it.
fn open_of(connection: &Connection, operation: OperationId) -> Result<Vec<OrderRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM work_order WHERE operation = ?1 AND report IS NULL");
    let rows: Vec<Raw> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map([operation.to_string()], raw)?.collect())
        .map_err(StoreError::sqlite("find the orders of an operation"))?;
    rows.into_iter().map(Raw::row).collect()
}

/// An end without an operation.
fn ended(
    row: &OrderRow,
    state: HostOrderState,
    problem: Option<ErrorBody>,
    at: Timestamp,
) -> WorkOrderReport {
    WorkOrderReport {
        id: row.id,
        state,
        claimed_at: row.taken_at,
        operation: None,
        ended_at: Some(at),
        phases: Vec::new(),
        log: Vec::new(),
        result: None,
        problem,
    }
}

/// Writes the end of an order, once, with its line in the audit.
fn end(
    transaction: &Transaction<'_>,
    row: &OrderRow,
    report: &WorkOrderReport,
    at: Timestamp,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE work_order SET report = ?2, ended_at = ?3 WHERE id = ?1 AND report IS NULL",
            (row.id.to_string(), json("an order's report", report)?, micros(at)),
        )
        .map_err(StoreError::sqlite("end an order"))?;
    let why = report.problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}"));
    let kind = row.act.as_ref().map_or("an order", OrderAct::as_str);
    let detail = format!("{kind} {}{why}", report.state.as_str());
    let (guest, operation) =
        (row.act.as_ref().and_then(OrderAct::guest), Some(OperationId::new(row.id.uuid())));
    audit::append(transaction, &audit::Line { at, action: "order_ended", guest, operation, detail: &detail })
}

/// Applies the end of a request that never became an operation.
pub(super) fn request_ended(
    transaction: &Transaction<'_>,
    id: OperationId,
    problem: &ErrorBody,
    at: Timestamp,
) -> Result<(), StoreError> {
    for row in open_of(transaction, id)? {
        let state = match problem.code {
            ErrorCode::Cancelled => HostOrderState::Cancelled,
            _ if at >= row.expires_at => HostOrderState::Expired,
            _ => HostOrderState::Failed,
        };
        let report = ended(&row, state, Some(problem.clone()), at);
        end(transaction, &row, &report, at)?;
    }
    Ok(())
}

/// Applies the end of an operation, or its reopening, to the orders that wait for it.
pub(super) fn follow(
    transaction: &Transaction<'_>,
    after: &OperationState,
    at: Timestamp,
) -> Result<(), StoreError> {
    if after.status().is_end() {
        for row in open_of(transaction, after.id)? {
            let report = report::of_operation(transaction, &row, after)?;
            end(transaction, &row, &report, at)?;
        }
        return Ok(());
    }
    // A person had the parked operation tried again. An order that was cancelled is not among them.
    transaction
        .execute(
            "UPDATE work_order SET report = NULL, ended_at = NULL
             WHERE operation = ?1 AND json_extract(report, '$.state') = 'failed'",
            [after.id.to_string()],
        )
        .map_err(StoreError::sqlite("take an order up again"))?;
    Ok(())
}

/// Whether an operation ended well.
const fn end_state(status: Status) -> HostOrderState {
    match status {
        Status::Done => HostOrderState::Succeeded,
        Status::Undone | Status::Parked | Status::Forgotten => HostOrderState::Failed,
        Status::Queued
        | Status::Before(_)
        | Status::During(_)
        | Status::Broken(_)
        | Status::AllDone
        | Status::UndoBefore(_)
        | Status::UndoDuring(_)
        | Status::AllUndone => HostOrderState::Running,
    }
}

fn readings(connection: &Connection) -> Result<Vec<OpenReading>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM work_order WHERE report IS NULL AND operation IS NULL ORDER BY taken_at"
    );
    let rows: Vec<Raw> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map([], raw)?.collect())
        .map_err(StoreError::sqlite("read the orders"))?;
    let mut open = Vec::new();
    for row in rows {
        let OrderRow { id, act, expires_at, correlation, .. } = row.row()?;
        open.extend(act.map(|act| OpenReading { id, act, expires_at, correlation }));
    }
    Ok(open)
}

fn settle(
    transaction: &Transaction<'_>,
    id: WorkOrderId,
    outcome: &Result<(OrderResult, Option<String>), ErrorBody>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(row) = find(transaction, id)?.filter(|row| row.report.is_none()) else { return Ok(()) };
    let report = match outcome {
        Ok((result, text)) => {
            if let Some(text) = text {
                transaction
                    .execute(
                        "UPDATE work_order SET reading = ?2, reading_at = ?3 WHERE id = ?1",
                        (id.to_string(), text, micros(at)),
                    )
                    .and_then(|_| {
                        transaction.execute(
                            "UPDATE work_order SET reading = NULL WHERE reading IS NOT NULL AND id NOT IN
                             (SELECT id FROM work_order WHERE reading IS NOT NULL ORDER BY reading_at DESC LIMIT ?1)",
                            [TEXTS_WAITING_MAX],
                        )
                    })
                    .map_err(StoreError::sqlite("keep a reading"))?;
            }
            WorkOrderReport {
                result: Some(result.clone()),
                ..ended(&row, HostOrderState::Succeeded, None, at)
            }
        }
        Err(problem) => {
            let state = if at >= row.expires_at { HostOrderState::Expired } else { HostOrderState::Failed };
            ended(&row, state, Some(problem.clone()), at)
        }
    };
    end(transaction, &row, &report, at)
}

impl Store {
    /// Takes an order of the hub, or takes it back. On disk when this returns.
    ///
    /// # Errors
    /// [`StoreError`]: nothing came of it then, and the hub passes it on again.
    pub async fn take_order(&self, order: QueuedOrder, at: Timestamp) -> Result<OrderOutcome, StoreError> {
        // Repeats of what is on record are the usual case while a report is on its way; they write nothing.
        if let Some(known) = self.known_order(&order).await? {
            return Ok(known);
        }
        self.write(Part::Requests, "take an order", move |transaction| intake::take(transaction, &order, at))
            .await
    }

    async fn known_order(&self, order: &QueuedOrder) -> Result<Option<OrderOutcome>, StoreError> {
        let (id, call) = (order.id, order.call);
        self.read(move |connection| Ok(find(connection, id)?.and_then(|row| intake::known(&row, call)))).await
    }

    /// Orders that are only read for, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_readings(&self) -> Result<Vec<OpenReading>, StoreError> {
        self.read_cached(&self.answers.open_readings, (), readings).await
    }

    /// Ends an order that was only read for. A second time changes nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn settle_reading(
        &self,
        id: WorkOrderId,
        outcome: Result<(OrderResult, Option<String>), ErrorBody>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Part::Requests, "settle an order", move |transaction| {
            settle(transaction, id, &outcome, at)
        })
        .await
    }

    /// Reports on orders: the open ones, and the newest that ended. Nothing where there never was one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn order_reports(&self, now: Timestamp) -> Result<Option<Vec<WorkOrderReport>>, StoreError> {
        self.read(move |connection| report::all(connection, now)).await
    }

    /// The oldest text of a reading that the hub does not have.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn waiting_text(&self) -> Result<Option<DiagnosticText>, StoreError> {
        self.read_cached(&self.answers.waiting_text, (), |connection| {
            let row: Option<(String, i64, String)> = connection
                .prepare_cached(
                    "SELECT id, reading_at, reading FROM work_order WHERE reading IS NOT NULL ORDER BY reading_at LIMIT 1",
                )
                .and_then(|mut select| {
                    select.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
                })
                .map_err(StoreError::sqlite("read a reading"))?;
            row.map(|(id, at, text)| {
                Ok(DiagnosticText { order: parsed("an order", &id)?, read_at: time(at)?, text })
            })
            .transpose()
        })
        .await
    }

    /// The hub has this text.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn text_arrived(&self, order: WorkOrderId) -> Result<(), StoreError> {
        self.write(Part::Nothing, "let a reading go", move |transaction| {
            transaction
                .execute("UPDATE work_order SET reading = NULL WHERE id = ?1", [order.to_string()])
                .map(|_| ())
                .map_err(StoreError::sqlite("let a reading go"))
        })
        .await
    }
}

#[cfg(test)]
mod tests;
