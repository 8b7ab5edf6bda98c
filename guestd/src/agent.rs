//! Client of the local API: one pinned endpoint, bounded answers, typed errors.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_protocol::bootstrap::Bootstrap;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{CorrelationId, OperationId};
use holdfast_protocol::json::JsonError;
use holdfast_protocol::local::audit::AuditPage;
use holdfast_protocol::local::desired::DesiredView;
use holdfast_protocol::local::work::Accepted;
use holdfast_protocol::local::{ClaimRequest, Hello, HelloAnswer, SelfView, StorageView};
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::pin::{Pin, PinSet};
use holdfast_protocol::secret::Secret;
use net::client::{Call, CallError, Client, Method, Settings, SetupError, bearer};
use net::tls::{Refusal, TlsError, Trust};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::update::exchange::{Exchange, ExchangeState};
use crate::watchdog;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Ten megabytes over a bridge, from an agent that reads them first.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// Well within the timeout of a request.
const LOOK_WAIT: &str = "15s";

/// Most answers are a few KiB. The longest is a page of records: 48 KiB of text, which JSON escapes can make longer.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

/// Why the request could not be sent, or was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A bootstrap token or a file that names no usable endpoint.
    #[error(
        "{endpoint:?} is not an https endpoint without a path: the agent must issue a new bootstrap token"
    )]
    Endpoint {
        /// What it names.
        endpoint: String,
    },
    /// A token that is invalid in a header.
    #[error("the token has invalid characters: bootstrap.json was changed by hand")]
    Token,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the HTTP client cannot be set up")]
    Client(#[source] SetupError),
    /// Another server answers at the agent's address. Nothing was sent.
    #[error("the server at {endpoint} is not this guest's agent [{}]", ErrorCode::PinMismatch)]
    OtherServer {
        endpoint: String,
        /// What was shown.
        #[source]
        refusal: Refusal,
    },
    /// The agent does not answer, or answers too slowly.
    #[error("the agent at {endpoint} does not answer")]
    Unreachable {
        endpoint: String,
        #[source]
        source: CallError,
    },
    /// The agent says no.
    #[error("the agent refuses: {problem}")]
    Refused { problem: ErrorBody },
    /// The answer is longer than any we expect.
    #[error("the agent's answer is longer than {max} bytes")]
    TooLong { max: usize },
    /// The answer is not in the form agreed on.
    #[error(
        "the agent's answer (status {status}) is not of this version: agent and controller must be of one release line"
    )]
    Answer {
        /// The HTTP status.
        status: u16,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// A redirect, or an envelope with both or neither of data and error.
    #[error("the agent's answer (status {status}) is neither data nor an error")]
    Contradiction {
        /// The HTTP status.
        status: u16,
    },
    /// Cannot happen for what is sent.
    #[error("the request cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
    /// A token for another pin than the one it came over.
    #[error(
        "the agent at {endpoint} sent a bootstrap for another certificate than its own: it was not stored"
    )]
    OtherPin { endpoint: String },
}

impl AgentError {
    /// The agent's own code, where it spoke.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { problem } => Some(problem.code),
            _ => None,
        }
    }
}

/// Whether more is said at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing for minutes: the agent need not keep the connection.
    Last,
    /// Another request follows.
    MoreFollow,
}

/// One agent, known by its pin.
pub struct Agent {
    client: Client,
    pin: Pin,
}

impl Agent {
    /// Prepares to speak to the agent at `endpoint`. Nothing is sent yet.
    pub fn new(endpoint: &str, pin: Pin, source_address: Option<IpAddr>) -> Result<Self, AgentError> {
        let unusable = || AgentError::Endpoint { endpoint: endpoint.chars().take(200).collect() };
        let settings = Settings {
            user_agent: concat!("guestd/", env!("CARGO_PKG_VERSION")),
            answer_bytes_max: ANSWER_BYTES_MAX,
            within: REQUEST_TIMEOUT,
            source_address,
        };
        let tls = net::tls::client(&Trust::Pins(PinSet::from(pin)))?;
        let client = Client::new(endpoint, tls, settings).map_err(|error| match error {
            SetupError::Url => unusable(),
            error @ (SetupError::Tls(_) | SetupError::Client(_)) => AgentError::Client(error),
        })?;
        if client.path() != "/" {
            return Err(unusable());
        }
        Ok(Self { client, pin })
    }

    /// The same agent, asked under one correlation id from now on.
    pub fn with_correlation(mut self, id: CorrelationId) -> Self {
        self.client = self.client.with_correlation(id);
        self
    }

    /// Trades a claim for the bootstrap. With the same redeemer's proof, a repeat is known as one.
    pub async fn claim(&self, claim: &Secret, redeemer: &Secret) -> Result<Bootstrap, AgentError> {
        let body = ClaimRequest { claim: claim.clone(), redeemer: Some(redeemer.clone()) };
        let bootstrap: Bootstrap = self.ask(self.client.call(Method::POST, "/v1/claim").json(&body)).await?;
        if bootstrap.pin == self.pin {
            Ok(bootstrap)
        } else {
            Err(AgentError::OtherPin { endpoint: self.endpoint() })
        }
    }

    /// Says that the controller is up.
    pub async fn hello(&self, token: &Secret, hello: &Hello, word: Word) -> Result<HelloAnswer, AgentError> {
        let call = self.call(Method::POST, "/v1/hello", token)?;
        let call = if word == Word::Last { call.last() } else { call };
        self.ask(call.json(hello)).await
    }

