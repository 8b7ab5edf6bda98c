//! Withdrawn orders to restore this host.
//!
//! A withdrawal that this host received is kept for good, so that no hub can omit it later.

use holdfast_protocol::id::JobId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::{Act, JobState};
use holdfast_trust::Accepted;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::columns::{micros, parsed, time};
use super::job_end::{Swapped, TakeError, end};
use super::{Part, Store, StoreError};
use agent_core::gate::job_validation::TurnedAway;

/// The time on disk is never older than this while the hub answers.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_hours(1);

const SERVED: &str = "hub_served_at";

fn withdraw(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let Act::WithdrawRestore(withdrawal) = &payload.act else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    if end(transaction, payload.job_id, (JobState::Waiting, JobState::Done), None, at)? == Swapped::Yes {
        transaction
            .execute(
                "INSERT OR IGNORE INTO withdrawn_order (digest, job, at) VALUES (?1, ?2, ?3)",
                (withdrawal.order.as_str(), payload.job_id.to_string(), micros(at)),
            )
            .map_err(StoreError::sqlite("note that an order was taken back"))?;
    }
    Ok(())
}

fn found(connection: &Connection, order: &Sha256Text) -> Result<Option<JobId>, StoreError> {
    let job: Option<String> = connection
        .prepare_cached("SELECT job FROM withdrawn_order WHERE digest = ?1")
        .and_then(|mut select| select.query_row([order.as_str()], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("look for an order that was taken back"))?;
    job.map(|job| parsed("a job", &job)).transpose()
}

/// When the hub last served this host, by the latest time of a synchronised clock; to the hour.
pub(super) fn served(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let at: Option<i64> = connection
        .prepare_cached("SELECT value FROM counter WHERE key = ?1")
        .and_then(|mut select| select.query_row([SERVED], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read when the hub last answered"))?;
    at.map(time).transpose()
}

impl Store {
    /// Notes that operators took an order back, and ends the job.
    ///
    /// # Errors
    /// [`TakeError`]; nothing changes then.
    pub async fn withdraw_order(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "take an order back", move |transaction| withdraw(transaction, &job, at)).await
    }

    /// The job that withdrew an order, where this host received it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn withdrawn(&self, order: Sha256Text) -> Result<Option<JobId>, StoreError> {
        self.read(move |connection| found(connection, &order)).await
    }

    /// Notes that the hub serves this host: once an hour. The clock may be wrong, so the recorded time is the latest
    /// one of a synchronised clock.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_served(&self) -> Result<(), StoreError> {
        let status = self.trust_state().await?;
        let due = |last: Timestamp| status.latest.duration_since(last) >= WRITTEN_EVERY;
        if !status.served.is_none_or(due) {
            return Ok(());
        }
        let at = micros(status.latest);
        self.write(Part::Nothing, "note that the hub answers", move |transaction| {
            transaction
                .execute(
                    "INSERT INTO counter (key, value) VALUES (?1, ?2)
                     ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
                    (SERVED, at),
                )
                .map_err(StoreError::sqlite("note that the hub answers"))?;
            Ok(())
        })
        .await
    }
}
