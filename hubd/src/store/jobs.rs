//! Signed jobs that wait for hosts.

use async_trait::async_trait;
use holdfast_protocol::id::{HostId, JobId, TunnelName};
use holdfast_protocol::operator::{JobDetail, JobView, TunnelOrder};
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
    /// The tunnel whose token it is, as its submitter says.
    pub tunnel: Option<TunnelName>,
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

    /// The newest job that gave a tunnel of a host its token. `None` when there is no such host or job.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn tunnel_order(
        &self,
        host: HostRef,
        tunnel: TunnelName,
    ) -> Result<Option<TunnelOrder>, StoreError>;

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
