//! Client of the local API: one pinned endpoint, bounded answers, typed errors.

use std::net::IpAddr;
use std::time::Duration;

use holdfast_protocol::bootstrap::Bootstrap;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::{Envelope, ErrorBody, IDEMPOTENCY_KEY_HEADER};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::local::audit::AuditPage;
use holdfast_protocol::local::desired::DesiredView;
use holdfast_protocol::local::work::Accepted;
use holdfast_protocol::local::{BODY_BYTES_MAX, ClaimRequest, Hello, HelloAnswer, SelfView, StorageView};
use holdfast_protocol::operation::OperationView;
use holdfast_protocol::pin::{Pin, PinSet};
use holdfast_protocol::secret::Secret;
use holdfast_tls::{Refusal, TlsError, Trust};
use reqwest::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::watchdog;

/// The agent is one bridge away; on a busy host the handshake of TLS may still take seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Ten megabytes over a bridge, from an agent that reads them first.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// Well within the timeout of a request.
const LOOK_WAIT: &str = "15s";

/// Most answers are a few KiB. A page of records is the longest: 48 KiB of words, which escapes may blow up.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

/// Why the agent could not be asked, or would not answer.
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
    /// A token that cannot stand in a header.
    #[error("the token has invalid characters: bootstrap.json was changed by hand")]
    Token,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
    /// Somebody else answers at the agent's address. Nothing was sent.
    #[error("the server at {endpoint} is not this guest's agent [{}]", ErrorCode::PinMismatch)]
    OtherServer {
        endpoint: String,
        /// What was shown.
        #[source]
        refusal: Refusal,
    },
    /// Nobody answers, or too slowly.
    #[error("the agent at {endpoint} does not answer")]
    Unreachable {
        endpoint: String,
        #[source]
        source: reqwest::Error,
    },
    /// The agent says no.
    #[error("the agent refuses: {problem}")]
    Refused { problem: ErrorBody },
    /// The answer is longer than any we expect.
    #[error("the agent's answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The answer is not in the form agreed on.
    #[error(
        "the agent's answer (status {status}) is not of this version: agent and controller must be of one release line"
    )]
    Answer {
        /// The HTTP status.
        status: StatusCode,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// An envelope with neither data nor error.
    #[error("the agent's answer (status {status}) is empty")]
    Empty {
        /// The HTTP status.
        status: StatusCode,
    },
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
    /// Something is asked next.
    MoreFollow,
}

/// One agent, known by its pin.
pub struct Agent {
    http: Client,
    base: Url,
    pin: Pin,
}

