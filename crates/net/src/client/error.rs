//! Errors of calls, by what happened.

use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::RequestId;
use holdfast_protocol::json::JsonError;
use rustls::AlertDescription;

use crate::tls::{Refusal, TlsError, refusal, tls_error};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Not an https URL of a host alone.
    #[error("not an https URL of a server")]
    Url,
    /// The trust or the client's own certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The HTTP library refuses.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// Why a call has no answer. Each program adds its own message, which names the server and the command to run.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No answer, a connection that broke, or one that took too long.
    #[error("the server does not answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Another server than the pinned one answers. Nothing was sent to it.
    #[error("the server is not the pinned one, and nothing was sent to it")]
    NotPinned(#[source] Refusal),
    /// The server's certificate is expired, for another name, or of another CA. Nothing was sent to it.
    #[error("the server's certificate is not valid, and nothing was sent to it")]
    ServerCertificate(#[source] rustls::Error),
    /// The server does not take the certificate that this client showed.
    #[error("the server does not take this client's certificate")]
    OwnCertificate(#[source] rustls::Error),
    /// The server understood and refused.
    #[error("the server refuses ({status}): {problem}")]
    Refused {
        /// The HTTP status.
        status: u16,
        problem: ErrorBody,
        /// Under which the server finds the request in its log.
        request_id: RequestId,
    },
    /// A redirect; none of our servers sends one.
    #[error("the server answers with a redirect ({status}), which is never followed")]
    Redirect {
        /// The HTTP status.
        status: u16,
    },
    /// The answer is not of the form agreed on.
    #[error("the answer (status {status}) is not of this release line")]
    Answer {
        /// The HTTP status.
        status: u16,
        /// Where it differs.
        #[source]
        source: JsonError,
    },
    /// An envelope with both or neither of data and error, or data with the status of a failure.
    #[error("the answer (status {status}) contradicts itself")]
    Contradiction {
        /// The HTTP status.
        status: u16,
    },
    /// The answer is longer than any that is expected, and was not read on.
    #[error("the answer is longer than {max} bytes and was not read on")]
    TooLong { max: usize },
    /// The request cannot be written as JSON; does not happen with our types.
    #[error("the request cannot be written: this is a fault of this program")]
    Unwritable(#[source] serde_json::Error),
}

impl CallError {
    /// The kind of an error that the HTTP library reports.
    #[must_use]
    pub fn of_transport(error: reqwest::Error) -> Self {
        if let Some(refusal) = refusal(&error) {
            return Self::NotPinned(refusal.clone());
        }
        match tls_error(&error) {
            Some(tls @ rustls::Error::AlertReceived(alert)) if is_about_our_certificate(*alert) => {
                Self::OwnCertificate(tls.clone())
            }
            Some(tls @ rustls::Error::InvalidCertificate(_)) => Self::ServerCertificate(tls.clone()),
            // The program's own message has the URL, and a query may hold data that no log should contain.
            _ => Self::Unreachable(error.without_url().into()),
        }
    }
}

const fn is_about_our_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate
    )
}
