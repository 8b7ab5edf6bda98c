//! The HTTPS client of the hub.
//!
//! | call | when |
//! | --- | --- |
//! | [`Hub::enroll`], [`Hub::request_enrollment`], [`Hub::restore`] | before there is an identity; the CA is known by its pin |
//! | [`Hub::renew`], [`Hub::checkin`], [`Hub::replacement`] | with the identity's certificate |
//! | `Hub::*_escrow` | the same, about wrapped keys |
//! | [`Hub::put_restore_certificate`] | the same, about one guest |
//!
//! Output: the typed answer, or a [`HubError`] whose kind says who must act. Deliberately absent: retries. The caller
//! knows whether and when to ask again.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest, JOBS_PER_ANSWER, WAIT_SECONDS_MAX};
use holdfast_protocol::desired::DOCUMENT_BYTES_MAX;
use holdfast_protocol::enrol::{
    Enrolled, EnrollmentAnswer, EnrollmentRequest, InviteRedemption, RenewRequest,
};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::guest_audit::{GuestAuditKept, GuestAuditPut};
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::report::REPORT_BYTES_MAX;
use holdfast_protocol::restore::{Replacement, RestoreRedeem, Restored};
use holdfast_protocol::restore_certificate::{CertificateKept, CertificatePut};
use jiff::Timestamp;
use net::client::{Answer, Client, Method, Settings};
use net::tls::Trust;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

mod error;
mod escrow;
mod line;
mod releases;

pub use error::{HubError, Remedy};
pub use line::{Line, Posted};
pub use releases::PART_BYTES;

use super::identity::Identity;

/// A desired document and signed jobs are sent as JSON text inside JSON, which at worst doubles them. A hand-over also
/// holds a report. The envelope is small.
const ANSWER_BYTES_MAX: usize =
    2 * DOCUMENT_BYTES_MAX + 2 * (JOBS_PER_ANSWER as usize) * SIGNED_BYTES_MAX + REPORT_BYTES_MAX + 64 * 1024;

/// The time limit of an answer without long polling, on a slow line and a busy hub.
const ANSWER_SECONDS_MAX: u64 = 20;

/// The state of the agent's contact with its hub, for `status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contact {
    /// When the hub last answered.
    pub reached_at: Option<Timestamp>,
    /// Why it does not, or will not.
    pub problem: Option<ErrorBody>,
    /// When our certificate ends.
    pub certificate_ends_at: Timestamp,
}

/// The client of one hub.
#[derive(Clone, Debug)]
pub struct Hub {
    line: Arc<dyn Line>,
    base: String,
}

impl Hub {
    /// A hub of which only the CA's pin is known.
    ///
    /// # Errors
    /// [`HubError::Setup`].
    pub fn first_contact(base: &str, ca: Pin) -> Result<Self, HubError> {
        Self::with(base, net::tls::client(&Trust::CaPin(ca)).map_err(HubError::Tls)?)
    }

    /// The hub that this agent is enrolled with.
    ///
    /// # Errors
    /// [`HubError::Setup`].
    pub fn enrolled(identity: &Identity) -> Result<Self, HubError> {
        let trust = Trust::CaPem(identity.enrolled.ca_pem.clone());
        let own = net::tls::Identity {
            chain_pem: identity.enrolled.certificate_pem.clone(),
            key_pem: identity.key_pem.clone(),
        };
        let tls = net::tls::client_with_identity(&trust, &own).map_err(HubError::Tls)?;
        Self::with(&identity.hub, tls)
    }

    /// The hub that this agent is enrolled with, without its own certificate: it is over, or the hub takes it no more.
    ///
    /// # Errors
    /// [`HubError::Setup`].
    pub fn without_certificate(identity: &Identity) -> Result<Self, HubError> {
        let trust = Trust::CaPem(identity.enrolled.ca_pem.clone());
        Self::with(&identity.hub, net::tls::client(&trust).map_err(HubError::Tls)?)
    }

