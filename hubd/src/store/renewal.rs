//! Renewal of a host certificate.

use async_trait::async_trait;
use holdfast_protocol::id::CorrelationId;
use jiff::Timestamp;

use super::certificates::CertificateRecord;
use super::{Issue, WriteError};
use crate::authority::{AgentKey, IssueError};
use crate::domain::identity::{IdentityError, Presented};

/// A request for a renewal.
pub struct Renewal {
    /// The certificate that it was made with.
    pub presented: Presented,
    /// The key of the next one.
    pub key: AgentKey,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Why there is no next certificate.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The present one is not served.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The key is another host's.
    #[error(
        "another host has this key, or had it: remove `identity/renewal.key.pem` in the agent's state folder, so that the box makes a key of its own"
    )]
    KeyTaken,
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
    /// Four thousand million renewals.
    #[error("this host has had every certificate there is: revoke it and enrol it anew")]
    Exhausted,
}

/// Renewal of certificates.
#[async_trait]
pub trait Renewals: Send + Sync {
    /// Makes the next certificate, or repeats it when the reply was lost.
    ///
    /// # Errors
    /// [`RenewError`].
    async fn renew(
        &self,
        renewal: Renewal,
        issue: Issue,
    ) -> Result<CertificateRecord, WriteError<RenewError>>;
}
