//! Parked operations, and an operator's answer to them.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, OperationId};
use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction};

use super::journal_read::PARKED;
use super::{Part, Store, StoreError, journal, journal_read};
use agent_core::model::parked::ParkedEntry;
use agent_core::operation::log::{Entry, Event};
use agent_core::operation::progress::{OperationState, ReplayError};

/// A person's answer to one parked operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub operation: OperationId,
    /// How long its journal was when the person saw it.
    pub entries: u32,
    pub by: String,
    pub at: Timestamp,
}

/// Why an answer was not taken. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// There is no such operation, or it is not parked.
    #[error("operation {0} is not parked (any more): look again with `agentd parked list`")]
    NotParked(OperationId),
    /// It is not as the person saw it.
    #[error("operation {0} has changed since it was shown: look again with `agentd parked list`")]
    Changed(OperationId),
    /// Another operation is under way on its guest.
    #[error("another operation is under way on guest {0}: wait until it has ended, then try again")]
    Busy(GuestUid),
    /// The rules of the journal.
    #[error(transparent)]
    Rules(#[from] ReplayError),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AnswerError {
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::NotParked(_) => ErrorCode::NotFound,
            Self::Changed(_) => ErrorCode::PreconditionFailed,
            Self::Busy(_) => ErrorCode::Busy,
            Self::Rules(_) => ErrorCode::Internal,
            Self::Store(_) => ErrorCode::Unavailable,
        }
    }
}

fn shown(
    transaction: &Transaction<'_>,
    answer: &Answer,
) -> Result<(OperationState, ParkedEntry), AnswerError> {
    let serial = match journal_read::serial(transaction, answer.operation) {
        Ok(serial) => serial,
        Err(StoreError::Unknown { .. }) => return Err(AnswerError::NotParked(answer.operation)),
        Err(error) => return Err(error.into()),
    };
    let progress = journal_read::load(transaction, serial)?;
    let entry = progress.parked_entry().ok_or(AnswerError::NotParked(answer.operation))?;
    if entry.entries == answer.entries {
        Ok((progress, entry))
    } else {
        Err(AnswerError::Changed(answer.operation))
    }
}

fn write(
    transaction: &Transaction<'_>,
    mut progress: OperationState,
    answer: &Answer,
    event: Event,
) -> Result<OperationState, AnswerError> {
    let entry = Entry { number: progress.entries() + 1, at: answer.at, event };
    progress.apply(&entry)?;
    journal::append(transaction, &progress, &entry)?;
    Ok(progress)
}

fn reopen(transaction: &Transaction<'_>, answer: &Answer) -> Result<OperationState, AnswerError> {
    let (progress, entry) = shown(transaction, answer)?;
    let busy: Option<i64> = transaction
        .query_row(
            "SELECT operation FROM operation_hold WHERE guest = ?1 AND ended = 0",
            [progress.operation.lane().to_string()],
            |row| row.get(0),
        )
        .optional()
        .map_err(StoreError::sqlite("look for open operations"))?;
    if busy.is_some() {
        return Err(AnswerError::Busy(entry.guest));
    }
    let at = progress.parked_at().ok_or(AnswerError::NotParked(answer.operation))?;
    write(transaction, progress, answer, Event::Reopened { at, by: answer.by.clone() })
}

impl Store {
    /// Everything that waits for a person, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn parked(&self) -> Result<Vec<ParkedEntry>, StoreError> {
        self.read(|connection| {
            let mut entries = Vec::new();
            for serial in journal_read::serials(connection, PARKED, i64::MAX)? {
                entries.extend(journal_read::load(connection, serial)?.parked_entry());
            }
            Ok(entries)
        })
        .await
    }

    /// Has a parked operation tried again, from the step at which it was parked.
    ///
    /// # Errors
    /// [`AnswerError`].
    pub async fn retry_parked(&self, answer: Answer) -> Result<OperationState, AnswerError> {
        self.write(Part::Answers, "reopen a parked operation", move |transaction| {
            reopen(transaction, &answer)
        })
        .await
    }

    /// Ends a parked operation, for a reason.
    ///
    /// # Errors
    /// [`AnswerError`].
    pub async fn forget_parked(&self, answer: Answer, reason: String) -> Result<OperationState, AnswerError> {
        self.write(Part::Answers, "end a parked operation", move |transaction| {
            let (progress, _) = shown(transaction, &answer)?;
            write(transaction, progress, &answer, Event::Forgotten { reason, by: answer.by.clone() })
        })
        .await
    }
}

#[cfg(test)]
mod tests;