impl Agent {
    /// Prepares to speak to the agent at `endpoint`. Nothing is sent yet.
    pub fn new(endpoint: &str, pin: Pin, source_address: Option<IpAddr>) -> Result<Self, AgentError> {
        let base = Url::parse(endpoint).ok().filter(is_endpoint);
        let base =
            base.ok_or_else(|| AgentError::Endpoint { endpoint: endpoint.chars().take(200).collect() })?;
        let tls = holdfast_tls::client(&Trust::Pins(PinSet::from(pin)))?;
        let http = Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(true)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .pool_max_idle_per_host(1)
            .local_address(source_address)
            .user_agent(concat!("guestd/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(AgentError::Client)?;
        Ok(Self { http, base, pin })
    }

    /// Trades a claim for the bootstrap. With the same redeemer's proof, a repeat is known as one.
    pub async fn claim(&self, claim: &Secret, redeemer: &Secret) -> Result<Bootstrap, AgentError> {
        let request = self.request(Method::POST, "/v1/claim");
        let body = ClaimRequest { claim: claim.clone(), redeemer: Some(redeemer.clone()) };
        let bootstrap: Bootstrap = self.ask(with_json(request, &body)?).await?;
        if bootstrap.pin == self.pin {
            Ok(bootstrap)
        } else {
            Err(AgentError::OtherPin { endpoint: self.endpoint() })
        }
    }

    /// Says that the controller is up.
    pub async fn hello(&self, token: &Secret, hello: &Hello, word: Word) -> Result<HelloAnswer, AgentError> {
        let request = self.request(Method::POST, "/v1/hello").header(AUTHORIZATION, bearer(token)?);
        let request = if word == Word::Last { last(request) } else { request };
        self.ask(with_json(request, hello)?).await
    }

    /// Asks what should run here. It is the last word for minutes.
    pub async fn desired(&self, token: &Secret) -> Result<DesiredView, AgentError> {
        let request = last(self.request(Method::GET, "/v1/desired"));
        self.ask(request.header(AUTHORIZATION, bearer(token)?)).await
    }

    /// Has bytes, piece by piece, until `take` has no use for more.
    pub async fn fetch<E>(
        &self,
        token: &Secret,
        path: &str,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, AgentError> {
        let request = self.request(Method::GET, path).header(AUTHORIZATION, bearer(token)?);
        watchdog::within(FETCH_TIMEOUT);
        let mut response = request.timeout(FETCH_TIMEOUT).send().await.map_err(|error| self.away(error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        while let Some(piece) = response.chunk().await.map_err(|error| self.away(error))? {
            if let Err(enough) = take(&piece) {
                return Ok(Err(enough));
            }
        }
        Ok(Ok(()))
    }

    /// Asks who this guest is.
    pub async fn whoami(&self, token: &Secret) -> Result<SelfView, AgentError> {
        self.ask(self.request(Method::GET, "/v1/self").header(AUTHORIZATION, bearer(token)?)).await
    }

    /// Asks for this guest's mounts.
    pub async fn storage(&self, token: &Secret) -> Result<StorageView, AgentError> {
        self.ask(self.request(Method::GET, "/v1/storage").header(AUTHORIZATION, bearer(token)?)).await
    }

    /// Asks for work, under a key by which a repeat is known as one.
    pub async fn work(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<Accepted, AgentError> {
        let request = self.request(Method::POST, path).header(AUTHORIZATION, bearer(token)?);
        self.ask(with_json(request.header(IDEMPOTENCY_KEY_HEADER, key), body)?).await
    }

    /// Tells something that is answered with something else than work.
    pub async fn notify<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T, AgentError> {
        let request = self.request(Method::POST, path).header(AUTHORIZATION, bearer(token)?);
        self.ask(with_json(request.header(IDEMPOTENCY_KEY_HEADER, key), body)?).await
    }

    /// Says how something is now.
    pub async fn put<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
        body: &impl Serialize,
    ) -> Result<T, AgentError> {
        let request = self.request(Method::PUT, path).header(AUTHORIZATION, bearer(token)?);
        self.ask(with_json(request.header(IDEMPOTENCY_KEY_HEADER, key), body)?).await
    }

    /// Takes something back.
    pub async fn delete<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        key: &str,
    ) -> Result<T, AgentError> {
        let request = self.request(Method::DELETE, path).header(AUTHORIZATION, bearer(token)?);
        self.ask(request.header(IDEMPOTENCY_KEY_HEADER, key)).await
    }

    /// Reads something as soon as it changes, or after a while.
    pub async fn look_waiting<T: DeserializeOwned>(
        &self,
        token: &Secret,
        path: &str,
        wait: &str,
    ) -> Result<T, AgentError> {
        let request = self.request(Method::GET, path).query(&[("wait", wait)]);
        self.ask(request.header(AUTHORIZATION, bearer(token)?)).await
    }

    /// How far work is, as soon as that changes, or after a while.
    pub async fn operation(&self, token: &Secret, id: OperationId) -> Result<OperationView, AgentError> {
        let request = self.request(Method::GET, &format!("/v1/operations/{id}"));
        self.ask(request.query(&[("wait", LOOK_WAIT)]).header(AUTHORIZATION, bearer(token)?)).await
    }

    /// A page of the records about this guest.
    pub async fn audit(&self, token: &Secret, after: i64) -> Result<AuditPage, AgentError> {
        let request = self.request(Method::GET, "/v1/audit").query(&[("after", after)]);
        self.ask(request.header(AUTHORIZATION, bearer(token)?)).await
    }

    /// Reads a list.
    pub async fn look<T: DeserializeOwned>(&self, token: &Secret, path: &str) -> Result<T, AgentError> {
        self.ask(self.request(Method::GET, path).header(AUTHORIZATION, bearer(token)?)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(path);
        self.http.request(method, url)
    }

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, AgentError> {
        watchdog::within(REQUEST_TIMEOUT);
        let response = request.send().await.map_err(|error| self.away(error))?;
        let status = response.status();
        let body = self.body(response).await?;
        let envelope: Envelope<T> = json::parse("the answer", &body, ANSWER_BYTES_MAX)
            .map_err(|source| AgentError::Answer { status, source })?;
        match (envelope.data, envelope.error) {
            (Some(data), None) if status.is_success() => Ok(data),
            (_, Some(problem)) => Err(AgentError::Refused { problem }),
            _ => Err(AgentError::Empty { status }),
        }
    }

    /// Why there are no bytes.
    async fn refusal(&self, response: Response) -> AgentError {
        let status = response.status();
        let body = match self.body(response).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        match json::parse::<Envelope<()>>("the answer", &body, ANSWER_BYTES_MAX) {
            Ok(Envelope { error: Some(problem), .. }) => AgentError::Refused { problem },
            Ok(_) => AgentError::Empty { status },
            Err(source) => AgentError::Answer { status, source },
        }
    }

    async fn body(&self, mut response: Response) -> Result<Zeroizing<Vec<u8>>, AgentError> {
        let mut body = Zeroizing::new(Vec::with_capacity(BODY_BYTES_MAX));
        while let Some(chunk) = response.chunk().await.map_err(|error| self.away(error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(AgentError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn endpoint(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    fn away(&self, error: reqwest::Error) -> AgentError {
        let endpoint = self.endpoint();
        match holdfast_tls::refusal(&error) {
            Some(refusal) => AgentError::OtherServer { endpoint, refusal: refusal.clone() },
            None => AgentError::Unreachable { endpoint, source: error.without_url() },
        }
    }
}

fn is_endpoint(url: &Url) -> bool {
    url.scheme() == "https"
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Marked sensitive, so that no layer prints it.
fn bearer(token: &Secret) -> Result<HeaderValue, AgentError> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose()));
    let mut value = HeaderValue::from_str(&text).map_err(|_| AgentError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

fn last(request: RequestBuilder) -> RequestBuilder {
    request.header(CONNECTION, HeaderValue::from_static("close"))
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, AgentError> {
    let bytes = serde_json::to_vec(body).map_err(|_| AgentError::Token)?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(bytes))
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

    #[test]
    fn a_token_that_would_split_the_header_is_refused() {
        let token = Secret::new("abc\r\nx-guest: other".to_owned());
        assert!(matches!(bearer(&token), Err(AgentError::Token)));
        assert!(format!("{:?}", bearer(&Secret::new("abc".to_owned())).unwrap()).contains("Sensitive"));
    }
}
