//! Client of the operator API: one pinned hub, bounded answers, safe retries.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CorrelationId, RequestId};
use holdfast_protocol::json::JsonError;
use holdfast_protocol::operator::{DesiredPut, DesiredVersion, Page};
use holdfast_protocol::secret::Secret;
use net::client::header::{HeaderValue, IF_MATCH};
use net::client::{Call, CallError, Client, Method, Settings, SetupError, bearer};
use net::tls::{Refusal, TlsError, Trust};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// For a piece of a file over a slow line. The hub may hash what it has before the piece.
const PIECE_TIMEOUT: Duration = Duration::from_secs(300);

/// For the state of a whole fleet over a slow line.
const STREAM_TIMEOUT: Duration = Duration::from_secs(1_800);

/// The longest answer is a page of twenty documents of 1 MiB, whose quotes and line ends take two bytes each.
const ANSWER_BYTES_MAX: usize = 48 * 1024 * 1024;

/// For lists that are wanted whole; [`PAGES_MAX`] bounds them.
pub const WHOLE: usize = usize::MAX;

/// A list with more pages needs a narrower query.
const PAGES_MAX: usize = 500;

/// How often a request is sent when the hub does not answer, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(700);

/// How often a reader waits that asked too often, and how long. The hub's bucket has some hundred calls by then.
const RATE_WAITS: u32 = 3;
const RATE_PAUSE: Duration = Duration::from_secs(5);

/// Why the request could not be sent, or was not answered.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// Not a URL of a hub.
    #[error("{url:?} is not the URL of a hub: it looks like https://hub.example:8440")]
    Url { url: String },
    /// A token that is invalid in a header.
    #[error("the token has characters that no hub issues: copy it whole")]
    Token,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the HTTP client cannot be set up")]
    Client(#[source] SetupError),
    /// Another server answers. Nothing was sent.
    #[error("the server at {url} is not the hub you logged in to")]
    OtherServer {
        url: String,
        /// What was shown.
        #[source]
        refusal: Refusal,
    },
    /// Its certificate is expired, for another name, or of another CA. Nothing was sent.
    #[error(
        "the certificate of the hub at {url} is not valid, and nothing was sent: is this computer's clock right? Otherwise the hub's administrator must look at `hubd` there"
    )]
    Certificate {
        url: String,
        #[source]
        source: CallError,
    },
    /// The hub does not answer, or answers too slowly.
    #[error("the hub at {url} does not answer: check the address, and `systemctl status hubd` there")]
    Unreachable {
        url: String,
        #[source]
        source: CallError,
    },
    /// The hub says no.
    #[error("{problem}{}{} (request {request_id}, correlation {correlation_id})", details(problem), next_step(problem.code))]
    Refused {
        problem: ErrorBody,
        /// Under which it finds the request in its log.
        request_id: RequestId,
        /// Under which hub and host have all that this run asked for.
        correlation_id: CorrelationId,
    },
    /// The answer is longer than any we expect.
    #[error("the hub's answer is longer than {max} bytes")]
    TooLong { max: usize },
    /// The answer is not in the form agreed on.
    #[error(
        "the hub's answer (status {status}) is not of this version: use holdfast of the hub's release line"
    )]
    Answer {
        /// The HTTP status.
        status: u16,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// An envelope with both or neither of data and error.
    #[error("the hub's answer (status {status}) is neither data nor an error")]
    Contradiction {
        /// The HTTP status.
        status: u16,
    },
    /// A redirect; a hub sends none.
    #[error(
        "{url} answers with a redirect ({status}), which is never followed: log in with the hub's own address"
    )]
    Redirect {
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// A list without end.
    #[error("the hub's list has more than {PAGES_MAX} pages: narrow the query")]
    TooManyPages,
    /// Cannot happen for what we send.
    #[error("the request cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn details(problem: &ErrorBody) -> String {
    problem.details.iter().map(|(key, value)| format!("; {key}: {value}")).collect()
}

const fn next_step(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthenticated => "; log in again with `holdfast login`",
        ErrorCode::NotFound => "; see `holdfast host list` and `holdfast host requests`",
        ErrorCode::RateLimited | ErrorCode::Busy => "; try again in a minute",
        _ => "",
    }
}

/// Where a change goes, and over which generation.
pub struct Change<'a> {
    pub method: Method,
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, &'a str)],
    pub seen: Generation,
}

