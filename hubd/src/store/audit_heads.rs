//! Kept ends of audit chains.

use async_trait::async_trait;
use holdfast_protocol::operator::AuditEvidence;

use super::StoreError;
use crate::domain::host::HostRef;

/// Kept ends of audit chains. They come with check-ins.
#[async_trait]
pub trait AuditHeads: Send + Sync {
    /// What is kept of the present epoch of a host.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn audit_evidence(&self, host: HostRef) -> Result<Option<AuditEvidence>, StoreError>;
}
