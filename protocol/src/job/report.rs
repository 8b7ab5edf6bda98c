//! Queued jobs, and the reports on them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::act::Verb;
use crate::envelope::ErrorBody;
use crate::id::{CorrelationId, GuestUid, JobId, OperationId, OperatorName};

/// A signed job, as the hub passes it on unopened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueuedJob {
    /// The id it was left under. The id that counts is in the signed bytes.
    pub id: JobId,
    /// The text of the signed job.
    pub blob: String,
    /// The id of the click that left it. It is not signed: it is for records alone and decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It was not taken. Nothing was done and nothing was used up.
    Refused,
    /// It was taken, and waits: for the end of its delay, or for its guest's lane.
    Waiting,
    /// Its operation is under way.
    UnderWay,
    /// It is done.
    Done,
    /// It was taken, and came to nothing: the problem says why.
    Failed,
    /// It was stopped by another job while it waited.
    Cancelled,
}

impl JobState {
    /// Whether nothing more will happen by itself.
    #[must_use]
    pub const fn is_end(self) -> bool {
        !matches!(self, Self::Waiting | Self::UnderWay)
    }

    /// For people and for tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Waiting => "waiting",
            Self::UnderWay => "under_way",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What became of a signed job, as its host says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobReport {
    /// The id it was left under.
    pub id: JobId,
    /// SHA-256 in hex of the text that was left: an answer to another text is no answer to this one.
    pub blob: String,
    /// Its state.
    pub state: JobState,
    /// What was ordered, once its signatures held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<Verb>,
    /// To which guest, where it is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// Who signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<OperatorName>,
    /// When the host read it.
    pub taken_at: Timestamp,
    /// When its delay ends, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The operation it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Why it was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ErrorBody>,
    /// The correlation id that it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
}
