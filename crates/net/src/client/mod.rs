//! Calls to one pinned server, with answers opened from their envelope.
//!
//! Input: the server's URL, a [`rustls::ClientConfig`] that says whom to trust, [`Settings`]. Output: the typed answer
//! of a call, or a [`CallError`] whose kind says what happened. The library's own proxies, redirects and retries are
//! off; every answer has a size limit and every call a time limit. Deliberately absent: retries. The caller knows
//! whether a repeat is safe.

mod answer;
mod error;

use std::net::IpAddr;
use std::time::Duration;

pub use self::answer::Answer;
pub use self::error::{CallError, SetupError};
use holdfast_protocol::envelope::{CORRELATION_ID_HEADER, IDEMPOTENCY_KEY_HEADER, REQUEST_ID_HEADER};
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::secret::Secret;
pub use reqwest::Method;
pub use reqwest::header;
use reqwest::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, Url, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use zeroize::Zeroizing;

/// A server that does not accept a connection in ten seconds counts as unreachable.
const CONNECT_SECONDS_MAX: u64 = 10;

/// A connection that died without a sign is found by the kernel within three of these.
const KEEPALIVE_SECONDS: u64 = 15;

/// The settings that differ between the programs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The program and its version.
    pub user_agent: &'static str,
    /// The longest answer that is read.
    pub answer_bytes_max: usize,
    /// The default time limit of a call.
    pub within: Duration,
    /// The own address to call from, where it matters.
    pub source_address: Option<IpAddr>,
}

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    settings: Settings,
    correlation: Option<CorrelationId>,
}

impl Client {
    /// Prepares to call a server. Nothing is sent yet.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn new(url: &str, tls: rustls::ClientConfig, settings: Settings) -> Result<Self, SetupError> {
        let base = Url::parse(url).ok().filter(is_base).ok_or(SetupError::Url)?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(true)
            .http1_only()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX))
            .tcp_keepalive(Duration::from_secs(KEEPALIVE_SECONDS))
            .tcp_keepalive_interval(Duration::from_secs(KEEPALIVE_SECONDS))
            .tcp_keepalive_retries(2)
            .pool_max_idle_per_host(1)
            .local_address(settings.source_address)
            .user_agent(settings.user_agent)
            .build()
            .map_err(SetupError::Client)?;
        Ok(Self { http, base, settings, correlation: None })
    }

    /// The same client, with one correlation id for all its calls. Without one, the id of each request serves.
    #[must_use]
    pub const fn with_correlation(mut self, id: CorrelationId) -> Self {
        self.correlation = Some(id);
        self
    }

    /// The server's URL as people write it.
    #[must_use]
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The path of the server's URL: `/` where it has none.
    #[must_use]
    pub fn path(&self) -> &str {
        self.base.path()
    }

    /// A call of a path below the server's URL, with its query where it has one.
    #[must_use]
    pub fn call(&self, method: Method, path: &str) -> Call<'_> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        self.of(method, url)
    }

    /// The same, of segments: each is escaped, so that none can reach another path.
    #[must_use]
    pub fn call_segments(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> Call<'_> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query.iter().copied());
        }
        self.of(method, url)
    }

    fn of(&self, method: Method, url: Url) -> Call<'_> {
        let mut request = self
            .http
            .request(method, url)
            .timeout(self.settings.within)
            .header(REQUEST_ID_HEADER, Uuid::now_v7().to_string());
        if let Some(id) = self.correlation {
            request = request.header(CORRELATION_ID_HEADER, id.to_string());
        }
        Call { client: self, request }
    }
}

/// One call, until it is sent.
#[derive(Debug)]
pub struct Call<'c> {
    client: &'c Client,
    request: RequestBuilder,
}

impl Call<'_> {
    /// The caller's credential. [`bearer`] makes the value.
    #[must_use]
    pub fn bearer(self, token: HeaderValue) -> Self {
        self.header(AUTHORIZATION, token)
    }

    /// The key by which a repeat is known as one.
    #[must_use]
    pub fn idempotency_key(mut self, key: &str) -> Self {
        self.request = self.request.header(IDEMPOTENCY_KEY_HEADER, key);
        self
    }

    /// One more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// A query whose values are escaped.
    #[must_use]
    pub fn query(mut self, query: &[(&str, &str)]) -> Self {
        self.request = self.request.query(query);
        self
    }

    /// Says that nothing follows for minutes, so that the server need not keep the connection.
    #[must_use]
    pub fn last(self) -> Self {
        self.header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// Another time than the client's usual one.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.request = self.request.timeout(time);
        self
    }

    /// The document to send.
    ///
    /// # Errors
    /// [`CallError::Unwritable`].
    pub fn json(self, body: &impl Serialize) -> Result<Self, CallError> {
        Ok(self.body(serde_json::to_vec(body).map_err(CallError::Unwritable)?))
    }

    /// The bytes of the document to send.
    #[must_use]
    pub fn body(mut self, json: Vec<u8>) -> Self {
        self.request = self.request.header(CONTENT_TYPE, "application/json").body(json);
        self
    }

    /// Bytes to send that are no document.
    #[must_use]
    pub fn octets(mut self, bytes: Vec<u8>) -> Self {
        self.request = self.request.header(CONTENT_TYPE, "application/octet-stream").body(bytes);
        self
    }

    /// Sends, and opens the answer.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn send<T: DeserializeOwned>(self) -> Result<T, CallError> {
        let max = self.client.settings.answer_bytes_max;
        self.send_raw().await?.open(max)
    }

    /// Sends, and returns the answer unchanged.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn send_raw(self) -> Result<Answer, CallError> {
        let max = self.client.settings.answer_bytes_max;
        let response = self.request.send().await.map_err(CallError::of_transport)?;
        read(response, max).await
    }

    /// Sends, and passes on the answer's bytes piece by piece, until `take` needs no more.
    ///
    /// # Errors
    /// [`CallError`]; the error of `take` is inside.
    pub async fn stream<E>(
        self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, CallError> {
        let max = self.client.settings.answer_bytes_max;
        let mut response = self.request.send().await.map_err(CallError::of_transport)?;
        let status = response.status();
        if !status.is_success() {
            return match read(response, max).await?.open::<serde::de::IgnoredAny>(max) {
                // A failure status cannot carry data or a document.
                Ok(_) => Err(CallError::Contradiction { status: status.as_u16() }),
                Err(error) => Err(error),
            };
        }
        while let Some(piece) = response.chunk().await.map_err(CallError::of_transport)? {
            if let Err(enough) = take(&piece) {
                return Ok(Err(enough));
            }
        }
        Ok(Ok(()))
    }

    /// The same call once more.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        Some(Self { client: self.client, request: self.request.try_clone()? })
    }
}

async fn read(mut response: Response, max: usize) -> Result<Answer, CallError> {
    let status = response.status().as_u16();
    // An answer with a secret fits into this, so it is wiped as a whole. A longer answer grows, and leaves copies behind in
    // programs without an allocator that wipes.
    let mut body = Zeroizing::new(Vec::with_capacity(16 * 1024));
    while let Some(chunk) = response.chunk().await.map_err(CallError::of_transport)? {
        if body.len() + chunk.len() > max {
            return Err(CallError::TooLong { max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer::new(status, body))
}

/// The header value of a token, marked sensitive, so that no layer prints it. None for one that is not allowed in a
/// header.
#[must_use]
pub fn bearer(token: &Secret) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose()));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn is_base(url: &Url) -> bool {
    url.scheme() == "https"
        && url.has_host()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

#[cfg(test)]
mod tests;
