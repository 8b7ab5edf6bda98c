//! Intake of work orders: judged, then taken once.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::work_order::{HostOrderState, OrderAct, OrderCall, OrderText, QueuedOrder};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Transaction};

use super::{OrderRow, end, ended, find};
use crate::columns::{json, micros};
use crate::request::{self, AskError, NewRequest};
use crate::{StoreError, audit};
use agent_core::model::limits;
use agent_core::model::request::{Ask, Ended, Ordered, OrderedAct};

/// Refusals within an hour that leave a line in the audit. A hub that sends any number of orders fills no disk.
const LINES_PER_HOUR: u32 = 60;

/// What became of an order as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// It is on record from now on.
    Taken,
    /// It was on record before.
    Known,
    /// It was refused, for a reason that is in the report.
    Refused,
    /// It was taken back before it began, or never will be taken.
    Cancelled,
    /// It has begun, or is over.
    TooLate,
}

impl OrderOutcome {
    /// For logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Known => "known",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::TooLate => "too_late",
        }
    }
}

/// What follows without any write.
pub(super) const fn known(row: &OrderRow, call: OrderCall) -> Option<OrderOutcome> {
    match (call, &row.report) {
        (OrderCall::CarryOut, _) => Some(OrderOutcome::Known),
        (OrderCall::Cancel, Some(_)) => Some(OrderOutcome::TooLate),
        (OrderCall::Cancel, None) => None,
    }
}

struct Refusal {
    state: HostOrderState,
    problem: ErrorBody,
}

fn refuse(code: ErrorCode, text: impl Into<String>) -> Refusal {
    Refusal { state: HostOrderState::Failed, problem: ErrorBody::new(code, text) }
}

/// Why an order is not taken, or what kept it from being judged.
enum IntakeError {
    Refused(Refusal),
    Store(StoreError),
}

impl From<StoreError> for IntakeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for IntakeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<AskError> for IntakeError {
    fn from(error: AskError) -> Self {
        let code = match error {
            AskError::Store(error) => return Self::Store(error),
            AskError::Busy { .. } => ErrorCode::Busy,
            AskError::NameTaken(_) => ErrorCode::NameTaken,
            AskError::Lane(_)
            | AskError::Mismatch
            | AskError::NoSuchSnapshot(_)
            | AskError::Quota
            | AskError::Backups(_)
            | AskError::Daily(_) => ErrorCode::Quota,
        };
        Self::Refused(refuse(code, chain(&error)))
    }
}

pub(super) fn take(
    transaction: &Transaction<'_>,
    order: &QueuedOrder,
    at: Timestamp,
) -> Result<OrderOutcome, StoreError> {
    match (find(transaction, order.id)?, order.call) {
        (Some(row), call) => match known(&row, call) {
            Some(outcome) => Ok(outcome),
            None => take_back(transaction, &row, at),
        },
        // It never came: it is on record as cancelled, so that a late copy of it is not carried out.
        (None, OrderCall::Cancel) => {
            let problem = ErrorBody::new(ErrorCode::Cancelled, "it was cancelled before it came here");
            let act = OrderText::parse(&order.text).ok().map(|order| order.act);
            turn_away(transaction, order, act, &Refusal { state: HostOrderState::Cancelled, problem }, at)?;
            Ok(OrderOutcome::Cancelled)
        }
        (None, OrderCall::CarryOut) => {
            let text = match OrderText::parse(&order.text) {
                Ok(text) => text,
                Err(error) => {
                    let text = format!("this agent does not know the order: {}", chain(&error));
                    turn_away(transaction, order, None, &refuse(ErrorCode::Unsupported, text), at)?;
                    return Ok(OrderOutcome::Refused);
                }
            };
            match judged(transaction, order, &text, at) {
                Ok(()) => Ok(OrderOutcome::Taken),
                Err(IntakeError::Store(error)) => Err(error),
                Err(IntakeError::Refused(why)) => {
                    turn_away(transaction, order, Some(text.act), &why, at)?;
                    Ok(OrderOutcome::Refused)
                }
            }
        }
    }
}

