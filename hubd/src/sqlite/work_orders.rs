//! Work orders, their delivery and their reports.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, GuestUid, HostId, OperatorName, WorkOrderId};
use holdfast_protocol::operator::HostState;
use holdfast_protocol::work_order::{
    DiagnosticText, ORDERS_PER_ANSWER, OrderCall, OrderText, QueuedOrder, WorkOrderDetail, WorkOrderReport,
    WorkOrderState, WorkOrderView,
};
use jiff::{SignedDuration, Timestamp};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::authenticated_host::AuthenticatedHost;
use super::columns::{Id, Text, Time};
use super::events::{EventGuest, emit, emit_of};
use super::host_row::find;
use super::settled::Scope;
use super::writer::{Shape, Tx};
use super::{Failed, Sqlite};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::host::HostRef;
use crate::domain::work_order::{
    self, CancelOutcome, CancelRequest, EXPIRY_MARGIN, KEPT_PER_HOST_MAX, OpenOrders, OrderStanding,
    TEXTS_PER_HOST_MAX, WorkOrderError,
};
use crate::store::{
    By, Checkin, NewWorkOrder, StoreError, Term, WorkOrderDone, WorkOrderFilter, WorkOrders, WriteError, duty,
};

struct Json<T>(T);

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

fn text(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

struct StateColumn(WorkOrderState);

impl FromSql for StateColumn {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        let state = WorkOrderState::ALL.into_iter().find(|state| state.as_str() == name);
        state.map(Self).ok_or_else(|| FromSqlError::Other(format!("{name} is no state of an order").into()))
    }
}

const COLUMNS: &str =
    "number, id, text, state, operator, created_at, expires_at, cancel_at, report, correlation";

struct OrderRow {
    number: i64,
    order: WorkOrderView,
}

impl OrderRow {
    const fn standing(&self) -> OrderStanding {
        let cancel = match self.order.cancel_requested_at {
            Some(_) => CancelRequest::Made,
            None => CancelRequest::None,
        };
        OrderStanding { state: self.order.state, cancel }
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<OrderRow> {
    let order = WorkOrderView {
        id: WorkOrderId::new(row.get::<_, Id>("id")?.0),
        act: row.get::<_, Json<OrderText>>("text")?.0.act,
        state: row.get::<_, StateColumn>("state")?.0,
        by: row.get::<_, Text<OperatorName>>("operator")?.0,
        created_at: row.get::<_, Time>("created_at")?.0,
        expires_at: row.get::<_, Time>("expires_at")?.0,
        cancel_requested_at: row.get::<_, Option<Time>>("cancel_at")?.map(|time| time.0),
        report: row.get::<_, Option<Json<WorkOrderReport>>>("report")?.map(|report| report.0),
        correlation_id: Some(CorrelationId::new(row.get::<_, Id>("correlation")?.0)),
    };
    Ok(OrderRow { number: row.get("number")?, order })
}

fn one(connection: &Connection, host: i64, id: WorkOrderId) -> rusqlite::Result<Option<OrderRow>> {
    let sql = format!("SELECT {COLUMNS} FROM work_orders WHERE host = ?1 AND id = ?2");
    connection.prepare_cached(&sql)?.query_row(params![host, Id(id.uuid())], read).optional()
}

/// What an answer to a check-in carries. Their number is bounded here and not in the query, as that of signed jobs.
pub(super) fn waiting(connection: &Connection, host: i64) -> rusqlite::Result<Vec<QueuedOrder>> {
    let sql = "SELECT id, text, cancel_at IS NOT NULL, correlation FROM work_orders
               WHERE host = ?1 AND waits = 1 ORDER BY number";
    let read = |row: &Row<'_>| {
        let call = if row.get(2)? { OrderCall::Cancel } else { OrderCall::CarryOut };
        let correlation_id = Some(CorrelationId::new(row.get::<_, Id>(3)?.0));
        Ok(QueuedOrder {
            id: WorkOrderId::new(row.get::<_, Id>(0)?.0),
            call,
            text: row.get(1)?,
            correlation_id,
        })
    };
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([host], read)?.take(ORDERS_PER_ANSWER as usize).collect()
}

fn set(tx: &Tx<'_>, number: i64, order: OrderStanding) -> rusqlite::Result<()> {
    let sql = "UPDATE work_orders SET state = ?2, waits = ?3 WHERE number = ?1";
    tx.prepare_cached(sql)?.execute(params![number, order.state.as_str(), work_order::waits(order)])?;
    Ok(())
}

/// Takes in what a host says of its orders. What it says of an order that is not its own is no answer to anything.
pub(super) fn heard(tx: &Tx<'_>, checkin: &Checkin, host: &AuthenticatedHost) -> rusqlite::Result<()> {
    for report in &checkin.orders {
        let Some(row) = one(tx, host.number, report.id)? else { continue };
        if row.order.report.as_ref() == Some(report) {
            continue;
        }
        let standing = row.standing();
        let state = work_order::reported(standing.state, report.state);
        let sql = "UPDATE work_orders SET report = ?2 WHERE number = ?1";
        tx.prepare_cached(sql)?.execute(params![row.number, text(report)?])?;
        set(tx, row.number, OrderStanding { state, ..standing })?;
        let Some(kind) = work_order::event(standing.state, state) else { continue };
        let why = report.problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}"));
        let event = NewEvent {
            at: checkin.at,
            kind,
            host: Some(checkin.presented.host),
            actor: None,
            correlation: row.order.correlation_id.unwrap_or(checkin.correlation),
            message: format!(
                "{} says of order {} ({}): {}{why}",
                host.name,
                report.id,
                row.order.act.as_str(),
                state.as_str()
            ),
        };
        let about = row.order.act.guest().map(|uid| EventGuest::find(tx, checkin.presented.host, uid));
        emit_of(tx, &event, about.transpose()?.as_ref())?;
    }
    checkin.diagnostic.as_ref().map_or(Ok(()), |reading| keep_text(tx, reading, host))
}

