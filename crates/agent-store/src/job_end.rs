//! The end of a signed job, shared by its verbs.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, GuestUid, JobId, OperationId};
use holdfast_protocol::job::JobState;
use holdfast_trust::Accepted;
use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction};

use super::columns::{json, micros, parsed};
use super::{StoreError, audit};
use agent_core::gate::job_validation::TurnedAway;
use agent_core::operation::log::Status;
use agent_core::operation::progress::OperationState;

/// A text as it was left, with the job in it, checked.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub blob: String,
    pub job: Accepted,
    /// The id of the click that left it, as the hub says. It is not signed, and decides nothing.
    pub correlation: Option<CorrelationId>,
    pub at: Timestamp,
}

/// Why a checked job was not taken. Nothing was written then.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// For a reason of its own.
    #[error(transparent)]
    Away(#[from] TurnedAway),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn note(
    transaction: &Transaction<'_>,
    at: Timestamp,
    action: &'static str,
    (guest, job): (Option<GuestUid>, JobId),
    detail: &str,
) -> Result<(), StoreError> {
    let operation = Some(OperationId::new(job.uuid()));
    audit::append(transaction, &audit::Line { at, action, guest, operation, detail })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swapped {
    Yes,
    No,
}

/// Moves a job from one state to an end, with its line in the audit.
pub(super) fn end(
    transaction: &Transaction<'_>,
    id: JobId,
    (from, to): (JobState, JobState),
    problem: Option<&ErrorBody>,
    at: Timestamp,
) -> Result<Swapped, StoreError> {
    let text = problem.map(|problem| json("why a job ended", problem)).transpose()?;
    let guest: Option<Option<String>> = transaction
        .query_row(
            "UPDATE job SET state = ?3, problem = ?4, ended_at = ?5 WHERE id = ?1 AND state = ?2 RETURNING guest",
            (id.to_string(), from.as_str(), to.as_str(), text, micros(at)),
            |row| row.get(0),
        )
        .optional()
        .map_err(StoreError::sqlite("end a job"))?;
    let Some(guest) = guest else { return Ok(Swapped::No) };
    let guest = guest.map(|text| parsed("a guest", &text)).transpose()?;
    let action = match to {
        JobState::Done => "job_done",
        JobState::Cancelled => "job_cancelled",
        _ => "job_failed",
    };
    let detail = problem.map(ToString::to_string).unwrap_or_default();
    note(transaction, at, action, (guest, id), &detail)?;
    Ok(Swapped::Yes)
}

/// Applies the end of an operation, or its reopening, to the job that it was opened for, if there is one.
pub(super) fn follow(
    transaction: &Transaction<'_>,
    after: &OperationState,
    at: Timestamp,
) -> Result<(), StoreError> {
    let id = JobId::new(after.id.uuid());
    match after.status() {
        Status::Done => {
            end(transaction, id, (JobState::UnderWay, JobState::Done), None, at)?;
        }
        status if status.is_end() => {
            let word = after.cause().cloned();
            let problem = word
                .unwrap_or_else(|| ErrorBody::new(ErrorCode::Unavailable, "its operation was taken back"));
            end(transaction, id, (JobState::UnderWay, JobState::Failed), Some(&problem), at)?;
        }
        // A person had the parked operation tried again.
        _ => {
            transaction
                .execute(
                    "UPDATE job SET state = 'under_way', problem = NULL, ended_at = NULL WHERE id = ?1 AND state = 'failed'",
                    [id.to_string()],
                )
                .map_err(StoreError::sqlite("take a job up again"))?;
        }
    }
    Ok(())
}
