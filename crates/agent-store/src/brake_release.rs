//! Signed releases of the change limit, and their use.
//!
//! Input: a signed job whose delay is over. Output: one row for each guest and operation, in the transaction that ends
//! the job. An operation opened for exactly this document uses up its row, in the transaction that opens it. An
//! operation that was undone completely gives the row back. Deliberately absent: whether the brake would have held it.

use holdfast_protocol::generation::Numbered;
use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::job::act::args::ReleaseBrake;
use holdfast_protocol::job::{Act, JobState};
use holdfast_protocol::operation::OperationKind;
use holdfast_trust::Accepted;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::answer_cache::time_step;
use super::columns::{from_json, micros, parsed};
use super::job_end::{Swapped, TakeError, end};
use super::journal_read::NewOperation;
use super::{Part, Store, StoreError, audit, guest};
use agent_core::gate::change_limit;
use agent_core::gate::job_validation::TurnedAway;
use agent_core::model::policy::BrakeRule;
use agent_core::operation::ChangeLimit;

/// Checks the guests that a release names against our records: its signers read the names.
pub(super) fn names(connection: &Connection, release: &ReleaseBrake) -> Result<(), TakeError> {
    for change in &release.changes {
        let changed = |why: String| Err(TurnedAway::Target(why).into());
        match guest::find(connection, change.guest)? {
            None => return changed(format!("no guest {} of ours is here", change.guest)),
            Some(record) if record.name != change.name => {
                return changed(format!("guest {} is {}, not {}", change.guest, record.name, change.name));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn number(generation: holdfast_protocol::generation::Generation) -> Result<i64, StoreError> {
    i64::try_from(generation.number()).map_err(StoreError::unreadable("a generation"))
}

fn put(transaction: &Transaction<'_>, job: &Accepted, at: Timestamp) -> Result<(), TakeError> {
    let payload = job.payload();
    let Act::ReleaseBrake(release) = &payload.act else {
        return Err(TurnedAway::Unsupported(payload.act.verb()).into());
    };
    let Some(document) = &release.document else {
        return Err(TurnedAway::NotHere(change_limit::unbound()).into());
    };
    names(transaction, release)?;
    forget(transaction, at)?;
    if end(transaction, payload.job_id, (JobState::Waiting, JobState::Done), None, at)? == Swapped::No {
        return Ok(());
    }
    let failed = StoreError::sqlite("note what may pass the brake");
    let mut insert = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO brake_release (job, generation, document, guest, operation, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .map_err(failed)?;
    for change in &release.changes {
        let row = (
            payload.job_id.to_string(),
            number(release.generation)?,
            document.as_str(),
            change.guest.to_string(),
            change.operation.as_str(),
            micros(payload.expires_at.at()),
        );
        insert.execute(row).map_err(StoreError::sqlite("note what may pass the brake"))?;
    }
    Ok(())
}

/// Deletes expired releases, once the change limit no longer counts the changes that they let pass.
fn forget(transaction: &Transaction<'_>, at: Timestamp) -> Result<(), StoreError> {
    let window = SignedDuration::from_hours(i64::from(BrakeRule::WINDOW_MAX_H));
    let before = micros(at.checked_sub(window).unwrap_or(Timestamp::MIN));
    transaction
        .execute("DELETE FROM brake_release WHERE expires_at < ?1", [before])
        .and_then(|_| {
            transaction
                .execute("DELETE FROM brake_release_use WHERE job NOT IN (SELECT job FROM brake_release)", [])
        })
        .map_err(StoreError::sqlite("forget what was let pass"))?;
    Ok(())
}

/// The rows that were not used up, of releases that live.
const UNUSED: &str = "expires_at > ?1 AND generation = ?2 AND document = ?3 AND NOT EXISTS (
        SELECT 1 FROM brake_release_use used LEFT JOIN operation ON operation.id = used.operation
        WHERE used.job = brake_release.job AND used.guest = brake_release.guest
          AND used.kind = brake_release.operation AND coalesce(operation.outcome, '') <> 'undone')";

/// The changes that may pass under a document, each once.
fn unused(
    connection: &Connection,
    document: Numbered,
    at: Timestamp,
) -> Result<Vec<(GuestUid, OperationKind)>, StoreError> {
    let asked = (micros(at), number(document.generation)?, document.content.to_string());
    let rows: Vec<(String, String)> = connection
        .prepare_cached(&format!("SELECT guest, operation FROM brake_release WHERE {UNUSED}"))
        .and_then(|mut select| select.query_map(asked, |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(StoreError::sqlite("read what was let pass"))?;
    rows.into_iter()
        .map(|(guest, kind)| {
            Ok((parsed("a guest", &guest)?, from_json("a kind of operation", &format!("\"{kind}\""))?))
        })
        .collect()
}

/// Uses up the release that lets this operation pass, if there is one. The oldest first.
pub(super) fn spend(transaction: &Transaction<'_>, new: &NewOperation) -> Result<(), StoreError> {
    if new.operation.change_limit() == ChangeLimit::Exempt {
        return Ok(());
    }
    let failed = || StoreError::sqlite("use up what was let pass");
    let generation = number(new.generation)?;
    let content: Option<String> = transaction
        .prepare_cached("SELECT content FROM desired WHERE generation = ?1")
        .and_then(|mut select| select.query_row([generation], |row| row.get(0)).optional())
        .map_err(failed())?;
    let Some(content) = content else { return Ok(()) };
    let (guest, kind) = (new.operation.uid(), new.operation.kind());
    let sql = format!(
        "SELECT job FROM brake_release WHERE guest = ?4 AND operation = ?5 AND {UNUSED} ORDER BY expires_at, job LIMIT 1"
    );
    let job: Option<String> = transaction
        .prepare_cached(&sql)
        .and_then(|mut select| {
            let asked = (micros(new.at), generation, content, guest.to_string(), kind.as_str());
            select.query_row(asked, |row| row.get(0)).optional()
        })
        .map_err(failed())?;
    let Some(job) = job else { return Ok(()) };
    transaction
        .execute(
            "INSERT INTO brake_release_use (operation, job, guest, kind) VALUES (?1, ?2, ?3, ?4)",
            (new.id.to_string(), &job, guest.to_string(), kind.as_str()),
        )
        .map_err(failed())?;
    let (guest, operation): (_, Option<OperationId>) = (Some(guest), Some(new.id));
    let detail = format!("{} was let pass the brake by job {job}, which is used up by it", kind.as_str());
    audit::append(
        transaction,
        &audit::Line { at: new.at, action: "brake_release_used", guest, operation, detail: &detail },
    )
}

impl Store {
    /// The changes that operators released under a document, and that are not used up.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn released(
        &self,
        document: Numbered,
        at: Timestamp,
    ) -> Result<Vec<(GuestUid, OperationKind)>, StoreError> {
        let key = (document, time_step(at));
        self.read_cached(&self.answers.released, key, move |connection| unused(connection, document, at))
            .await
    }

    /// Releases the changes that a signed job names, and ends the job.
    ///
    /// # Errors
    /// [`TakeError`]; nothing passes then.
    pub async fn release_brake(&self, job: Accepted, at: Timestamp) -> Result<(), TakeError> {
        self.write(Part::Jobs, "release the brake", move |transaction| put(transaction, &job, at)).await
    }
}
