//! Errors of deliveries, and whether a repeat is worth it.

use std::io;
use std::time::Duration;

use crate::egress::EgressError;
use crate::reason::Reason;
use crate::text::one_line;

/// Why a message was not delivered. No variant holds a URL, a token or a password.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The settings or the name's address lead to where deliveries must not go. Nothing was sent.
    #[error("the receiver's address is not allowed; nothing was sent")]
    Egress(#[source] EgressError),
    #[error("the receiver's name cannot be resolved")]
    Lookup(#[source] io::Error),
    #[error("the system has no CA certificates to check the receiver by: install ca-certificates")]
    NoRoots,
    #[error("no TLS settings can be made")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request cannot be written; does not happen with our types.
    #[error("the request cannot be written: this is a fault of this program")]
    Unwritable,
    /// The receiver may have the message.
    #[error("the receiver did not answer within {} seconds", within.as_secs())]
    Timeout { within: Duration },
    /// No connection, or one that broke. The receiver may have the message.
    #[error("the connection to the receiver failed")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the receiver asks for a pause of {} seconds ({status})", after.as_secs())]
    Busy { status: u16, after: Duration },
    #[error("the receiver is not able to take the message now ({status}): {said}")]
    Unavailable {
        /// The HTTP status or the SMTP reply code.
        status: u16,
        /// The beginning of its answer.
        said: String,
    },
    #[error("the receiver refuses the message ({status}): {reason}: {said}")]
    Refused {
        reason: Reason,
        /// The HTTP status or the SMTP reply code.
        status: u16,
        /// The beginning of its answer.
        said: String,
    },
}

/// What to do after a failed delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Try again with the usual back-off.
    BackOff,
    /// Try again, and not before this has passed.
    After(Duration),
    /// A repeat fails, too, until an operator changes something.
    Never,
}

impl DeliveryError {
    /// Whether and when a repeat is worth it.
    #[must_use]
    pub const fn retry(&self) -> RetryDecision {
        match self {
            Self::Busy { after, .. } => RetryDecision::After(*after),
            Self::Unwritable | Self::Refused { .. } => RetryDecision::Never,
            // A name may lead elsewhere later; until then a repeat connects to nothing.
            Self::Egress(_)
            | Self::Lookup(_)
            | Self::NoRoots
            | Self::Tls(_)
            | Self::Timeout { .. }
            | Self::Connection(_)
            | Self::Unavailable { .. } => RetryDecision::BackOff,
        }
    }
}

/// The most characters of an answer that an error quotes.
const SAID_CHARS_MAX: usize = 200;
/// Shorter parts of a secret are ordinary words too often.
const SECRET_CHARS_MIN: usize = 8;

/// The beginning of an answer, without the secrets that the request had. A receiver may repeat them.
pub(super) fn quote<'s>(answer: &str, secrets: impl IntoIterator<Item = &'s str>) -> String {
    let parts = secrets.into_iter().flat_map(|secret| {
        let parts = secret.split(|c: char| c.is_whitespace() || "/?&=:".contains(c));
        std::iter::once(secret).chain(parts)
    });
    let mut parts: Vec<&str> = parts.filter(|part| part.len() >= SECRET_CHARS_MIN).collect();
    // The longest first: a part inside of it would leave the rest.
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let hidden = parts.into_iter().fold(answer.to_owned(), |text, part| text.replace(part, "…"));
    one_line(&hidden, SAID_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_quoted_without_secrets() {
        let secrets =
            ["/services/T0AAAAAAA/B0BBBBBBB/cccccccccccc", "Bearer tk_0123456789", "123456:ABCDEFGHIJKL"];
        for (answer, quoted) in [
            ("no_service", "no_service"),
            ("bad path /services/T0AAAAAAA/B0BBBBBBB/cccccccccccc!", "bad path …!"),
            ("unknown cccccccccccc", "unknown …"),
            ("token tk_0123456789\r\nis old", "token …  is old"),
            ("bot ABCDEFGHIJKL", "bot …"),
        ] {
            assert_eq!(quote(answer, secrets), quoted);
        }
        assert_eq!(quote(&"ü".repeat(300), secrets).chars().count(), SAID_CHARS_MAX);
    }
}
