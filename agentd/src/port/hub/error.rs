//! Why the hub gave no answer, by who must act.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::JsonError;
use holdfast_tls::{Refusal, TlsError};
use rustls::AlertDescription;

/// Why the hub gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// Nobody answers there, or the line broke. Asking again later is right.
    #[error("the hub at {hub} does not answer: it may be down, or a network or firewall is in the way")]
    Unreachable {
        hub: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody answers, but not the hub we trust. Nothing was sent to it.
    #[error("who answers at {hub} is not the hub that was pinned, and nothing was sent to it")]
    NotTheHub {
        hub: String,
        /// What it showed.
        #[source]
        source: Refusal,
    },
    /// A certificate that is expired, for another name, or of another CA.
    #[error(
        "the certificate of the hub at {hub} is not valid: the hub's operator must look at it; is this box's clock right?"
    )]
    Certificate {
        hub: String,
        /// What is wrong with it.
        #[source]
        source: rustls::Error,
    },
    /// The hub does not take this agent's certificate.
    #[error(
        "the hub at {hub} does not take this agent's certificate: an operator must look whether the host was revoked"
    )]
    OwnCertificate {
        hub: String,
        #[source]
        source: rustls::Error,
    },
    /// The hub understood and refused.
    #[error("the hub refuses ({status}): {problem}")]
    Refused {
        /// The HTTP status.
        status: u16,
        problem: ErrorBody,
    },
    /// A redirect; a hub of ours sends none.
    #[error(
        "{hub} answers with a redirect ({status}), which is never followed: enrol with the hub's own address"
    )]
    Redirect {
        hub: String,
        /// The HTTP status.
        status: u16,
    },
    /// An answer that is not of our form.
    #[error("what answers (status {status}) does not speak as a hub of this release line does")]
    Answer {
        /// The HTTP status.
        status: u16,
        /// Where it differs.
        #[source]
        source: JsonError,
    },
    /// A frame with both or neither of data and error, or data with the status of a failure.
    #[error("the hub's answer (status {status}) contradicts itself")]
    Frame {
        /// The HTTP status.
        status: u16,
    },
    /// An answer without end.
    #[error("the hub's answer is longer than {max} bytes and was not read on")]
    TooLong { max: usize },
    /// Our own certificate or the hub's CA cannot be used.
    #[error("the identity of this agent cannot be used for TLS")]
    Tls(#[source] TlsError),
    /// What was to be sent is no JSON; does not happen with what is sent.
    #[error("the request to the hub cannot be written: this is a fault of this program")]
    Unwritable(#[source] serde_json::Error),
    /// The client could not be made.
    #[error("the client for the hub cannot be made")]
    Setup(#[source] reqwest::Error),
}

/// Who can do something about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Time: asking again later is right.
    Wait,
    /// An operator at the hub; asking again sometimes shows whether they did.
    Operator,
}

impl HubError {
    pub(super) fn of_transport(hub: &str, source: reqwest::Error) -> Self {
        let hub = hub.to_owned();
        if let Some(refusal) = holdfast_tls::refusal(&source) {
            return Self::NotTheHub { hub, source: refusal.clone() };
        }
        match tls_error(&source) {
            Some(tls @ rustls::Error::AlertReceived(alert)) if is_about_our_certificate(*alert) => {
                Self::OwnCertificate { hub, source: tls.clone() }
            }
            Some(tls @ rustls::Error::InvalidCertificate(_)) => {
                Self::Certificate { hub, source: tls.clone() }
            }
            _ => Self::Unreachable { hub, source: source.into() },
        }
    }

    /// Who can do something about it.
    #[must_use]
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable { .. } => Remedy::Wait,
            Self::Refused { problem, .. } => match problem.code {
                ErrorCode::Busy | ErrorCode::RateLimited | ErrorCode::Unavailable | ErrorCode::Internal => {
                    Remedy::Wait
                }
                _ => Remedy::Operator,
            },
            _ => Remedy::Operator,
        }
    }

    /// The stable code under which this agent reports it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } => ErrorCode::Unavailable,
            Self::NotTheHub { .. } | Self::Certificate { .. } => ErrorCode::PinMismatch,
            Self::OwnCertificate { .. } | Self::Tls(_) => ErrorCode::Certificate,
            Self::Refused { problem, .. } => problem.code,
            Self::Redirect { .. } | Self::Answer { .. } | Self::Frame { .. } => ErrorCode::Version,
            Self::TooLong { .. } => ErrorCode::Size,
            Self::Setup(_) | Self::Unwritable(_) => ErrorCode::Internal,
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

/// The TLS error inside, however deep the HTTP library put it.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    // Sixteen layers are four times what is put around it.
    for _ in 0..16 {
        let error = next?;
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls);
        }
        let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match carried {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    None
}
