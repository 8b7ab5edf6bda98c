//! Client of the operator API: one pinned hub, bounded answers, safe retries.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::{Envelope, ErrorBody, IDEMPOTENCY_KEY_HEADER, REQUEST_ID_HEADER};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::RequestId;
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::operator::{DesiredPut, DesiredVersion, Page};
use holdfast_protocol::secret::Secret;
use holdfast_tls::{Refusal, TlsError, Trust};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_MATCH};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use zeroize::Zeroizing;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer is a page of twenty documents of 1 MiB, whose quotes and line ends take two bytes each.
const ANSWER_BYTES_MAX: usize = 48 * 1024 * 1024;

/// For lists that are wanted whole; [`PAGES_MAX`] bounds them.
pub const WHOLE: usize = usize::MAX;

/// A list of more pages is asked for by another question.
const PAGES_MAX: usize = 500;

/// How often a request is sent when the hub does not answer, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(700);

/// Why the hub could not be asked, or would not answer.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// Not a URL of a hub.
    #[error("{url:?} is not the URL of a hub: it looks like https://hub.example:8440")]
    Url { url: String },
    /// A token that cannot stand in a header.
    #[error("the token has characters that no hub issues: copy it whole")]
    Token,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
    /// Somebody else answers. Nothing was sent.
    #[error("the server at {url} is not the hub you logged in to")]
    OtherServer {
        url: String,
        /// What was shown.
        #[source]
        refusal: Refusal,
    },
    /// Nobody answers, or too slowly.
    #[error("the hub at {url} does not answer: check the address, and `systemctl status hubd` there")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    /// The hub says no.
    #[error("{problem}{}{} (request {request_id})", details(problem), next_step(problem.code))]
    Refused {
        problem: ErrorBody,
        /// Under which it finds the request in its log.
        request_id: RequestId,
    },
    /// The answer is longer than any we expect.
    #[error("the hub's answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The answer is not in the form agreed on.
    #[error(
        "the hub's answer (status {status}) is not of this version: use holdfast of the hub's release line"
    )]
    Answer {
        /// The HTTP status.
        status: StatusCode,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// An envelope with neither data nor error.
    #[error("the hub's answer (status {status}) is empty")]
    Empty {
        /// The HTTP status.
        status: StatusCode,
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

pub struct Hub {
    http: Client,
    base: Url,
    bearer: HeaderValue,
}

impl Hub {
    /// Prepares to speak to a hub. Nothing is sent yet.
    pub fn new(url: &str, trust: &Trust, token: &Secret) -> Result<Self, HubError> {
        let base = Url::parse(url).ok().filter(is_hub);
        let base = base.ok_or_else(|| HubError::Url { url: url.chars().take(200).collect() })?;
        let text = Zeroizing::new(format!("Bearer {}", token.expose()));
        let mut bearer = HeaderValue::from_str(&text).map_err(|_| HubError::Token)?;
        bearer.set_sensitive(true);
        let http = Client::builder()
            .tls_backend_preconfigured(holdfast_tls::client(trust)?)
            .https_only(true)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(HubError::Client)?;
        Ok(Self { http, base, bearer })
    }

    /// Asks for one thing.
    pub async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, HubError> {
        self.ask(self.request(Method::GET, self.url(path))).await
    }

    /// Asks for one thing that may not be there.
    pub async fn find<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>, HubError> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(HubError::Refused { problem, .. }) if problem.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks for a list, page by page, up to `most` items.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<T>, HubError> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut url = self.url(path);
            if !query.is_empty() || cursor.is_some() {
                let cursor = cursor.as_deref().map(|cursor| ("cursor", cursor));
                url.query_pairs_mut().extend_pairs(query.iter().copied().chain(cursor));
            }
            let page: Page<T> = self.ask(self.request(Method::GET, url)).await?;
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

    /// Changes something. With the same key, a repeat is known as one.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, HubError> {
        let request = self.request(Method::POST, self.url(path));
        self.ask(with_json(mutation(request)?, body)?).await
    }

    /// Puts a desired document over the one of generation `seen`.
    pub async fn put_desired(
        &self,
        host: &str,
        seen: Generation,
        put: &DesiredPut,
    ) -> Result<DesiredVersion, HubError> {
        let url = self.url(&["v1", "hosts", host, "desired"]);
        let request = self.request(Method::PUT, url).header(IF_MATCH, format!("\"{seen}\""));
        self.ask(with_json(mutation(request)?, put)?).await
    }

    /// Segments are escaped, so that a name cannot reach another path.
    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http
            .request(method, url)
            .header(AUTHORIZATION, self.bearer.clone())
            .header(REQUEST_ID_HEADER, Uuid::new_v4().to_string())
    }

    /// Sends, again when nobody answers: what changes something carries a key, so a repeat has no second effect.
    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, HubError> {
        let mut tries = 1;
        loop {
            let Some(attempt) = request.try_clone() else { return self.once(request).await };
            match self.once(attempt).await {
                Err(HubError::Unreachable { .. }) if tries < TRIES => tries += 1,
                other => return other,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, HubError> {
        let response = request.send().await.map_err(|error| self.away(error))?;
        let status = response.status();
        let body = self.body(response).await?;
        let envelope: Envelope<T> = json::parse("the answer", &body, ANSWER_BYTES_MAX)
            .map_err(|source| HubError::Answer { status, source })?;
        match (envelope.data, envelope.error) {
            (Some(data), None) if status.is_success() => Ok(data),
            (_, Some(problem)) => Err(HubError::Refused { problem, request_id: envelope.request_id }),
            _ => Err(HubError::Empty { status }),
        }
    }

    async fn body(&self, mut response: Response) -> Result<Zeroizing<Vec<u8>>, HubError> {
        let mut body = Zeroizing::new(Vec::with_capacity(16 * 1024));
        while let Some(chunk) = response.chunk().await.map_err(|error| self.away(error))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(HubError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn away(&self, error: reqwest::Error) -> HubError {
        let url = self.base.as_str().trim_end_matches('/').to_owned();
        match holdfast_tls::refusal(&error) {
            Some(refusal) => HubError::OtherServer { url, refusal: refusal.clone() },
            None => HubError::Unreachable { url, source: error.without_url() },
        }
    }
}

fn is_hub(url: &Url) -> bool {
    url.scheme() == "https"
        && url.has_host()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

fn mutation(request: RequestBuilder) -> Result<RequestBuilder, HubError> {
    let key = HeaderValue::from_str(&Uuid::new_v4().to_string()).map_err(|_| HubError::Token)?;
    Ok(request.header(IDEMPOTENCY_KEY_HEADER, key))
}

fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, HubError> {
    let bytes = serde_json::to_vec(body).map_err(HubError::Unwritable)?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(bytes))
}
