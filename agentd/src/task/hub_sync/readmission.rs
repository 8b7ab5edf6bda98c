//! The way back of a host with an ended certificate.
//!
//! In: the identity, whose certificate the hub takes no more: it ended while the host was away, or the hub's CA changed
//! meanwhile. Out: the next certificate for the same key, once an operator approved it. The hub is known by its CA as
//! always, and what it answers is judged as a renewal is.

use holdfast_protocol::enrol::{EnrollmentAnswer, EnrollmentRequest};
use holdfast_protocol::id::{EnrollmentRequestId, HostId, HostName};
use holdfast_protocol::pin::Pin;
use jiff::Timestamp;

use super::{HubSync, RoundError};

/// An operator has to decide.
#[derive(Debug, thiserror::Error)]
#[error(
    "the hub takes this host's certificate no more (it ends at {ends_at:.0}), and an operator has to let the host in again: \
     compare the fingerprint {fingerprint}, then `holdfast host approve {request} {name} --fingerprint {fingerprint} \
     --returns {host}`"
)]
pub(super) struct WaitsForApproval {
    request: EnrollmentRequestId,
    fingerprint: Pin,
    name: HostName,
    host: HostId,
    ends_at: Timestamp,
}

impl HubSync {
    /// Asks for the next certificate of the held key, without the one that is over.
    pub(super) async fn request_readmission(&mut self) -> Result<(), RoundError> {
        let hub = (self.dial_without)(&self.identity)?;
        let key = self.identity.held_key()?;
        let enrolled = &self.identity.enrolled;
        let request = EnrollmentRequest {
            csr_pem: key.csr_pem()?,
            claimed_name: enrolled.host_name.clone(),
            // Orders are sealed and signed for what the host reported before.
            sealing: None,
        };
        match hub.request_enrollment(&request).await? {
            EnrollmentAnswer::Approved(approved) => self.take_certificate(&key, *approved),
            EnrollmentAnswer::Pending { request, .. } => Err(WaitsForApproval {
                request,
                // The own key, and not what the hub says it is.
                fingerprint: key.fingerprint(),
                name: enrolled.host_name.clone(),
                host: enrolled.host_id,
                ends_at: enrolled.not_after,
            }
            .into()),
        }
    }
}