pub struct Hub {
    client: Client,
    bearer: HeaderValue,
    correlation: CorrelationId,
}

impl HubError {
    /// Whether the hub refuses the caller's role or scope.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { problem, .. } if problem.code == ErrorCode::Forbidden)
    }
}

impl Hub {
    /// Prepares to speak to a hub. Nothing is sent yet. Every call carries the correlation id.
    pub fn new(
        url: &str,
        trust: &Trust,
        token: &Secret,
        correlation: CorrelationId,
    ) -> Result<Self, HubError> {
        let settings = Settings {
            user_agent: concat!("holdfast/", env!("CARGO_PKG_VERSION")),
            answer_bytes_max: ANSWER_BYTES_MAX,
            within: REQUEST_TIMEOUT,
            source_address: None,
        };
        let client = Client::new(url, net::tls::client(trust)?, settings).map_err(|error| match error {
            SetupError::Url => HubError::Url { url: url.chars().take(200).collect() },
            error @ (SetupError::Tls(_) | SetupError::Client(_)) => HubError::Client(error),
        })?;
        let client = client.with_correlation(correlation);
        Ok(Self { client, bearer: bearer(token).ok_or(HubError::Token)?, correlation })
    }

    /// Reads one resource.
    pub async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, HubError> {
        self.read(self.call(Method::GET, path, &[])).await
    }

    /// Reads one resource that may not exist.
    pub async fn find<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>, HubError> {
        self.find_with(path, &[]).await
    }

    /// The same, with a query.
    pub async fn find_with<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<T>, HubError> {
        match self.read(self.call(Method::GET, path, query)).await {
            Ok(found) => Ok(Some(found)),
            Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one resource that may not exist, or that the caller may not read: a customer has no hosts.
    pub async fn find_permitted<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<T>, HubError> {
        match self.find_with(path, query).await {
            Err(error) if error.is_forbidden() => Ok(None),
            other => other,
        }
    }

    /// Reads a list, page by page, up to `most` items.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<T>, HubError> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let cursor_now = cursor.as_deref().map(|cursor| ("cursor", cursor));
            let query: Vec<_> = query.iter().copied().chain(cursor_now).collect();
            let page: Page<T> = self.read(self.call(Method::GET, path, &query)).await?;
            items.extend(page.items);
            match page.next {
                Some(next) if items.len() < most && Some(&next) != cursor.as_ref() => cursor = Some(next),
                _ => {
                    items.truncate(most);
                    return Ok(items);
                }
            }
        }
        Err(HubError::TooManyPages)
    }

