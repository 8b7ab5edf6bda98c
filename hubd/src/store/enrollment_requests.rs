//! Enrollment requests and the decisions on them.
//!
//! The list of pending requests is short, and a new request always gets a place on it. The request that was not
//! repeated for longest is removed. It is one of the newcomer's own address when that has used its share, else one of
//! the address that has most. A waiting agent repeats its request each half minute, so a removed request was sent once
//! and abandoned.

use async_trait::async_trait;
use holdfast_protocol::id::{CorrelationId, EnrollmentRequestId, HostId, HostName};
use holdfast_protocol::operator::{EnrollmentApproval, EnrollmentRequestView};
use jiff::Timestamp;
use net::admission::Origin;

use super::certificates::CertificateRecord;
use super::idempotency::By;
use super::readmission::EnrollmentRequestError;
use super::{Issue, StoreError, WriteError};
use crate::authority::AgentKey;

/// An enrollment request that arrived.
pub struct NewEnrollmentRequest {
    /// Its id, should it be a new one.
    pub id: EnrollmentRequestId,
    /// The applicant's key.
    pub key: AgentKey,
    /// What the applicant claimed_name it is called.
    pub claimed_name: HostName,
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
