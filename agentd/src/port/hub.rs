//! The HTTPS client of the hub.
//!
//! | call | when |
//! | --- | --- |
//! | [`Hub::enroll`], [`Hub::request_enrollment`], [`Hub::restore`] | before there is an identity; the CA is known by its pin |
//! | [`Hub::renew`], [`Hub::checkin`], [`Hub::replacement`] | with the identity's certificate |
//! | `Hub::*_escrow` | the same, about wrapped keys |
//!
//! What goes out: the typed answer, or a [`HubError`] whose kind tells who must act. Deliberately absent: retries. Who
//! calls knows whether and when to ask again.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, CheckinRequest, JOBS_PER_ANSWER, WAIT_SECONDS_MAX};
use holdfast_protocol::desired::DOCUMENT_BYTES_MAX;
use holdfast_protocol::enrol::{
    Enrolled, EnrollmentAnswer, EnrollmentRequest, InviteRedemption, RenewRequest,
};
use holdfast_protocol::envelope::{Envelope, ErrorBody};
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::json;
use holdfast_protocol::pin::Pin;
use holdfast_protocol::report::REPORT_BYTES_MAX;
use holdfast_protocol::restore::{Replacement, RestoreRedeem, Restored};
use holdfast_tls::Trust;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

mod error;
mod escrow;
mod line;

pub use error::{HubError, Remedy};
pub use line::{Answer, Line, Posted, Verb};

use super::identity::Identity;

/// A desired document and signed jobs travel as JSON text inside JSON, which at worst doubles them; a hand-over also holds a
/// report; the frame is small.
const ANSWER_BYTES_MAX: usize =
    2 * DOCUMENT_BYTES_MAX + 2 * (JOBS_PER_ANSWER as usize) * SIGNED_BYTES_MAX + REPORT_BYTES_MAX + 64 * 1024;

/// A hub that does not take a connection in ten seconds is away.
const CONNECT_SECONDS_MAX: u64 = 10;

/// An answer that was not to be held open comes within this, on a slow line and a busy hub.
const ANSWER_SECONDS_MAX: u64 = 20;

/// A held-open line that died without a word is found by the kernel within three of these.
const KEEPALIVE_SECONDS: u64 = 15;

/// How the agent stands with its hub, for `status`.
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

/// A way to call one hub.
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
        Self::with(base, holdfast_tls::client(&Trust::CaPin(ca)).map_err(HubError::Tls)?)
    }

    /// The hub that this agent is enrolled with.
    ///
    /// # Errors
    /// [`HubError::Setup`].
    pub fn enrolled(identity: &Identity) -> Result<Self, HubError> {
        let trust = Trust::CaPem(identity.enrolled.ca_pem.clone());
        let own = holdfast_tls::Identity {
            chain_pem: identity.enrolled.certificate_pem.clone(),
            key_pem: identity.key_pem.clone(),
        };
        let tls = holdfast_tls::client_with_identity(&trust, &own).map_err(HubError::Tls)?;
        Self::with(&identity.hub, tls)
    }

    fn with(base: &str, tls: rustls::ClientConfig) -> Result<Self, HubError> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(true)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX))
            .tcp_keepalive(Duration::from_secs(KEEPALIVE_SECONDS))
            .tcp_keepalive_interval(Duration::from_secs(KEEPALIVE_SECONDS))
            .tcp_keepalive_retries(2)
            .pool_max_idle_per_host(1)
            .user_agent(concat!("holdfast-agentd/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(HubError::Setup)?;
        Ok(Self::over(Arc::new(line::Https { http, body_max: ANSWER_BYTES_MAX }), base))
    }

    /// A hub at the other end of a line, which has the trust of its own: for tests that are the hub.
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

    /// Asks by what order another box took this one's place.
    ///
    /// # Errors
    /// [`HubError`].
    pub async fn replacement(&self) -> Result<Replacement, HubError> {
        self.post("/v1/agent/replacement", &serde_json::json!({}), 0).await
    }

    /// Asks to be let in without an invite.
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

    async fn post<A: Serialize + Sync, T: DeserializeOwned>(
        &self,
        path: &str,
        ask: &A,
        wait_s: u32,
    ) -> Result<T, HubError> {
        let body = serde_json::to_vec(ask).map_err(HubError::Unwritable)?;
        self.send((Verb::Post, path), body, wait_s).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        (verb, path): (Verb, &str),
        body: Vec<u8>,
        wait_s: u32,
    ) -> Result<T, HubError> {
        let within = Duration::from_secs(ANSWER_SECONDS_MAX + u64::from(wait_s));
        let Answer { status, body } = self.line.send(verb, (&self.base, path), body, within).await?;
        if body.len() > ANSWER_BYTES_MAX {
            return Err(HubError::TooLong { max: ANSWER_BYTES_MAX });
        }
        if (300..400).contains(&status) {
            return Err(HubError::Redirect { hub: self.base.clone(), status });
        }
        let frame: Envelope<T> = json::parse("the hub's answer", &body, ANSWER_BYTES_MAX)
            .map_err(|source| HubError::Answer { status, source })?;
        match (frame.data, frame.error) {
            (Some(data), None) if (200..300).contains(&status) => Ok(data),
            (None, Some(problem)) => Err(HubError::Refused { status, problem }),
            _ => Err(HubError::Frame { status }),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
