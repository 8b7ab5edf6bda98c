//! Notices on their way to receivers.

use alerts::explain::test_notices;
use alerts::incident::Scope;
use alerts::notice::{DedupeKey, Notice, NoticeIncident, Reason};
use async_trait::async_trait;
use holdfast_protocol::alert::DeliveryOutcome;
use holdfast_protocol::id::ReceiverName;
use jiff::Timestamp;

use super::super::columns::{Text, Time};
use super::super::sql::{self, Error, FromColumn, ValueRef, params};
use super::super::{Failed, Postgres};
use super::incidents;
use super::queue::{end, insert};
use super::rows::{Json, column};
use crate::store::{
    By, DeliveryEnd, DeliveryRecord, Outbox, OutgoingAlert, ReceiverQueue, StoreError, Term, TestError,
    WriteError, duty::Deliveries,
};

type Unrefused = Failed<std::convert::Infallible>;

struct OutcomeColumn(DeliveryOutcome);

impl FromColumn for OutcomeColumn {
    fn column(value: ValueRef<'_>) -> sql::Result<Self> {
        Ok(Self(match value.as_str()? {
            "delivered" => DeliveryOutcome::Delivered,
            "refused" => DeliveryOutcome::Refused,
            "given_up" => DeliveryOutcome::GivenUp,
            "cancelled" => DeliveryOutcome::Cancelled,
            "combined" => DeliveryOutcome::Combined,
            other => return Err(Error::Unreadable(format!("{other} is no outcome of a delivery").into())),
        }))
    }
}

const DELIVERIES: &str =
    "SELECT number, at, receiver, key, tries, outcome, remark, title FROM alert_deliveries";

fn delivery(row: &sql::Row<'_>) -> sql::Result<DeliveryRecord> {
    Ok(DeliveryRecord {
        number: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
        at: row.get::<_, Time>(1)?.0,
        receiver: row.get::<_, Text<_>>(2)?.0,
        key: DedupeKey::stored(row.get(3)?),
        tries: row.get(4)?,
        outcome: row.get::<_, OutcomeColumn>(5)?.0,
        remark: row.get(6)?,
        title: row.get(7)?,
    })
}

#[async_trait]
impl Outbox for Postgres {
    async fn take_outgoing(
        &self,
        term: &Term<Deliveries>,
        now: Timestamp,
    ) -> Result<Vec<OutgoingAlert>, StoreError> {
        let taken = self.write_fenced(term.fence(), "take notices to send", move |tx| {
            // One at a time for each receiver, so that they arrive in order.
            let sql = "SELECT number, body, tries FROM alert_outbox AS o
                       WHERE state = 'waiting' AND next_at <= $1 AND number =
                           (SELECT min(number) FROM alert_outbox WHERE receiver = o.receiver)
                       ORDER BY number";
            let taken = tx
                .prepare_cached(sql)?
                .query_map([Time(now)], |row| {
                    let notice = row.get::<_, Json<Notice>>(1)?.0;
                    Ok(OutgoingAlert { number: row.get(0)?, notice, tries: row.get(2)? })
                })?
                .collect::<sql::Result<Vec<OutgoingAlert>>>()?;
            for one in &taken {
                tx.prepare_cached("UPDATE alert_outbox SET state = 'sending' WHERE number = $1")?
                    .execute([one.number])?;
            }
            Ok::<_, Unrefused>(taken)
        });
        taken.await.map_err(StoreError::from)
    }

