//! Image approvals for all hosts.

use async_trait::async_trait;
use holdfast_protocol::id::{HostId, JobId};
use holdfast_protocol::image_approval::{ImageApprovalDetail, ImageApprovalView};
use serde::{Deserialize, Serialize};

use super::idempotency::By;
use super::{StoreError, WriteError};
use crate::domain::image_approval::{ImageApprovalError, SubmittedApproval};

/// An approval that was kept, with the hosts that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageApprovalDone {
    pub hosts: Vec<HostId>,
    pub approval: ImageApprovalView,
}

/// Approvals of images for all hosts: each kept once, with a job of each host. A host that is enrolled while one is
/// open has a job of it from its first moment, and so has a machine that replaces one.
#[async_trait]
pub trait ImageApprovals: Send + Sync {
    /// The kept ones, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn image_approvals(&self) -> Result<Vec<ImageApprovalView>, StoreError>;

    /// One with its text, and each host that is not revoked.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn image_approval(&self, id: JobId) -> Result<Option<ImageApprovalDetail>, StoreError>;

    /// Keeps an approval, and queues it for each host that has not taken it.
    ///
    /// # Errors
    /// [`ImageApprovalError`].
    async fn submit_image_approval(
        &self,
        by: By,
        submitted: SubmittedApproval,
    ) -> Result<ImageApprovalDone, WriteError<ImageApprovalError>>;

    /// Takes an approval back from the hosts that have not spoken of it. Twice changes nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn withdraw_image_approval(
        &self,
        by: By,
        id: JobId,
    ) -> Result<Option<ImageApprovalView>, WriteError<std::convert::Infallible>>;
}
