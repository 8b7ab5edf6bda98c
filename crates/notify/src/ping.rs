//! Pings of an external watcher, in the form of healthchecks.
//!
//! A watcher raises the alarm when pings stay away, so it hears of a machine that is gone. `URL` is a success,
//! `URL/start` a start, `URL/fail` a failure; the body is text for an operator.

use url::Url;

use crate::http::{HttpAnswer, HttpRequest, Method};
use crate::text::one_line;
use crate::url::SecretUrl;

/// The most characters of a body.
const TEXT_CHARS_MAX: usize = 1000;

/// What a ping says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ping {
    /// The program has started.
    Start,
    /// It works.
    Success,
    /// It runs, and does not work.
    Fail {
        /// Why.
        why: String,
    },
}

impl Ping {
    /// The request.
    #[must_use]
    pub fn request(&self, url: &SecretUrl) -> HttpRequest {
        let (part, text) = match self {
            Self::Start => (Some("start"), ""),
            Self::Success => (None, ""),
            Self::Fail { why } => (Some("fail"), why.as_str()),
        };
        let body = one_line(text, TEXT_CHARS_MAX).into_bytes();
        HttpRequest { method: Method::Post, url: below(url, part), headers: Vec::new(), body }
    }

    /// Whether the watcher has it.
    #[must_use]
    pub const fn is_taken(answer: &HttpAnswer) -> bool {
        matches!(answer.status, 200..=299)
    }
}

/// The URL itself, or a path below it.
fn below(url: &SecretUrl, part: Option<&str>) -> SecretUrl {
    let Some(part) = part else { return url.clone() };
    // It was parsed when it was read.
    let Ok(mut parsed) = Url::parse(url.expose()) else { return url.clone() };
    if let Ok(mut path) = parsed.path_segments_mut() {
        path.pop_if_empty().push(part);
    }
    parsed.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_protocol::secret::Secret;

    #[test]
    fn each_ping_has_its_path() {
        let url = |text: &str| SecretUrl::try_from(Secret::new(text.to_owned())).unwrap();
        let fail = Ping::Fail { why: "the database\nis full".to_owned() };
        for (given, ping, wanted) in [
            ("https://hc.example/ping/a1", Ping::Success, "https://hc.example/ping/a1"),
            ("https://hc.example/ping/a1", Ping::Start, "https://hc.example/ping/a1/start"),
            ("https://hc.example/ping/a1/", fail.clone(), "https://hc.example/ping/a1/fail"),
            ("https://hc.example/ping/a1?rid=7", Ping::Start, "https://hc.example/ping/a1/start?rid=7"),
        ] {
            assert_eq!(ping.request(&url(given)).url.expose(), wanted);
        }
        assert_eq!(fail.request(&url("https://hc.example/x")).body, b"the database is full");
    }
}
