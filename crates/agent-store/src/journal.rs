//! Operations and their journal events.

use std::collections::BTreeMap;

use holdfast_protocol::id::{CorrelationId, GuestUid, OperationId};
use holdfast_protocol::operation::{Alike, OperationView};
use jiff::Timestamp;
use rusqlite::Transaction;

use super::columns::{json, micros, parsed};
pub use super::journal_read::NewOperation;
use super::journal_read::{PARKED, load, serial, serials};
pub(super) use super::journal_read::{one, open_on};
use super::{
    Part, Store, StoreError, alike, applied, audit, backup, brake_release, compact, copies, growth, guest,
    record, restore_test, snapshot, tier, window,
};
use agent_core::model::growth::Growth;
use agent_core::operation::log::{Entry, Event, Status};
use agent_core::operation::progress::{OperationState, ReplayError};
use agent_core::operation::step::{Step, StepList};
use agent_core::operation::{JOURNAL_VERSION, Operation};

/// Why an operation was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenOperationError {
    /// Another one is under way on this guest.
    #[error("an operation is under way on guest {0}: wait until it ended")]
    Busy(GuestUid),
    /// The request it would serve was cancelled, or ended otherwise, in the meantime.
    #[error("request {0} does not wait any more: nothing is done for it")]
    Ended(OperationId),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an event was not written. The operation must stop here.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// It may not happen now.
    #[error(transparent)]
    Rules(#[from] ReplayError),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn open(transaction: &Transaction<'_>, new: &NewOperation) -> Result<(), OpenOperationError> {
    let uid = new.operation.uid();
    for held in std::iter::once(new.operation.lane()).chain(new.operation.other()) {
        let busy: i64 = transaction
            .query_row(
                "SELECT count(*) FROM operation_hold WHERE guest = ?1 AND ended = 0",
                [held.to_string()],
                |row| row.get(0),
            )
            .map_err(StoreError::sqlite("look for open operations"))?;
        if busy > 0 {
            return Err(OpenOperationError::Busy(held));
        }
    }
    let generation =
        i64::try_from(new.generation.number()).map_err(StoreError::unreadable("a generation"))?;
    transaction
        .execute(
            "INSERT INTO operation (id, kind, guest, version, spec, generation, opened_at, steps)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                new.id.to_string(),
                new.operation.kind().as_str(),
                uid.to_string(),
                JOURNAL_VERSION,
                json("an operation", &new.operation)?,
                generation,
                micros(new.at),
                json("the steps of an operation", &StepList::of(new.operation.steps()).names())?,
            ),
        )
        .map_err(StoreError::sqlite("open an operation"))?;
    if let Some(other) = new.operation.other() {
        transaction
            .execute(
                "INSERT INTO operation_hold (operation, guest) SELECT serial, ?2 FROM operation WHERE id = ?1",
                [new.id.to_string(), other.to_string()],
            )
            .map_err(StoreError::sqlite("hold a second guest"))?;
    }
    if let Operation::Provision(provision) = &new.operation {
        guest::begin_making(transaction, &provision.guest, new.id)?;
    }
    if let Operation::AdoptGuest(adopt) = &new.operation {
        guest::begin_adopting(transaction, adopt, new.id)?;
    }
    if let Some(due) = new.operation.due() {
        tier::begun(transaction, uid, due)?;
    }
    let line = audit::Line {
        at: new.at,
        action: "operation_opened",
        guest: Some(uid),
        operation: Some(new.id),
        detail: &format!("{}: {}", new.operation.kind().as_str(), new.reason),
    };
    audit::append(transaction, &line)?;
    // The own audit of each guest names the operation that held it.
    if let Some(other) = new.operation.other() {
        audit::append(transaction, &audit::Line { guest: Some(other), ..line })?;
    }
    brake_release::spend(transaction, new)?;
    Ok(())
}

/// Gives an operation the correlation id of the job or request that it was opened for, which has the same id.
pub(super) fn correlate(
    transaction: &Transaction<'_>,
    id: OperationId,
) -> Result<Option<CorrelationId>, StoreError> {
    let correlation: Option<String> = transaction
        .query_row(
            "UPDATE operation SET correlation = COALESCE((SELECT correlation FROM job WHERE id = ?1),
             (SELECT correlation FROM request WHERE id = ?1)) WHERE id = ?1 RETURNING correlation",
            [id.to_string()],
            |row| row.get(0),
        )
        .map_err(StoreError::sqlite("note a correlation id"))?;
    correlation.map(|id| parsed("a correlation id", &id)).transpose()
}