    async fn next_outgoing_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("look when a notice is due", |connection| {
            // What is behind one that is being sent follows its end.
            let sql = "SELECT min(next_at) FROM alert_outbox WHERE state = 'waiting'
                       AND receiver NOT IN (SELECT receiver FROM alert_outbox WHERE state = 'sending')";
            let read = |row: &sql::Row<'_>| row.get::<_, Option<Time>>(0);
            Ok(connection.prepare_cached(sql)?.query_row([], read)?.map(|time| time.0))
        })
        .await
    }

    async fn release_outgoing(&self, term: &Term<Deliveries>) -> Result<(), StoreError> {
        let released = self.write_fenced(term.fence(), "release notices", |tx| {
            let sql = "UPDATE alert_outbox SET state = 'waiting', tries = tries + 1 WHERE state = 'sending'";
            tx.execute(sql, [])?;
            Ok::<_, Unrefused>(())
        });
        released.await.map_err(StoreError::from)
    }

    async fn delivery_ended(
        &self,
        term: &Term<Deliveries>,
        sent: OutgoingAlert,
        ended: DeliveryEnd,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let written = self.write_fenced(term.fence(), "keep a delivery", move |tx| {
            let tries = sent.tries.saturating_add(1);
            let (outcome, remark) = match &ended {
                DeliveryEnd::Again { at, failure } => {
                    let sql = "UPDATE alert_outbox SET state = 'waiting', tries = $2, next_at = $3,
                                   failure = $4 WHERE number = $1";
                    tx.prepare_cached(sql)?.execute(params![sent.number, tries, Time(*at), failure])?;
                    return Ok::<_, Unrefused>(());
                }
                DeliveryEnd::Delivered { remark } => (DeliveryOutcome::Delivered, remark.as_deref()),
                DeliveryEnd::Refused { failure } => (DeliveryOutcome::Refused, Some(failure.as_str())),
                DeliveryEnd::GivenUp { failure } => (DeliveryOutcome::GivenUp, Some(failure.as_str())),
            };
            end(tx, sent.number, &sent.notice, (outcome, remark, tries), now)?;
            Ok(())
        });
        written.await.map_err(StoreError::from)
    }

    async fn queue_test(
        &self,
        by: By,
        receiver: ReceiverName,
        number: u64,
    ) -> Result<Vec<DedupeKey>, WriteError<TestError>> {
        self.mutate("queue a test of a receiver", by, move |tx, by| {
            // Names have letters, digits and '-' alone, so they mean nothing else to LIKE.
            let sql = "SELECT count(*) FROM alert_outbox WHERE receiver = $1 AND key LIKE $2";
            let tests = params![receiver.as_str(), format!("{}/{receiver}/{}/%", Scope::Hub, Reason::Test)];
            if tx.prepare_cached(sql)?.query_row(tests, |row| row.get::<_, u32>(0))? > 0 {
                return Err(Failed::Refused(TestError::Waiting));
            }
            let notices = test_notices(&receiver, &by.operator, number, by.at);
            notices.iter().try_for_each(|notice| insert(tx, notice))?;
            Ok(notices.into_iter().map(|notice| notice.key).collect())
        })
        .await
    }

    async fn deliveries(&self, before: Option<u64>, limit: u32) -> Result<Vec<DeliveryRecord>, StoreError> {
        self.read("list deliveries", move |connection| {
            let before = before.map_or(i64::MAX, column);
            let sql = format!("{DELIVERIES} WHERE number < $1 ORDER BY number DESC LIMIT $2");
            connection.prepare_cached(&sql)?.query_map(params![before, limit], delivery)?.collect()
        })
        .await
    }

    async fn last_deliveries(&self) -> Result<Vec<DeliveryRecord>, StoreError> {
        self.read("list the last deliveries", |connection| {
            let sql = format!(
                "{DELIVERIES} WHERE number IN
                     (SELECT max(number) FROM alert_deliveries
                      WHERE outcome IN ('delivered', 'refused', 'given_up') GROUP BY receiver)"
            );
            connection.prepare_cached(&sql)?.query_map([], delivery)?.collect()
        })
        .await
    }

    async fn firing_at(&self, receiver: ReceiverName, limit: u32) -> Result<Vec<NoticeIncident>, StoreError> {
        self.read("look what fires", move |connection| incidents::firing_at(connection, &receiver, limit))
            .await
    }

    async fn queues(&self) -> Result<Vec<ReceiverQueue>, StoreError> {
        self.read("count waiting notices", |connection| {
            let sql = "SELECT receiver, count(*), min(made_at), max(failure) FROM alert_outbox
                       GROUP BY receiver ORDER BY receiver";
            let statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                Ok(ReceiverQueue {
                    receiver: row.get::<_, Text<_>>(0)?.0,
                    waiting: row.get(1)?,
                    oldest: row.get::<_, Time>(2)?.0,
                    failure: row.get(3)?,
                })
            })?;
            rows.collect()
        })
        .await
    }
}
