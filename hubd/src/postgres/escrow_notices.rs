//! The queue of escrow notices to customers.

use async_trait::async_trait;
use holdfast_protocol::escrow::notice::EscrowNotice;
use holdfast_protocol::id::{CorrelationId, HostId};
use holdfast_protocol::objection::JobNotice;
use jiff::Timestamp;

use super::alerts::json;
use super::columns::{Id, Text, Time};
use super::customers::contact;
use super::events::emit;
use super::sql::{self, Row, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::store::{
    EscrowNotices, JOB_NOTICES_MAX, JOB_NOTICES_WITHIN, NoticeEnd, NoticeSubject, OutgoingNotice, StoreError,
    Term, duty, ended_event, too_many_notices,
};

/// Writes a notice down, to be sent.
pub(super) fn queue<E>(
    tx: &Tx<'_>,
    notice: &EscrowNotice,
    correlation: CorrelationId,
) -> Result<(), Failed<E>> {
    let sql = "INSERT INTO notices (at, customer, host, correlation, body) VALUES ($1, $2, $3, $4, $5)";
    let body = serde_json::to_string(notice)?;
    let (host, correlation) = (Id(notice.host.uuid()), Id(correlation.uuid()));
    tx.prepare_cached(sql)?.execute(params![
        Time(notice.at),
        notice.customer.as_str(),
        host,
        correlation,
        body
    ])?;
    Ok(())
}

/// The same about a job. Beyond the bound of an hour operators hear of it in the customer's place.
pub(super) fn queue_job(
    tx: &Tx<'_>,
    notice: &JobNotice,
    host: HostId,
    correlation: CorrelationId,
) -> sql::Result<()> {
    let customer = notice.customer.as_str();
    let since = notice.at.saturating_sub(JOB_NOTICES_WITHIN).unwrap_or(Timestamp::MIN);
    let sql = "SELECT count(*) FROM notices WHERE customer = $1 AND subject = 'job' AND at > $2";
    let count: u32 = tx.prepare_cached(sql)?.query_row(params![customer, Time(since)], |row| row.get(0))?;
    if count >= JOB_NOTICES_MAX {
        let (at, host, kind) = (notice.at, Some(host), EventKind::NoticeGivenUp);
        let message = too_many_notices(&notice.customer, notice.job);
        return emit(tx, &NewEvent { at, kind, host, actor: None, correlation, message });
    }
    let sql = "INSERT INTO notices (at, customer, host, correlation, body, subject) VALUES ($1, $2, $3, $4, $5, 'job')";
    let (at, body) = (Time(notice.at), json(notice)?);
    let row = params![at, customer, Id(host.uuid()), Id(correlation.uuid()), body];
    tx.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// The table's check allows these two alone.
fn subject(row: &Row<'_>) -> sql::Result<NoticeSubject> {
    let word: String = row.get("subject")?;
    Ok(if word == "job" { NoticeSubject::Job } else { NoticeSubject::EscrowRead })
}

#[async_trait]
impl EscrowNotices for Postgres {
    async fn open_notices(&self) -> Result<Vec<OutgoingNotice>, StoreError> {
        self.read("look for notices to send", |connection| {
            let sql = "SELECT number, at, customer, host, correlation, body, subject FROM notices WHERE number IN
                           (SELECT min(number) FROM notices WHERE done_at IS NULL GROUP BY customer, subject) ORDER BY number";
            connection
                .prepare_cached(sql)?
                .query_map([], |row| {
                    Ok(OutgoingNotice {
                        number: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
                        at: row.get::<_, Time>(1)?.0,
                        customer: row.get::<_, Text<_>>(2)?.0,
                        host: HostId::new(row.get::<_, Id>(3)?.0),
                        correlation: CorrelationId::new(row.get::<_, Id>(4)?.0),
                        body: row.get(5)?,
                        subject: subject(row)?,
                    })
                })?
                .collect()
        })
        .await
    }

    async fn notice_ended(
        &self,
        term: &Term<duty::EscrowNotices>,
        notice: &OutgoingNotice,
        end: NoticeEnd,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (number, host, correlation) = (notice.number, Some(notice.host), notice.correlation);
        let (subject, customer) = (notice.subject, notice.customer.clone());
        let action = "write down what became of a notice";
        let written = self.write_fenced(term.fence(), action, move |tx| {
            let sql = "UPDATE notices SET done_at = $2 WHERE number = $1 AND done_at IS NULL";
            let row = i64::try_from(number).unwrap_or(i64::MAX);
            if tx.prepare_cached(sql)?.execute(params![row, Time(at)])? == 1 {
                let contact = contact(tx, &customer)?.map(|contact| contact.to_string());
                let (kind, message) = ended_event(subject, end, number, &customer, contact.as_deref());
                emit(tx, &NewEvent { at, kind, host, actor: None, correlation, message })?;
            }
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        written.await.map_err(StoreError::from)
    }
}