/// Writes one event with all it changes.
pub(super) fn append(
    transaction: &Transaction<'_>,
    after: &OperationState,
    entry: &Entry,
) -> Result<(), StoreError> {
    let serial = serial(transaction, after.id)?;
    transaction
        .prepare_cached("INSERT INTO event (operation, number, at, body) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| {
            let body = serde_json::to_string(&entry.event)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            insert.execute((serial, entry.number, micros(entry.at), body))
        })
        .map_err(StoreError::sqlite("write the journal"))?;
    if let Event::Succeeded { step, facts, .. } = &entry.event {
        if after.step(*step) == Some(Step::DestroyGuest) {
            if let Operation::DiscardCopy(discard) = &after.operation {
                // Its guest is still there.
                copies::gone(transaction, discard.made_by())?;
            } else {
                guest::set_gone(transaction, after.operation.uid(), after.id)?;
            }
        }
        for fact in facts {
            record::learn(transaction, after, fact, entry.at)?;
        }
    }
    if let Event::UndoSucceeded { step, facts, .. } = &entry.event {
        if after.step(*step) == Some(Step::TakeSnapshot) {
            snapshot::gone(transaction, after.id)?;
        }
        for fact in facts {
            record::unlearn(transaction, after, fact)?;
        }
    }
    match (&entry.event, after.status().is_end()) {
        (Event::Reopened { .. }, _) => reopen(transaction, serial)?,
        (_, true) => end(transaction, after, serial, entry)?,
        (_, false) => {}
    }
    audit_event(transaction, after, entry)?;
    if after.status().is_end() || matches!(entry.event, Event::Reopened { .. }) {
        super::job_end::follow(transaction, after, entry.at)?;
        super::work_order::follow(transaction, after, entry.at)?;
    }
    Ok(())
}

/// Sets it under way again. The index of open operations refuses that when another one is under way on its guest.
fn reopen(transaction: &Transaction<'_>, serial: i64) -> Result<(), StoreError> {
    transaction
        .execute(
            "UPDATE operation SET ended_at = NULL, outcome = NULL, message = NULL WHERE serial = ?1",
            [serial],
        )
        .map_err(StoreError::sqlite("reopen an operation"))?;
    Ok(())
}

fn end(
    transaction: &Transaction<'_>,
    after: &OperationState,
    serial: i64,
    entry: &Entry,
) -> Result<(), StoreError> {
    let outcome = match after.status() {
        Status::Done => "done",
        Status::Undone => "undone",
        _ => "parked",
    };
    let message = after.cause().or_else(|| after.conditions().next()).map(|problem| problem.message.clone());
    transaction
        .execute(
            "UPDATE operation SET ended_at = ?2, outcome = ?3, message = ?4 WHERE serial = ?1",
            (serial, micros(entry.at), outcome, message),
        )
        .map_err(StoreError::sqlite("end an operation"))?;
    if let Operation::RestoreTest(test) = &after.operation {
        restore_test::ended(transaction, test, after, entry.at)?;
    }
    let uid = after.operation.uid();
    if after.status() == Status::Forgotten {
        return set_forgotten(transaction, after, serial, entry);
    }
    window::ended(transaction, after)?;
    if let (Status::Done, Some(due)) = (after.status(), after.operation.due()) {
        tier::took(transaction, (uid, due.tier), serial)?;
    }
    if after.status() == Status::Done {
        applied::done(transaction, after, entry.at)?;
        backup::done(transaction, after, serial)?;
    }
    match after.status() {
        Status::Done => record::made(transaction, after, entry.at),
        Status::Undone => record::taken_back(transaction, after),
        _ => Ok(()),
    }
}

fn audit_event(
    transaction: &Transaction<'_>,
    after: &OperationState,
    entry: &Entry,
) -> Result<(), StoreError> {
    let name = |step: u16| after.step(step).map_or("?", Step::name);
    let (action, detail) = match &entry.event {
        Event::Begun | Event::Posted { .. } => return Ok(()),
        Event::Intended { step } => ("step_intended", name(*step).to_owned()),
        Event::Succeeded { step, .. } => ("step_succeeded", name(*step).to_owned()),
        Event::Failed { step, problem, .. } => ("step_failed", format!("{}: {problem}", name(*step))),
        Event::UndoBegun { problem } => ("undo_begun", problem.to_string()),
        Event::UndoIntended { step } => ("undo_intended", name(*step).to_owned()),
        Event::UndoSucceeded { step, .. } => ("undo_succeeded", name(*step).to_owned()),
        Event::Parked { problem, .. } => ("operation_parked", problem.to_string()),
        Event::Reopened { by, .. } => ("parked_retried", format!("by {by}")),
        Event::Forgotten { reason, by } => ("parked_forgotten", format!("by {by}: {reason}")),
        Event::Finished => ("operation_done", String::new()),
        Event::TakenBack => ("operation_undone", String::new()),
    };
    let line = audit::Line {
        at: entry.at,
        action,
        guest: Some(after.operation.uid()),
        operation: Some(after.id),
        detail: &detail,
    };
    audit::append(transaction, &line)
}