    /// Asks what should run here, and says how an exchange went. No other request follows for minutes, so the connection
    /// is closed.
    pub async fn desired(
        &self,
        token: &Secret,
        exchange: Option<&Exchange>,
    ) -> Result<DesiredView, AgentError> {
        let call = self.call(Method::GET, "/v1/desired", token)?.last();
        self.ask(Ok(match exchange.map(|exchange| (exchange.state, exchange.sha256.as_str())) {
            None => call,
            Some((ExchangeState::OnTrial, sha256)) => call.query(&[("trial", sha256)]),
            Some((ExchangeState::TakenBack, sha256)) => call.query(&[("taken_back", sha256)]),
        }))
        .await
    }

    /// Has bytes, piece by piece, until `take` has no use for more.
    pub async fn fetch<E>(
        &self,
        token: &Secret,
        path: &str,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, AgentError> {
        let call = self.call(Method::GET, path, token)?;
        watchdog::within(FETCH_TIMEOUT);
        call.within(FETCH_TIMEOUT).stream(take).await.map_err(|error| self.failed(error))
    }

    /// Asks who this guest is.
    pub async fn whoami(&self, token: &Secret) -> Result<SelfView, AgentError> {
        self.ask(Ok(self.call(Method::GET, "/v1/self", token)?)).await
    }

    /// Asks for this guest's mounts.
    pub async fn storage(&self, token: &Secret) -> Result<StorageView, AgentError> {
        self.ask(Ok(self.call(Method::GET, "/v1/storage", token)?)).await
    }

    /// Requests work, with a key by which a repeat is recognised.
    pub async fn work(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<Accepted, AgentError> {
        self.ask(self.call(Method::POST, path, token)?.idempotency_key(key).json(body)).await
    }

    /// Sends a message whose answer is not an operation.
    pub async fn notify<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T, AgentError> {
        self.ask(self.call(Method::POST, path, token)?.idempotency_key(key).json(body)).await
    }

    /// Says how something is now.
    pub async fn put<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T, AgentError> {
        self.ask(self.call(Method::PUT, path, token)?.idempotency_key(key).json(body)).await
    }

    /// Takes something back.
    pub async fn delete<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
    ) -> Result<T, AgentError> {
        self.ask(Ok(self.call(Method::DELETE, path, token)?.idempotency_key(key))).await
    }

    /// Reads something as soon as it changes, or after a while.
    pub async fn look_waiting<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        wait: &str,
    ) -> Result<T, AgentError> {
        self.ask(Ok(self.call(Method::GET, path, token)?.query(&[("wait", wait)]))).await
    }

    /// How far work is, as soon as that changes, or after a while.
    pub async fn operation(&self, token: &Secret, id: OperationId) -> Result<OperationView, AgentError> {
        self.look_waiting(token, &format!("/v1/operations/{id}"), LOOK_WAIT).await
    }

    /// A page of the records about this guest.
    pub async fn audit(&self, token: &Secret, after: i64) -> Result<AuditPage, AgentError> {
        self.look(token, &format!("/v1/audit?after={after}")).await
    }

    /// Reads a list.
    pub async fn look<T: DeserializeOwned>(&self, token: &Secret, path: &str) -> Result<T, AgentError> {
        self.ask(Ok(self.call(Method::GET, path, token)?)).await
    }

    fn call(&self, method: Method, path: &str, token: &Secret) -> Result<Call<'_>, AgentError> {
        Ok(self.client.call(method, path).bearer(bearer(token).ok_or(AgentError::Token)?))
    }

    async fn ask<T: DeserializeOwned>(&self, call: Result<Call<'_>, CallError>) -> Result<T, AgentError> {
        watchdog::within(REQUEST_TIMEOUT);
        let asked = async { call?.send().await };
        asked.await.map_err(|error| self.failed(error))
    }

    fn endpoint(&self) -> String {
        self.client.url().to_owned()
    }

    fn failed(&self, error: CallError) -> AgentError {
        let endpoint = self.endpoint();
        match error {
            CallError::NotPinned(refusal) => AgentError::OtherServer { endpoint, refusal },
            // A pin has no other ways to be refused, and this client shows no certificate.
            source @ (CallError::Unreachable(_)
            | CallError::ServerCertificate(_)
            | CallError::OwnCertificate(_)) => AgentError::Unreachable { endpoint, source },
            CallError::Refused { problem, .. } => AgentError::Refused { problem },
            CallError::TooLong { max } => AgentError::TooLong { max },
            CallError::Answer { status, source } => AgentError::Answer { status, source },
            CallError::Redirect { status } | CallError::Contradiction { status } => {
                AgentError::Contradiction { status }
            }
            CallError::Unwritable(source) => AgentError::Unwritable(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::pin::PinKind;

    use super::*;

    #[test]
    fn only_a_bare_https_endpoint_is_spoken_to() {
        let open = |endpoint: &str| Agent::new(endpoint, Pin::of(PinKind::Leaf, b"x"), None);
        assert!(open("https://10.66.0.1:8443").is_ok());
        for bad in [
            "http://10.66.0.1:8443",
            "10.66.0.1:8443",
            "https://u:p@h",
            "https://h/x",
            "https://h/?q",
            "",
            "file:///x",
        ] {
            assert!(matches!(open(bad), Err(AgentError::Endpoint { .. })), "{bad:?}");
        }
    }
}
