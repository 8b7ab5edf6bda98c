//! Signed jobs about guests, and objections to them.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::desired::Reason;
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::JobState;
use holdfast_protocol::objection::GuestJobView;

use super::idempotency::By;
use super::{StoreError, WriteError};

/// Objections to one job at most.
pub const OBJECTIONS_MAX: u32 = 16;

/// Why an objection is not written down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectionError {
    #[error("the job is {} already, so an objection would come too late: call the operators", .state.as_str())]
    Late { state: JobState },
    #[error("{OBJECTIONS_MAX} objections to this job are written down already: operators see them")]
    TooMany,
}

/// Signed jobs about guests.
#[async_trait]
pub trait GuestJobs: Send + Sync {
    /// Jobs about guests within a scope of which hosts have spoken, newest first, those before `before`.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn guest_jobs(
        &self,
        scope: AccessScope,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, GuestJobView)>, StoreError>;

    /// Writes an objection down. `None` when no host has spoken of a job of this id about a guest.
    ///
    /// # Errors
    /// [`ObjectionError`].
    async fn object_to_job(
        &self,
        by: By,
        job: JobId,
        reason: Reason,
    ) -> Result<Option<GuestJobView>, WriteError<ObjectionError>>;
}
