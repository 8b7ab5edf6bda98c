//! Signed jobs that wait for hosts.

use async_trait::async_trait;
use holdfast_protocol::id::{HostId, JobId};
use holdfast_protocol::operator::{JobDetail, JobView};
use serde::{Deserialize, Serialize};

use super::idempotency::By;
use super::{StoreError, WriteError};
use crate::domain::host::HostRef;
use crate::domain::job_queue::JobQueueError;

/// A signed job that is left for a host.
#[derive(Clone, Debug)]
pub struct SubmitJob {
    pub host: HostRef,
    /// Under which id.
    pub id: JobId,
    pub blob: String,
}

/// A job that was changed, with the host it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDone {
    pub host: HostId,
    pub job: JobView,
}

/// Signed jobs that wait for hosts.
#[async_trait]
pub trait SignedJobs: Send + Sync {
    /// A host's jobs, newest first, those before `before`. `None` when there is no such host.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn jobs(
        &self,
        host: HostRef,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Option<Vec<(i64, JobView)>>, StoreError>;

    /// One job with its text.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn job(&self, host: HostRef, id: JobId) -> Result<Option<JobDetail>, StoreError>;

    /// Leaves a job for a host. `None` when there is no such host.
    ///
    /// # Errors
    /// [`JobQueueError`].
    async fn submit_job(
        &self,
        by: By,
        leave: SubmitJob,
    ) -> Result<Option<JobDone>, WriteError<JobQueueError>>;

    /// Takes a job back that the host has not spoken of. Taking it back twice changes nothing.
    ///
    /// # Errors
    /// [`JobQueueError::Answered`].
    async fn withdraw_job(
        &self,
        by: By,
        host: HostRef,
        id: JobId,
    ) -> Result<Option<JobView>, WriteError<JobQueueError>>;
}
