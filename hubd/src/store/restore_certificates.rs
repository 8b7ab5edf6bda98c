//! Restore certificates of guests, countersigned when they are kept.

use async_trait::async_trait;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{CorrelationId, GuestUid};
use holdfast_protocol::restore_certificate::{CertificateKept, SignedCertificate};
use jiff::Timestamp;
use restore_certificate::countersign::{CountersignError, Received};

use super::{Countersign, StoreError, WriteError};
use crate::domain::host::HostRef;
use crate::domain::identity::{IdentityError, Presented};
use crate::domain::restore_certificate::PutError;

/// A certificate that a host sends.
#[derive(Debug)]
pub struct CertificateDelivery {
    /// The TLS certificate that the host presented.
    pub presented: Presented,
    /// What it sent; the signature fits.
    pub received: Received,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Why a certificate is not kept.
#[derive(Debug, thiserror::Error)]
pub enum RestoreCertificateError {
    /// The host is not served.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The certificate is not accepted.
    #[error(transparent)]
    Put(#[from] PutError),
    /// The hub could not sign.
    #[error("the hub could not countersign the restore certificate")]
    Countersign(#[source] CountersignError),
    /// The hub could not write it.
    #[error("the restore certificate cannot be written")]
    Unwritable(#[source] serde_json::Error),
}

impl RestoreCertificateError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Identity(error) => error.code(),
            Self::Put(error) => error.code(),
            Self::Countersign(_) | Self::Unwritable(_) => ErrorCode::Internal,
        }
    }
}

/// Restore certificates.
#[async_trait]
pub trait RestoreCertificates: Send + Sync {
    /// Countersigns and keeps a certificate; the same again is the same answer.
    ///
    /// # Errors
    /// [`RestoreCertificateError`].
    async fn put_restore_certificate(
        &self,
        delivery: CertificateDelivery,
        countersign: Countersign,
    ) -> Result<CertificateKept, WriteError<RestoreCertificateError>>;

    /// The newest of a guest of a host; `None` when there is no such host, or none of that guest.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn restore_certificate(
        &self,
        host: HostRef,
        guest: GuestUid,
    ) -> Result<Option<SignedCertificate>, StoreError>;
}
