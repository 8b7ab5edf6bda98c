//! Why the hub gave no answer, by who must act.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::JsonError;
use net::client::{CallError, SetupError};
use net::tls::{Refusal, TlsError};

/// Why the hub gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub does not answer, or the connection broke. A retry later is right.
    #[error("the hub at {hub} does not answer: it may be down, or a network or firewall is in the way")]
    Unreachable {
        hub: String,
        #[source]
        source: CallError,
    },
    /// The answer does not come from the hub we trust. Nothing was sent to it.
    #[error("who answers at {hub} is not the hub that was pinned, and nothing was sent to it")]
    NotTheHub {
        hub: String,
        /// The reason, with the certificates that it showed.
        #[source]
        source: Refusal,
    },
    /// A certificate that is expired, for another name, or of another CA.
    #[error(
        "the certificate of the hub at {hub} is not valid: the hub's operator must look at it; is this box's clock right?"
    )]
    Certificate {
        hub: String,
        /// The fault of it.
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
    Contradiction {
        /// The HTTP status.
        status: u16,
    },
    /// An answer without end.
    #[error("the hub's answer is longer than {max} bytes and was not read on")]
    TooLong { max: usize },
    /// Our own certificate or the hub's CA cannot be used.
    #[error("the identity of this agent cannot be used for TLS")]
    Tls(#[source] TlsError),
    /// The request cannot be written as JSON; does not happen with our types.
    #[error("the request to the hub cannot be written: this is a fault of this program")]
    Unwritable(#[source] serde_json::Error),
    /// The client could not be made.
    #[error(
        "{hub:?} is not the URL of a hub, or no client can be made for it: it looks like https://hub.example:8440"
    )]
    Setup {
        hub: String,
        #[source]
        source: SetupError,
    },
}

/// Who can fix an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Time: asking again later is right.
    Wait,
    /// An operator at the hub; asking again sometimes shows whether they did.
    Operator,
}

impl HubError {
    /// The error of a call, with this program's messages.
    #[must_use]
    pub fn of(hub: &str, error: CallError) -> Self {
        let hub = hub.to_owned();
        match error {
            source @ CallError::Unreachable(_) => Self::Unreachable { hub, source },
            CallError::NotPinned(source) => Self::NotTheHub { hub, source },
            CallError::ServerCertificate(source) => Self::Certificate { hub, source },
            CallError::OwnCertificate(source) => Self::OwnCertificate { hub, source },
            CallError::Refused { status, problem, .. } => Self::Refused { status, problem },
            CallError::Redirect { status } => Self::Redirect { hub, status },
            CallError::Answer { status, source } => Self::Answer { status, source },
            CallError::Contradiction { status } => Self::Contradiction { status },
            CallError::TooLong { max } => Self::TooLong { max },
            CallError::Unwritable(source) => Self::Unwritable(source),
        }
    }

    /// Who can fix it.
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
            Self::Redirect { .. } | Self::Answer { .. } | Self::Contradiction { .. } => ErrorCode::Version,
            Self::TooLong { .. } => ErrorCode::Size,
            Self::Setup { .. } | Self::Unwritable(_) => ErrorCode::Internal,
        }
    }
}
