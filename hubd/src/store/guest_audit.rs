//! Audit records about guests.

use async_trait::async_trait;
use holdfast_protocol::guest_audit::{GuestAuditKept, GuestAuditView};
use holdfast_protocol::id::{CorrelationId, GuestUid};
use holdfast_protocol::local::audit::AuditRecord;
use jiff::Timestamp;

use super::{StoreError, WriteError};
use crate::domain::host::HostRef;
use crate::domain::identity::{IdentityError, Presented};

/// Records that are kept of one guest.
pub const RECORDS_PER_GUEST: u32 = 200;

/// Records that are kept of one host, of all its guests that are or were.
pub const RECORDS_PER_HOST: u32 = 20_000;

/// Records that a host sends.
#[derive(Debug)]
pub struct AuditDelivery {
    /// The TLS certificate that the host presented.
    pub presented: Presented,
    /// Each with the guest that it is about. Their hashes fit.
    pub records: Vec<(GuestUid, AuditRecord)>,
    /// How far they go; none where the host only asks.
    pub through: Option<u64>,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Audit records about guests.
#[async_trait]
pub trait GuestAudits: Send + Sync {
    /// Keeps records, and how far they go; the same again changes nothing.
    ///
    /// # Errors
    /// [`IdentityError`]: the host is not served.
    async fn put_guest_audit(
        &self,
        delivery: AuditDelivery,
    ) -> Result<GuestAuditKept, WriteError<IdentityError>>;

    /// What is kept of a guest of a host; `None` when there is no such host.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn guest_audit(&self, host: HostRef, guest: GuestUid)
    -> Result<Option<GuestAuditView>, StoreError>;
}