/// Judges everything before the first write, so that a refusal leaves nothing but itself.
fn judged(
    transaction: &Transaction<'_>,
    order: &QueuedOrder,
    text: &OrderText,
    at: Timestamp,
) -> Result<(), IntakeError> {
    let id = OperationId::new(order.id.uuid());
    if request::find_asked(transaction, id)?.is_some() {
        return Err(refuse(ErrorCode::NameTaken, "something else has its id: order it anew").into());
    }
    if at >= text.expires_at {
        let problem = ErrorBody::new(ErrorCode::Unavailable, "its time was over when it came: order it anew");
        return Err(Refusal { state: HostOrderState::Expired, problem }.into());
    }
    budget(transaction, &text.act, at)?;
    let latest = at.checked_add(limits::ORDER_LIFE_MAX).unwrap_or(Timestamp::MAX);
    let expires_at = text.expires_at.min(latest);
    let operation = match ask(&text.act, expires_at) {
        None => None,
        Some((guest, ask)) => {
            let new = NewRequest { id, guest, ask, key: None, correlation: order.correlation_id, at };
            Some(request::order(transaction, &new)?)
        }
    };
    insert(transaction, order, (Some(&text.act), expires_at), operation, at)?;
    thin(transaction)?;
    let (guest, detail) = (text.act.guest(), text.act.as_str());
    audit::append(
        transaction,
        &audit::Line { at, action: "order_taken", guest, operation: Some(id), detail },
    )?;
    Ok(())
}

/// The request that an order becomes; none where it is only read for.
fn ask(act: &OrderAct, expires_at: Timestamp) -> Option<(holdfast_protocol::id::GuestUid, Ask)> {
    let (guest, act) = match act {
        OrderAct::BackupNow { guest, tier } => (*guest, OrderedAct::Backup { tier: *tier }),
        OrderAct::Snapshot { guest, name, keep_s } => {
            (*guest, OrderedAct::Snapshot { name: name.clone(), keep_s: keep_s.map(|keep| keep.get()) })
        }
        OrderAct::RestartGuest { guest, timing } => (*guest, OrderedAct::Restart { timing: *timing }),
        OrderAct::RestoreTestNow { guest, tier } => (*guest, OrderedAct::RestoreTest { tier: *tier }),
        OrderAct::Refresh {} | OrderAct::CollectDiagnostics { .. } => return None,
    };
    Some((guest, Ask::Ordered(Ordered { act, expires_at })))
}

/// A number of rows; a row dated ahead of now was written under a wrong clock, and would count until that time comes.
fn count(connection: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<u32, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_row(values, |row| row.get(0)))
        .map_err(StoreError::sqlite("count the orders"))
}

fn budget(connection: &Connection, act: &OrderAct, at: Timestamp) -> Result<(), IntakeError> {
    let guest = act.guest().map(|guest| guest.to_string());
    let open = count(connection, "SELECT count(*) FROM work_order WHERE report IS NULL", &[])?;
    let open_of_guest =
        count(connection, "SELECT count(*) FROM work_order WHERE report IS NULL AND guest = ?1", &[&guest])?;
    if open >= limits::ORDERS_OPEN_MAX || open_of_guest >= limits::ORDERS_OPEN_PER_GUEST {
        let text = format!(
            "{} orders of a host and {} of a guest may be open: wait for some to end",
            limits::ORDERS_OPEN_MAX,
            limits::ORDERS_OPEN_PER_GUEST
        );
        return Err(refuse(ErrorCode::Quota, text).into());
    }
    let budget = limits::order_budget(act);
    let since = micros(at.checked_sub(SignedDuration::from_hours(budget.hours)).unwrap_or(Timestamp::MIN));
    let until = micros(at.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX));
    let kind = act.as_str();
    let sql =
        "SELECT count(*) FROM work_order WHERE refused = 0 AND kind = ?1 AND taken_at BETWEEN ?2 AND ?3";
    let of_host = count(connection, sql, &[&kind, &since, &until])?;
    let sql = "SELECT count(*) FROM work_order
               WHERE refused = 0 AND kind = ?1 AND taken_at BETWEEN ?2 AND ?3 AND guest IS ?4";
    let of_guest = count(connection, sql, &[&kind, &since, &until, &guest])?;
    if of_host >= budget.per_host || of_guest >= budget.per_guest {
        let text = format!(
            "{kind} may be ordered {} times in {} h for one guest and {} times on one host: order it later",
            budget.per_guest, budget.hours, budget.per_host
        );
        return Err(refuse(ErrorCode::Quota, text).into());
    }
    Ok(())
}

