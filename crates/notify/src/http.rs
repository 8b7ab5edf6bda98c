//! HTTP requests and answers as data.

use std::fmt;

use holdfast_protocol::secret::Secret;
use serde_json::Value;
use url::Url;

use crate::url::SecretUrl;

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
}

/// A request to a receiver. URL and headers may hold secrets and are not shown in `Debug`.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: Method,
    pub url: SecretUrl,
    /// Lower-case names and their values, each name once. The content type is JSON and is not among them.
    pub headers: Vec<(&'static str, Secret)>,
    /// JSON.
    pub body: Vec<u8>,
}

impl HttpRequest {
    pub(crate) fn json(method: Method, url: impl Into<SecretUrl>, body: &Value) -> Self {
        Self { method, url: url.into(), headers: Vec::new(), body: body.to_string().into_bytes() }
    }

    pub(crate) fn get(url: impl Into<SecretUrl>) -> Self {
        Self { method: Method::Get, url: url.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, Secret::new(value.into())));
        self
    }

    pub(crate) fn with_bearer(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.expose())
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = Url::parse(self.url.expose()).map(|url| url.origin().ascii_serialization());
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("origin", &origin.unwrap_or_default())
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// The parts of an answer that a verdict needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    pub status: u16,
    /// The header of that name.
    pub retry_after: Option<String>,
    /// The first bytes of the body, at most [`ANSWER_BYTES_MAX`].
    pub body: Vec<u8>,
}

/// The most bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024;

impl HttpAnswer {
    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_no_secret() {
        let url = Url::parse("https://hooks.example/services/hunter2?sig=hunter2").unwrap();
        let request = HttpRequest::json(Method::Post, url, &Value::Null).with_bearer("hunter2");
        let shown = format!("{request:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("https://hooks.example") && shown.contains("authorization"), "{shown}");
    }
}