    fn with(base: &str, tls: rustls::ClientConfig) -> Result<Self, HubError> {
        let settings = Settings {
            user_agent: concat!("holdfast-agentd/", env!("CARGO_PKG_VERSION")),
            answer_bytes_max: ANSWER_BYTES_MAX,
            within: Duration::from_secs(ANSWER_SECONDS_MAX),
            source_address: None,
        };
        let client = Client::new(base, tls, settings)
            .map_err(|source| HubError::Setup { hub: base.to_owned(), source })?;
        Ok(Self::over(Arc::new(client), base))
    }

    /// A hub at the other end of a line that does its own authentication: for tests that play the hub.
    #[must_use]
    pub fn over(line: Arc<dyn Line>, base: &str) -> Self {
        Self { line, base: base.trim_end_matches('/').to_owned() }
    }

    /// Trades an invite for a certificate. Asked again with the same key, the hub answers the same.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn enroll(&self, request: &InviteRedemption) -> Result<Enrolled, HubError> {
        self.post("/v1/enroll", request, 0).await
    }

    /// Trades a restore invite for the place of a lost host. Asked again with the same key, the hub answers the same.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn restore(&self, request: &RestoreRedeem) -> Result<Restored, HubError> {
        self.post("/v1/restore", request, 0).await
    }

    /// Asks for the order by which another host replaced this one.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn replacement(&self) -> Result<Replacement, HubError> {
        self.post("/v1/agent/replacement", &serde_json::json!({}), 0).await
    }

    /// Asks to be enrolled without an invite.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn request_enrollment(
        &self,
        request: &EnrollmentRequest,
    ) -> Result<EnrollmentAnswer, HubError> {
        self.post("/v1/enrollment-requests", request, 0).await
    }

    /// Asks for the next certificate.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn renew(&self, request: &RenewRequest) -> Result<Enrolled, HubError> {
        self.post("/v1/renew", request, 0).await
    }

    /// Reports, and hears of a newer document. The hub may hold the answer back for `wait_s` until there is one.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn checkin(&self, request: &CheckinRequest, wait_s: u32) -> Result<CheckinAnswer, HubError> {
        let wait_s = wait_s.min(WAIT_SECONDS_MAX);
        self.post(&format!("/v1/agent/checkin?wait={wait_s}s"), request, wait_s).await
    }

    /// Has a restore certificate countersigned and kept. The same one again is the same answer.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn put_restore_certificate(&self, put: &CertificatePut) -> Result<CertificateKept, HubError> {
        let body = serde_json::to_vec(put).map_err(HubError::Unwritable)?;
        self.send((Method::PUT, "/v1/agent/restore-certificates"), body, 0).await
    }

    /// Sends audit records about guests, and hears how far the hub is. The same ones again change nothing.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn put_guest_audit(&self, put: &GuestAuditPut) -> Result<GuestAuditKept, HubError> {
        let body = serde_json::to_vec(put).map_err(HubError::Unwritable)?;
        self.send((Method::PUT, "/v1/agent/guest-audit"), body, 0).await
    }

    async fn post<A: Serialize + Sync, T: DeserializeOwned>(
        &self,
        path: &str,
        ask: &A,
        wait_s: u32,
    ) -> Result<T, HubError> {
        let body = serde_json::to_vec(ask).map_err(HubError::Unwritable)?;
        self.send((Method::POST, path), body, wait_s).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        (method, path): (Method, &str),
        body: Vec<u8>,
        wait_s: u32,
    ) -> Result<T, HubError> {
        let within = Duration::from_secs(ANSWER_SECONDS_MAX + u64::from(wait_s));
        let answered = self.line.send(method, path, body, within).await;
        let opened = answered.and_then(|answer: Answer| answer.open(ANSWER_BYTES_MAX));
        opened.map_err(|error| HubError::of(&self.base, error))
    }
}

#[cfg(test)]
mod tests;
