//! The queue of signed jobs for a host.
//!
//! In: the job stored under that id, the number of waiting jobs, and the submitted job. Out: whether it is accepted. A
//! text that the host refused or never reported on may be replaced, since a second operator signs the same job. A text
//! that the host has accepted may not. Deliberately absent: the meaning of the text. The hub could not judge it, and
//! must not need to.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::job::{JobReport, JobState};
use holdfast_protocol::operator::QueueState;

use super::event::EventKind;

/// Jobs that may wait for one host. Each is at most some 100 KiB.
pub const QUEUED_MAX: u32 = 64;

/// Jobs of one host that are kept, whatever became of them.
pub const KEPT_MAX: u32 = 500;

/// The job stored under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredJob {
    /// How far it is.
    pub queue_state: QueueState,
    /// What the host said of it.
    pub state: Option<JobState>,
    /// Whether it is the same text.
    pub text: TextMatch,
}

/// Whether two texts are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextMatch {
    Yes,
    No,
}

/// How a submitted job is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It waits for the host.
    Queue,
    /// It is there already.
    Known,
}

/// Why it is not taken in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobQueueError {
    #[error("the signed job is {0} bytes long; at most {SIGNED_BYTES_MAX} are accepted")]
    Size(usize),
    #[error(
        "{QUEUED_MAX} signed jobs wait for this host already: wait until it has read them, or withdraw some"
    )]
    Full,
    /// The host has it.
    #[error("the host has taken a job of this id already: make a new one with `holdfast sign`")]
    Taken,
    /// Nothing to withdraw.
    #[error(
        "the host has spoken of this job already, so the hub cannot take it back: sign a cancel for it (`holdfast job cancel`)"
    )]
    Answered,
}

impl JobQueueError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Size(_) => ErrorCode::Size,
            Self::Full => ErrorCode::Quota,
            Self::Taken => ErrorCode::NameTaken,
            Self::Answered => ErrorCode::UnderWay,
        }
    }
}

/// Judges a job that is submitted for a host.
///
/// # Errors
/// [`JobQueueError`]; what is stored stays.
pub const fn judge(
    stored: Option<StoredJob>,
    queued: u32,
    bytes: usize,
) -> Result<Acceptance, JobQueueError> {
    if bytes > SIGNED_BYTES_MAX {
        return Err(JobQueueError::Size(bytes));
    }
    match stored {
        Some(StoredJob { text: TextMatch::Yes, queue_state: QueueState::Queued, .. }) => {
            Ok(Acceptance::Known)
        }
        // What was refused may be right by now: its time has come, its signer is listed.
        Some(StoredJob { text: TextMatch::Yes, queue_state: QueueState::Answered, state: Some(state) })
            if !matches!(state, JobState::Refused) =>
        {
            Ok(Acceptance::Known)
        }
        Some(StoredJob { state: Some(state), .. }) if !matches!(state, JobState::Refused) => {
            Err(JobQueueError::Taken)
        }
        // It takes the place of one that waits.
        Some(StoredJob { queue_state: QueueState::Queued, .. }) => Ok(Acceptance::Queue),
        _ if queued >= QUEUED_MAX => Err(JobQueueError::Full),
        _ => Ok(Acceptance::Queue),
    }
}

/// The event to record when a host reports a new state of a job.
#[must_use]
pub fn event(before: Option<JobState>, now: &JobReport) -> Option<EventKind> {
    if before == Some(now.state) {
        return None;
    }
    match now.state {
        JobState::Refused => Some(EventKind::JobRefused),
        JobState::Waiting => Some(EventKind::JobTaken),
        JobState::UnderWay if before.is_none() => Some(EventKind::JobTaken),
        JobState::UnderWay => None,
        JobState::Done => Some(EventKind::JobSucceeded),
        JobState::Failed => Some(EventKind::JobFailed),
        JobState::Cancelled => Some(EventKind::JobCancelled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_against_what_is_kept() {
        let stored = |queue_state, state, text| Some(StoredJob { queue_state, state, text });
        use QueueState::{Answered, Queued, Withdrawn};
        let table = [
            (None, 0, 10, Ok(Acceptance::Queue)),
            (None, QUEUED_MAX, 10, Err(ErrorCode::Quota)),
            (None, 0, SIGNED_BYTES_MAX, Ok(Acceptance::Queue)),
            (None, 0, SIGNED_BYTES_MAX + 1, Err(ErrorCode::Size)),
            (stored(Queued, None, TextMatch::Yes), QUEUED_MAX, 10, Ok(Acceptance::Known)),
            (stored(Queued, None, TextMatch::No), QUEUED_MAX, 10, Ok(Acceptance::Queue)),
            (stored(Withdrawn, None, TextMatch::Yes), 0, 10, Ok(Acceptance::Queue)),
            (stored(Withdrawn, None, TextMatch::Yes), QUEUED_MAX, 10, Err(ErrorCode::Quota)),
            (stored(Answered, Some(JobState::Refused), TextMatch::Yes), 0, 10, Ok(Acceptance::Queue)),
            (stored(Answered, Some(JobState::Refused), TextMatch::No), 0, 10, Ok(Acceptance::Queue)),
            (stored(Answered, Some(JobState::Waiting), TextMatch::No), 0, 10, Err(ErrorCode::NameTaken)),
            (stored(Answered, Some(JobState::Done), TextMatch::No), 0, 10, Err(ErrorCode::NameTaken)),
            (stored(Answered, Some(JobState::Done), TextMatch::Yes), 0, 10, Ok(Acceptance::Known)),
        ];
        for (stored, queued, bytes, wanted) in table {
            let judged = judge(stored, queued, bytes).map_err(|error| error.code());
            assert_eq!(judged, wanted, "{stored:?}, {queued} wait, {bytes} bytes");
        }
    }
}