fn insert(
    transaction: &Transaction<'_>,
    order: &QueuedOrder,
    (act, expires_at): (Option<&OrderAct>, Timestamp),
    operation: Option<OperationId>,
    at: Timestamp,
) -> Result<(), StoreError> {
    transaction
        .execute(
            "INSERT INTO work_order (id, kind, act, guest, expires_at, taken_at, operation, correlation)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                order.id.to_string(),
                act.map_or("unknown", OrderAct::as_str),
                act.map(|act| json("an order", act)).transpose()?,
                act.and_then(OrderAct::guest).map(|guest| guest.to_string()),
                micros(expires_at),
                micros(at),
                operation.map(|id| id.to_string()),
                order.correlation_id.map(|id| id.to_string()),
            ),
        )
        .map_err(StoreError::sqlite("write an order"))?;
    Ok(())
}

/// Forgets the oldest that ended.
fn thin(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    for (refused, kept) in [(1, limits::ORDERS_REFUSED_KEPT), (0, limits::ORDERS_KEPT)] {
        transaction
            .execute(
                "DELETE FROM work_order WHERE refused = ?1 AND report IS NOT NULL AND id NOT IN
                 (SELECT id FROM work_order WHERE refused = ?1 ORDER BY taken_at DESC, id DESC LIMIT ?2)",
                (refused, kept),
            )
            .map_err(StoreError::sqlite("forget old orders"))?;
    }
    Ok(())
}

/// Puts an order on record that never begins.
fn turn_away(
    transaction: &Transaction<'_>,
    order: &QueuedOrder,
    act: Option<OrderAct>,
    why: &Refusal,
    at: Timestamp,
) -> Result<(), StoreError> {
    insert(transaction, order, (act.as_ref(), at), None, at)?;
    let row = OrderRow {
        id: order.id,
        act,
        taken_at: at,
        expires_at: at,
        operation: None,
        report: None,
        correlation: order.correlation_id,
    };
    let report = ended(&row, why.state, Some(why.problem.clone()), at);
    let since = micros(at.checked_sub(SignedDuration::from_hours(1)).unwrap_or(Timestamp::MIN));
    let sql = "SELECT count(*) FROM work_order WHERE refused = 1 AND taken_at > ?1";
    let is_written = count(transaction, sql, &[&since])? < LINES_PER_HOUR;
    transaction
        .execute(
            "UPDATE work_order SET refused = 1, report = ?2, ended_at = ?3 WHERE id = ?1",
            (order.id.to_string(), json("an order's report", &report)?, micros(at)),
        )
        .map_err(StoreError::sqlite("refuse an order"))?;
    thin(transaction)?;
    if !is_written {
        return Ok(());
    }
    let (guest, detail) = (row.act.as_ref().and_then(OrderAct::guest), why.problem.to_string());
    let operation = Some(OperationId::new(order.id.uuid()));
    audit::append(
        transaction,
        &audit::Line { at, action: "order_refused", guest, operation, detail: &detail },
    )
}

/// Takes an order back that waits. What is under way goes on to its end.
fn take_back(
    transaction: &Transaction<'_>,
    row: &OrderRow,
    at: Timestamp,
) -> Result<OrderOutcome, StoreError> {
    let problem = ErrorBody::new(ErrorCode::Cancelled, "an operator cancelled it before it began");
    let own = OperationId::new(row.id.uuid());
    match row.operation {
        Some(operation) if operation == own => {
            let ended = Ended { problem, at };
            request::cancel_ordered(transaction, own, &ended).map(|ended| match ended {
                request::Swapped::Yes => OrderOutcome::Cancelled,
                request::Swapped::No => OrderOutcome::TooLate,
            })
        }
        // It is only read for, or joined what another asked for, which goes on.
        Some(_) | None => {
            end(transaction, row, &ended(row, HostOrderState::Cancelled, Some(problem), at), at)?;
            Ok(OrderOutcome::Cancelled)
        }
    }
}