/// What else ending a parked operation changes: the place of a guest that it was making becomes `Nowhere`. Its remains
/// on the node are left alone. If they carry our mark, they are reported as a guest that our records do not know.
fn set_forgotten(
    transaction: &Transaction<'_>,
    after: &OperationState,
    serial: i64,
    entry: &Entry,
) -> Result<(), StoreError> {
    transaction
        .execute("INSERT INTO forgotten (operation, at) VALUES (?1, ?2)", (serial, micros(entry.at)))
        .map_err(StoreError::sqlite("end a parked operation"))?;
    record::taken_back(transaction, after)
}

impl Store {
    /// Opens an operation: its record, the guest's, and the audit line, in one transaction.
    ///
    /// # Errors
    /// [`OpenOperationError`].
    pub async fn open_operation(&self, new: NewOperation) -> Result<OperationState, OpenOperationError> {
        let progress = OperationState::new(new.id, new.operation.clone(), new.at);
        self.write(Part::Operations, "open an operation", move |transaction| open(transaction, &new)).await?;
        Ok(progress)
    }

    /// Opens an operation with the growth of its guest: both are on record, or neither.
    ///
    /// # Errors
    /// [`OpenOperationError`].
    pub async fn open_growing(
        &self,
        new: NewOperation,
        growth: Growth,
    ) -> Result<OperationState, OpenOperationError> {
        let progress = OperationState::new(new.id, new.operation.clone(), new.at);
        let open = move |transaction: &Transaction<'_>| {
            open(transaction, &new)?;
            growth::count(transaction, &new, &growth).map_err(OpenOperationError::Store)
        };
        self.write(Part::Operations, "open an operation", open).await?;
        Ok(progress)
    }

    /// Writes the next event. The given progress is the state before it; the result is the state after it.
    ///
    /// # Errors
    /// [`AppendError`]. Nothing was written then, and the operation must not go on.
    pub async fn append(
        &self,
        progress: &OperationState,
        event: Event,
        at: Timestamp,
    ) -> Result<OperationState, AppendError> {
        let entry = Entry { number: progress.entries() + 1, at, event };
        let mut after = progress.clone();
        after.apply(&entry)?;
        let reported = after.clone();
        self.write(Part::Operations, "write the journal", move |transaction| {
            append(transaction, &after, &entry).map_err(AppendError::Store)
        })
        .await?;
        Ok(reported)
    }

    /// Every operation that has not ended, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_operations(&self) -> Result<Vec<OperationState>, StoreError> {
        self.read_cached(&self.answers.open_operations, (), |connection| {
            let sql = "SELECT serial FROM operation WHERE ended_at IS NULL ORDER BY serial LIMIT ?1";
            serials(connection, sql, i64::MAX)?.into_iter().map(|serial| load(connection, serial)).collect()
        })
        .await
    }

    /// One operation, replayed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn operation(&self, id: OperationId) -> Result<Option<OperationState>, StoreError> {
        self.read(move |connection| one(connection, id)).await
    }

    /// Open and parked operations, and the last ended ones, for report and status; oldest first. Operations that failed
    /// alike are one entry.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn operation_views(&self, ended: u32) -> Result<Vec<OperationView>, StoreError> {
        self.read(move |connection| {
            let lines = alike::lines(connection, ended)?;
            let mut all: Vec<i64> = lines.iter().map(|line| line.serial).collect();
            let open = "SELECT serial FROM operation WHERE ended_at IS NULL ORDER BY serial LIMIT ?1";
            all.extend(serials(connection, open, i64::MAX)?);
            // However old it is: an operation that waits for a person is never forgotten because of its age.
            all.extend(serials(connection, PARKED, i64::MAX)?);
            all.sort_unstable();
            all.dedup();
            let alike: BTreeMap<i64, Alike> =
                lines.into_iter().filter_map(|line| Some((line.serial, line.alike?))).collect();
            let view = |serial: i64| {
                let view = compact::view(connection, serial)?;
                Ok(OperationView { alike: alike.get(&serial).copied(), ..view })
            };
            all.into_iter().map(view).collect()
        })
        .await
    }
}
