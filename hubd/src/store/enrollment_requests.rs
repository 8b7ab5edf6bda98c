//! Enrollment requests and the decisions on them.
//!
//! The list of pending requests is short, and a new request always gets a place on it. The request that was not
//! repeated for longest is removed. It is one of the newcomer's own address when that has used its share, else one of
//! the address that has most. A waiting agent repeats its request each half minute, so a removed request was sent once
//! and abandoned.

use async_trait::async_trait;
use holdfast_protocol::enrol::SealingIdentity;
use holdfast_protocol::id::{CorrelationId, EnrollmentRequestId, HostId, HostName};
use holdfast_protocol::operator::{EnrollmentApproval, EnrollmentRequestView};
use holdfast_protocol::pin::Pin;
use jiff::Timestamp;
use net::admission::Origin;

use super::certificates::CertificateRecord;
use super::idempotency::By;
use super::{Issue, StoreError, WriteError};
use crate::authority::{AgentKey, CsrError, IssueError};
use crate::domain::readmission::ReadmitError;

/// An enrollment request that arrived.
pub struct NewEnrollmentRequest {
    /// Its id, should it be a new one.
    pub id: EnrollmentRequestId,
    /// The applicant's key.
    pub key: AgentKey,
    /// The name that the applicant gives itself.
    pub claimed_name: HostName,
    /// What orders for it are sealed and signed for.
    pub sealing: Option<SealingIdentity>,
    /// Where it comes from.
    pub origin: Origin,
    pub at: Timestamp,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// The answer to an enrollment request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnrollmentReply {
    /// An operator has to decide.
    Pending(EnrollmentRequestId),
    Approved(CertificateRecord),
}

pub struct Approval {
    /// The enrollment request.
    pub id: EnrollmentRequestId,
    /// What the operator wrote.
    pub request: EnrollmentApproval,
    /// The id of the host, should it become one.
    pub host: HostId,
}

/// Why an enrollment request, or a decision on it, is refused.
#[derive(Debug, thiserror::Error)]
pub enum EnrollmentRequestError {
    /// There is no such request.
    #[error("there is no such enrollment request: see `holdfast host requests`")]
    Unknown,
    /// It was refused for good.
    #[error(
        "this enrollment request was refused for good: ask an operator for an invite if that was a mistake"
    )]
    Refused,
    /// It was approved.
    #[error("this enrollment request is approved already: revoke the host instead")]
    Decided,
    /// The operator gave another key than that of the request.
    #[error(
        "the key of this request is {actual}, not the one given: compare again; the request may be of another machine"
    )]
    Fingerprint {
        /// The key of the request.
        actual: Pin,
    },
    /// A host of that name is there.
    #[error("a host called {name} is there already: choose another name")]
    Taken { name: HostName },
    /// The key is another host's.
    #[error(
        "another host has this key, or had it: remove `identity/enrol.key.pem` in the agent's state folder and enrol again, so that the box makes a key of its own"
    )]
    KeyTaken,
    /// The key is that of a host whose certificate is over.
    #[error(
        "this is the key of host {host}, whose certificate was not renewed in time: approve it as that host, with the name \
         {name} and `--returns {host}`; nothing was approved"
    )]
    Holder { host: HostId, name: HostName },
    /// The stored key cannot be used.
    #[error("the key of this request cannot be used: let the agent send a new one")]
    Key(#[source] CsrError),
    /// The certificate could not be made.
    #[error("the hub could not make the certificate")]
    Issue(#[source] IssueError),
    /// The revoked host as which it should come back.
    #[error(transparent)]
    Readmit(#[from] ReadmitError),
    /// Its host was revoked, or has a later certificate.
    #[error(
        "this request was approved once, and its host has a later certificate: ask an operator for an invite"
    )]
    Spent,
}

/// Enrollment requests and the decisions on them.
#[async_trait]
pub trait EnrollmentRequests: Send + Sync {
    /// Stores an enrollment request. A second one with the same key is the same request.
    ///
    /// # Errors
    /// [`EnrollmentRequestError`].
    async fn request_enrollment(
        &self,
        request: NewEnrollmentRequest,
    ) -> Result<EnrollmentReply, WriteError<EnrollmentRequestError>>;

    /// Enrollment requests after `after`, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn enrollment_requests(
        &self,
        after: Option<(Timestamp, EnrollmentRequestId)>,
        limit: u32,
    ) -> Result<Vec<EnrollmentRequestView>, StoreError>;

    /// Approves a request. A second approval gives the same answer.
    ///
    /// # Errors
    /// [`EnrollmentRequestError`].
    async fn approve_enrollment(
        &self,
        by: By,
        approval: Approval,
        issue: Issue,
    ) -> Result<EnrollmentRequestView, WriteError<EnrollmentRequestError>>;

    /// Refuses a request for good. A second refusal gives the same answer.
    ///
    /// # Errors
    /// [`EnrollmentRequestError`].
    async fn refuse_enrollment(
        &self,
        by: By,
        id: EnrollmentRequestId,
    ) -> Result<EnrollmentRequestView, WriteError<EnrollmentRequestError>>;
}
