//! One request and one answer, without transport.

/// A request as it came off the wire.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query, still encoded: `/api2/json/version`.
    pub target: String,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of that (lower-case) name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }
}

/// How an answer may be spoilt on its way (armed faults).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spoil {
    /// Sent as it is.
    #[default]
    Nothing,
    /// The connection is dropped without an answer.
    Drop,
    /// Half of the body is sent, then the connection is dropped.
    Cut,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status, which may be one of Proxmox's own (595, 596).
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// `Content-Type`, when there is a body.
    pub content_type: Option<&'static str>,
    /// `Content-Disposition`, for downloads.
    pub disposition: Option<String>,
    pub body: Vec<u8>,
    /// Held back this long (failed logins).
    pub delay_ms: u64,
    /// Spoilt on its way.
    pub spoil: Spoil,
}

/// JSON as the real daemon labels it.
pub const JSON: &str = "application/json;charset=UTF-8";

impl Response {
    /// An answer without a body.
    #[must_use]
    pub fn empty(status: u16, reason: &str) -> Self {
        Self {
            status,
            reason: reason.to_owned(),
            content_type: None,
            disposition: None,
            body: Vec::new(),
            delay_ms: 0,
            spoil: Spoil::Nothing,
        }
    }

    /// An answer with text.
    #[must_use]
    pub fn text(
        status: u16,
        reason: &str,
        content_type: Option<&'static str>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self { content_type, body: body.into(), ..Self::empty(status, reason) }
    }
}
