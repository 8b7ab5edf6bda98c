//! Restore orders of a host: listing and withdrawal.
//!
//! The hub reads only the hash of an order. The hosts decide whether a withdrawal counts. The hub hands it over with
//! the order that it names, and gives no machine a place by an order that has one.

use async_trait::async_trait;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::job::SignedJob;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::restore::{RestoreOrder, RestoreState};
use jiff::Timestamp;

use super::columns::{Id, Text, Time};
use super::events::emit;
use super::host_row;
use super::sql::{self, Connection, params};
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    By, NewWithdrawal, RESTORE_ORDERS_MAX, RESTORE_ORDERS_SHOWN, RestoreOrders, WithdrawError, WriteError,
};

struct Row {
    id: Id,
    order: RestoreOrder,
}

/// The newest first.
fn rows(connection: &Connection, number: i64, now: Timestamp) -> sql::Result<Vec<Row>> {
    let since = now.checked_sub(RESTORE_ORDERS_SHOWN).unwrap_or(Timestamp::MIN);
    let sql = "SELECT id, signed_job, created_by, created_at, expires_at, used_at, withdrawn_at FROM restores
               WHERE host = $1 AND created_at > $2 ORDER BY created_at DESC, id LIMIT $3";
    let select = connection.prepare_cached(sql)?;
    let found = select.query_map(params![number, Time(since), RESTORE_ORDERS_MAX], |row| {
        let signed: String = row.get(1)?;
        let expires_at = row.get::<_, Time>(4)?.0;
        let (used, withdrawn): (Option<i64>, Option<i64>) = (row.get(5)?, row.get(6)?);
        let state = match (used, withdrawn) {
            (_, Some(_)) => RestoreState::Withdrawn,
            (Some(_), None) => RestoreState::Used,
            (None, None) if now >= expires_at => RestoreState::Ended,
            (None, None) => RestoreState::Unused,
        };
        // It was read when it was left.
        let payload = SignedJob::parse(signed.as_bytes()).map(|job| job.payload).unwrap_or_default();
        let order = RestoreOrder {
            order: Sha256Text::of(&payload),
            by: row.get::<_, Text<OperatorName>>(2)?.0,
            at: row.get::<_, Time>(3)?.0,
            expires_at,
            state,
        };
        Ok(Row { id: row.get(0)?, order })
    })?;
    found.collect()
}

/// The orders of a host, the newest first.
pub(super) fn of_host(
    connection: &Connection,
    number: i64,
    now: Timestamp,
) -> sql::Result<Vec<RestoreOrder>> {
    Ok(rows(connection, number, now)?.into_iter().map(|row| row.order).collect())
}

#[async_trait]
impl RestoreOrders for Postgres {
    async fn withdraw_restore(
        &self,
        by: By,
        new: NewWithdrawal,
    ) -> Result<Option<RestoreOrder>, WriteError<WithdrawError>> {
        self.mutate("take an order to restore a host back", by, move |tx, by| {
            let Some(record) = host_row::find(tx, &new.host)? else { return Ok(None) };
            let refuse = |error| Err(Failed::Refused(error));
            let here = record.view.id;
            if new.ordered != here {
                return refuse(WithdrawError::Other { ordered: new.ordered, here });
            }
            let found = rows(tx, record.number, by.at)?.into_iter().find(|row| row.order.order == new.order);
            let Some(Row { id, mut order }) = found else {
                return refuse(WithdrawError::Unknown(new.order.as_str().to_owned()));
            };
            let sql = "UPDATE restores SET withdrawal = $2, withdrawn_at = $3 WHERE id = $1 AND withdrawn_at IS NULL";
            if tx.prepare_cached(sql)?.execute(params![id, new.withdrawal, Time(by.at)])? == 1 {
                let was = order.state.as_str();
                let event = NewEvent {
                    at: by.at,
                    kind: EventKind::RestoreWithdrawn,
                    host: Some(here),
                    actor: Some(by.operator.clone()),
                    correlation: by.correlation,
                    message: format!(
                        "order {} to take the place of {}, which was {was}, was taken back",
                        new.order.as_str(),
                        record.view.name
                    ),
                };
                emit(tx, &event)?;
            }
            order.state = RestoreState::Withdrawn;
            Ok(Some(order))
        })
        .await
    }
}