/// Keeps the text of a reading, and the newest few of a host.
fn keep_text(tx: &Tx<'_>, reading: &DiagnosticText, host: &AuthenticatedHost) -> rusqlite::Result<()> {
    let sql = "UPDATE work_orders SET reading = ?3, read_at = ?4 WHERE host = ?1 AND id = ?2";
    let key = Id(reading.order.uuid());
    tx.prepare_cached(sql)?.execute(params![host.number, key, reading.text, Time(reading.read_at)])?;
    let sql = "UPDATE work_orders SET reading = NULL WHERE host = ?1 AND reading IS NOT NULL AND number NOT IN
               (SELECT number FROM work_orders WHERE host = ?1 AND reading IS NOT NULL ORDER BY number DESC LIMIT ?2)";
    tx.prepare_cached(sql)?.execute(params![host.number, TEXTS_PER_HOST_MAX])?;
    Ok(())
}

fn open(tx: &Tx<'_>, host: i64, guest: Option<GuestUid>) -> rusqlite::Result<OpenOrders> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE guest = ?2) FROM work_orders
               WHERE host = ?1 AND state IN ('pending', 'claimed', 'running')";
    let guest = guest.map(|guest| guest.to_string());
    tx.prepare_cached(sql)?
        .query_row(params![host, guest], |row| Ok(OpenOrders { of_host: row.get(0)?, of_guest: row.get(1)? }))
}

fn insert(tx: &Tx<'_>, host: i64, by: &By, new: &NewWorkOrder) -> rusqlite::Result<()> {
    let expires_at = by.at.checked_add(SignedDuration::from_secs(new.life_s.into()));
    // A host compares in the same milliseconds that are kept here.
    let expires_at = expires_at.unwrap_or(Timestamp::MAX).as_millisecond();
    let expires_at = Timestamp::from_millisecond(expires_at).unwrap_or(Timestamp::MAX);
    let order = OrderText { act: new.act.clone(), expires_at };
    let sql = "INSERT INTO work_orders (host, id, guest, text, state, operator, created_at, expires_at, waits, correlation)
               VALUES (?1, ?2, ?3, ?4, 'pending', ?5, ?6, ?7, 1, ?8)";
    tx.prepare_cached(sql)?.execute(params![
        host,
        Id(new.id.uuid()),
        new.act.guest().map(|guest| guest.to_string()),
        text(&order)?,
        by.operator.as_str(),
        Time(by.at),
        Time(expires_at),
        Id(by.correlation.uuid())
    ])?;
    let sql = "DELETE FROM work_orders WHERE host = ?1 AND state IN ('succeeded', 'failed', 'cancelled', 'expired')
               AND number NOT IN (SELECT number FROM work_orders WHERE host = ?1 ORDER BY number DESC LIMIT ?2)";
    tx.prepare_cached(sql)?.execute(params![host, KEPT_PER_HOST_MAX])?;
    Ok(())
}

fn order_event(by: &By, kind: EventKind, host: HostId, message: String) -> NewEvent {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    NewEvent { at: by.at, kind, host: Some(host), actor, correlation, message }
}

