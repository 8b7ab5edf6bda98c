//! Cancelling of waiting signed jobs.

use std::collections::BTreeSet;

use agent_core::gate::job_validation::{self, TurnedAway};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{JobId, OperatorName};
use holdfast_protocol::job::{JobState, Verb};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::StoreError;
use super::columns::from_json;
use super::job_end::{NewJob, Swapped, TakeError, end};

/// The order of a job on record, and its signers.
fn ordered_by(
    connection: &Connection,
    id: JobId,
) -> Result<Option<(Verb, BTreeSet<OperatorName>)>, StoreError> {
    let row: Option<(String, String)> = connection
        .prepare_cached("SELECT verb, signers FROM job WHERE id = ?1")
        .and_then(|mut select| {
            select.query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .map_err(StoreError::sqlite("look for a job"))?;
    let Some((verb, signers)) = row else { return Ok(None) };
    Ok(Some((from_json("a verb", &format!("\"{verb}\""))?, from_json("who signed", &signers)?)))
}

/// Stops a job that waits, by another.
pub(super) fn stop(transaction: &Transaction<'_>, other: JobId, by: &NewJob) -> Result<(), TakeError> {
    let (verb, signers) = ordered_by(transaction, other)?.ok_or(TurnedAway::NoSuchJob(other))?;
    job_validation::cancels((other, verb, &signers), by.job.signers())?;
    let text = format!("it was cancelled by job {}", by.job.payload().job_id);
    let problem = ErrorBody::new(ErrorCode::Cancelled, text);
    match end(transaction, other, (JobState::Waiting, JobState::Cancelled), Some(&problem), by.at)? {
        Swapped::Yes => Ok(()),
        Swapped::No => Err(TurnedAway::TooLate(other).into()),
    }
}