    /// Reads one page of a list.
    pub async fn page<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        cursor: Option<&str>,
    ) -> Result<Page<T>, HubError> {
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        let query: Vec<_> = query.iter().copied().chain(cursor).collect();
        self.read(self.call(Method::GET, path, &query)).await
    }

    /// Reads bytes as they come, piece by piece. It is not sent again: what came may have been used.
    pub async fn stream<E>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, HubError> {
        let call = self.call(Method::GET, path, query).within(STREAM_TIMEOUT);
        call.stream(take).await.map_err(|error| self.failed(error))
    }

    /// Changes something. With the same key, a repeat is known as one.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, HubError> {
        self.ask(self.write(mutation(self.call(Method::POST, path, &[])), body)?).await
    }

    /// Puts a document, given as its JSON text.
    pub async fn put<T: DeserializeOwned>(&self, path: &[&str], json: Vec<u8>) -> Result<T, HubError> {
        self.ask(mutation(self.call(Method::PUT, path, &[])).body(json)).await
    }

    /// Puts bytes to where the query says. A repeat writes the same bytes to the same place.
    pub async fn put_bytes<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        bytes: Vec<u8>,
    ) -> Result<T, HubError> {
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let call = self.call(Method::PUT, path, &query).octets(bytes).within(PIECE_TIMEOUT);
        self.ask(call).await
    }

    /// Removes something.
    pub async fn delete<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, HubError> {
        self.ask(mutation(self.call(Method::DELETE, path, &[]))).await
    }

    /// Changes parts of a resource that is at version `seen`.
    pub async fn patch_seen<T: DeserializeOwned>(
        &self,
        path: &[&str],
        seen: u64,
        body: &impl Serialize,
    ) -> Result<T, HubError> {
        let call = self.call(Method::PATCH, path, &[]).header(IF_MATCH, version_tag(seen)?);
        self.ask(self.write(mutation(call), body)?).await
    }

    /// Sets a resource that has the tag `seen`.
    pub async fn put_seen<T: DeserializeOwned>(
        &self,
        path: &[&str],
        seen: &str,
        body: &impl Serialize,
    ) -> Result<T, HubError> {
        let seen = HeaderValue::from_str(&format!("\"{seen}\"")).map_err(|_| HubError::Token)?;
        let call = self.call(Method::PUT, path, &[]).header(IF_MATCH, seen);
        self.ask(self.write(mutation(call), body)?).await
    }

    /// Removes a resource that is at version `seen`.
    pub async fn delete_seen<T: DeserializeOwned>(&self, path: &[&str], seen: u64) -> Result<T, HubError> {
        let call = self.call(Method::DELETE, path, &[]).header(IF_MATCH, version_tag(seen)?);
        self.ask(mutation(call)).await
    }

    /// Changes a host's document, or a part of it, over the generation that was seen.
    pub async fn change<T: DeserializeOwned>(
        &self,
        change: Change<'_>,
        body: Option<&impl Serialize>,
    ) -> Result<T, HubError> {
        let seen = HeaderValue::from_str(&format!("\"{}\"", change.seen)).map_err(|_| HubError::Token)?;
        let call = mutation(self.call(change.method, change.path, change.query).header(IF_MATCH, seen));
        let call = match body {
            Some(body) => self.write(call, body)?,
            None => call,
        };
        self.ask(call).await
    }

    /// Puts a desired document over the one of generation `seen`.
    pub async fn put_desired(
        &self,
        host: &str,
        seen: Generation,
        put: &DesiredPut,
    ) -> Result<DesiredVersion, HubError> {
        let seen = HeaderValue::from_str(&format!("\"{seen}\"")).map_err(|_| HubError::Token)?;
        let call = self.call(Method::PUT, &["v1", "hosts", host, "desired"], &[]).header(IF_MATCH, seen);
        self.ask(self.write(mutation(call), put)?).await
    }

    fn call(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> Call<'_> {
        self.client.call_segments(method, path, query).bearer(self.bearer.clone())
    }

    fn write<'c>(&self, call: Call<'c>, body: &impl Serialize) -> Result<Call<'c>, HubError> {
        call.json(body).map_err(|error| self.failed(error))
    }

    /// Reads, and waits where this token called as often as one may: a command that reads each guest of a fleet goes on.
    async fn read<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, HubError> {
        for _ in 0..RATE_WAITS {
            let Some(attempt) = call.again() else { break };
            match Box::pin(self.ask(attempt)).await {
                Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::RateLimited => {
                    tokio::time::sleep(RATE_PAUSE).await;
                }
                other => return other,
            }
        }
        Box::pin(self.ask(call)).await
    }

    /// Sends, and sends again when there is no answer. A call that changes something carries a key, so a repeat has no
    /// second effect.
    async fn ask<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, HubError> {
        let mut tries = 1;
        loop {
            let attempt = call.again();
            let Some(attempt) = attempt else { return self.once(call).await };
            match self.once(attempt).await {
                Err(HubError::Unreachable { .. }) if tries < TRIES => tries += 1,
                other => return other,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, HubError> {
        call.send().await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: CallError) -> HubError {
        let url = self.client.url().to_owned();
        match error {
            CallError::NotPinned(refusal) => HubError::OtherServer { url, refusal },
            source @ CallError::ServerCertificate(_) => HubError::Certificate { url, source },
            // This client shows no certificate of its own.
            source @ (CallError::Unreachable(_) | CallError::OwnCertificate(_)) => {
                HubError::Unreachable { url, source }
            }
            CallError::Refused { problem, request_id, .. } => {
                HubError::Refused { problem, request_id, correlation_id: self.correlation }
            }
            CallError::Redirect { status } => HubError::Redirect { url, status },
            CallError::TooLong { max } => HubError::TooLong { max },
            CallError::Answer { status, source } => HubError::Answer { status, source },
            CallError::Contradiction { status } => HubError::Contradiction { status },
            CallError::Unwritable(source) => HubError::Unwritable(source),
        }
    }
}

fn version_tag(seen: u64) -> Result<HeaderValue, HubError> {
    HeaderValue::from_str(&format!("\"{seen}\"")).map_err(|_| HubError::Token)
}

fn mutation(call: Call<'_>) -> Call<'_> {
    call.idempotency_key(&Uuid::new_v4().to_string())
}