#[async_trait]
impl WorkOrders for Sqlite {
    async fn work_orders(
        &self,
        host: HostRef,
        filter: WorkOrderFilter,
        limit: u32,
    ) -> Result<Option<Vec<(i64, WorkOrderView)>>, StoreError> {
        self.read("list work orders", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let sql = format!(
                "SELECT {COLUMNS} FROM work_orders WHERE host = ?1 AND number < ?2 AND (?3 IS NULL OR state = ?3)
                 ORDER BY number DESC LIMIT ?4"
            );
            let (before, state) = (filter.before.unwrap_or(i64::MAX), filter.state.map(WorkOrderState::as_str));
            let rows: rusqlite::Result<Vec<OrderRow>> = connection
                .prepare_cached(&sql)?
                .query_map(params![record.number, before, state, limit], read)?
                .collect();
            Ok(Some(rows?.into_iter().map(|row| (row.number, row.order)).collect()))
        })
        .await
    }

    async fn work_order(
        &self,
        host: HostRef,
        id: WorkOrderId,
    ) -> Result<Option<WorkOrderDetail>, StoreError> {
        self.read("read a work order", move |connection| {
            let Some(record) = find(connection, &host)? else { return Ok(None) };
            let Some(OrderRow { number, order }) = one(connection, record.number, id)? else {
                return Ok(None);
            };
            let sql = "SELECT reading, read_at FROM work_orders WHERE number = ?1 AND reading IS NOT NULL";
            let text = connection
                .prepare_cached(sql)?
                .query_row([number], |row| {
                    let (text, read_at) = (row.get(0)?, row.get::<_, Time>(1)?.0);
                    Ok(DiagnosticText { order: id, read_at, text })
                })
                .optional()?;
            Ok(Some(WorkOrderDetail { order, text }))
        })
        .await
    }

    async fn order_work(
        &self,
        by: By,
        new: NewWorkOrder,
    ) -> Result<Option<WorkOrderDone>, WriteError<WorkOrderError>> {
        self.mutate("keep a work order", by, move |tx, by| {
            let Some(record) = find(tx, &new.host)? else { return Ok(None) };
            if record.view.state == HostState::Revoked {
                return Ok(None);
            }
            let open = open(tx, record.number, new.act.guest())?;
            work_order::admit(open, new.life_s).map_err(Failed::Refused)?;
            insert(tx, record.number, by, &new)?;
            let message = format!("order {} ({}) waits for {}", new.id, new.act.as_str(), record.view.name);
            emit(tx, &order_event(by, EventKind::WorkOrdered, record.view.id, message))?;
            let row = one(tx, record.number, new.id)?;
            Ok(row.map(|row| WorkOrderDone { host: record.view.id, order: row.order }))
        })
        .await
    }

    async fn cancel_work_order(
        &self,
        by: By,
        host: HostRef,
        id: WorkOrderId,
    ) -> Result<Option<WorkOrderDone>, WriteError<WorkOrderError>> {
        self.mutate("cancel a work order", by, move |tx, by| {
            let Some(record) = find(tx, &host)? else { return Ok(None) };
            let Some(row) = one(tx, record.number, id)? else { return Ok(None) };
            let standing = row.standing();
            match work_order::cancel(standing).map_err(Failed::Refused)? {
                CancelOutcome::Known => {}
                CancelOutcome::Requested => {
                    let sql = "UPDATE work_orders SET cancel_at = ?2 WHERE number = ?1";
                    tx.prepare_cached(sql)?.execute(params![row.number, Time(by.at)])?;
                    set(tx, row.number, OrderStanding { cancel: CancelRequest::Made, ..standing })?;
                    let message = format!("{} is asked to take order {id} back", record.view.name);
                    emit(tx, &order_event(by, EventKind::WorkOrderCancelRequested, record.view.id, message))?;
                }
            }
            let row = one(tx, record.number, id)?;
            Ok(row.map(|row| WorkOrderDone { host: record.view.id, order: row.order }))
        })
        .await
    }

    async fn expire_work_orders(
        &self,
        term: &Term<duty::WorkOrders>,
        now: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError> {
        let over = now.checked_sub(EXPIRY_MARGIN).unwrap_or(Timestamp::MIN);
        // A settled host has no order that waits, so none of those that end here.
        let expired =
            self.write_fenced(term.fence(), "expire work orders", Shape::Several, Scope::NoHost, move |tx| {
                let sql = format!(
                    "SELECT {COLUMNS}, (SELECT hosts.id FROM hosts WHERE hosts.number = host) AS host_id
                 FROM work_orders WHERE state = 'pending' AND expires_at <= ?1 ORDER BY expires_at LIMIT 200"
                );
                let rows: Vec<(OrderRow, HostId)> = tx
                    .prepare_cached(&sql)?
                    .query_map([Time(over)], |row| {
                        Ok((read(row)?, HostId::new(row.get::<_, Id>("host_id")?.0)))
                    })?
                    .collect::<rusqlite::Result<_>>()?;
                for (row, host) in rows {
                    let standing = row.standing();
                    let state = work_order::time_over(standing);
                    set(tx, row.number, OrderStanding { state, ..standing })?;
                    let Some(kind) = work_order::event(standing.state, state) else { continue };
                    let message = format!(
                        "order {} ({}): the host did not take it in time",
                        row.order.id,
                        row.order.act.as_str()
                    );
                    let event =
                        NewEvent { at: now, kind, host: Some(host), actor: None, correlation, message };
                    emit(tx, &event)?;
                }
                Ok::<_, Failed<std::convert::Infallible>>(())
            });
        expired.await.map_err(StoreError::from)
    }
}
