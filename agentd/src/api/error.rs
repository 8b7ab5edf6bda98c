//! Errors of the local API, and their wire form.

use axum::response::{IntoResponse, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::IdError;
use holdfast_protocol::json::{JsonError, chain};
use net::rate::TooOften;
use net::server::Refused;
use net::server::body::BodyError;

use crate::operation::window;
use crate::port::artifacts::ArtifactError;
use crate::port::store::StoreError;
use crate::port::store::request::AskError;

/// Why a guest's request is refused.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No token, an unknown one, or one that comes from another address than its guest's. The answer never says which.
    #[error("a valid token of this guest is needed: the controller must use the one in its bootstrap.json")]
    Unauthenticated,
    /// The token's guest is frozen.
    #[error("this guest's access is frozen: two held its claim or its token, and an operator must look")]
    Frozen,
    /// The document does not name the guest, and it was not observed yet: the address it must call from is unknown.
    #[error("the agent has not seen this guest's address yet: ask again in a moment")]
    NotSeen,
    /// The claim is unknown, too old, or comes from another address than its guest's. The answer never says which.
    #[error("the claim is not accepted: it must be used within ten minutes, from the guest's own address")]
    ClaimRefused,
    /// Two redeemers of one claim.
    #[error("the claim was redeemed before: both holders are frozen until an operator looks")]
    ClaimTwice,
    /// Another guest's thing.
    #[error("this is another guest's: a token speaks for its own guest alone")]
    NotYours,
    /// No such thing.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// No such path.
    #[error("there is no such call: GET /v1/openapi.json lists them")]
    NoSuchCall,
    /// Such a path, and not with this method.
    #[error("this call is not made by this method: `Allow` names those that it takes")]
    OtherMethod,
    /// Not for the address that was called, or in the form that clients send to proxies.
    #[error("this agent answers at its own address alone: call the endpoint in bootstrap.json")]
    Misdirected,
    /// The document does not name the guest any more.
    #[error("the desired document no longer names this guest; it runs on, and an operator decides")]
    Unmanaged,
    /// A body that is not of the form.
    #[error("the body is refused")]
    Body(#[source] JsonError),
    /// A body that is too large, or never ended.
    #[error(transparent)]
    Unread(#[from] BodyError),
    /// A path or query part that is not of the form.
    #[error("{what} is refused: {rule}")]
    Part {
        what: &'static str,
        /// What is expected.
        rule: &'static str,
    },
    /// A query where none is taken.
    #[error("the query is refused: this call takes none")]
    NoQuery,
    /// A guest reports a restore test.
    #[error(
        "only the scratch guest of a restore test reports one, at its own door: this guest is the real one"
    )]
    NoTest,
    /// Too many requests.
    #[error("too many requests: wait {} s", .0.retry_after_s)]
    TooOften(TooOften),
    /// Work that is not taken.
    #[error(transparent)]
    NotTaken(AskError),
    /// It is too late to cancel.
    #[error("it is under way and can no longer be cancelled: follow it to its end")]
    UnderWay,
    /// It is too late to cancel.
    #[error("it has ended already")]
    Over,
    /// Something was said of a window that may not be said there.
    #[error(transparent)]
    Window(window::Refused),
    /// Something was said of a window that waits for its lane.
    #[error("this window was not granted yet: stop nothing, and wait for `granted`")]
    NotGranted,
    /// No name for a snapshot.
    #[error("the agent cannot make a name for the snapshot")]
    MadeName(#[source] IdError),
    #[error("the agent cannot answer now")]
    Store(#[from] StoreError),
    /// No randomness for a token.
    #[error("the agent has no randomness to make a token of")]
    Randomness(#[source] getrandom::Error),
    /// Bytes that are not on the disk as they were.
    #[error("the agent does not have these bytes as it should")]
    Artifact(#[source] ArtifactError),
}

impl ApiError {
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unauthenticated => ErrorCode::Unauthenticated,
            Self::Frozen => ErrorCode::Frozen,
            Self::ClaimRefused => ErrorCode::ClaimRefused,
            Self::ClaimTwice => ErrorCode::ClaimTwice,
            Self::NotYours => ErrorCode::NotYours,
            Self::NoTest => ErrorCode::Forbidden,
            Self::NotFound(_) | Self::NoSuchCall | Self::Unmanaged => ErrorCode::NotFound,
            Self::OtherMethod => ErrorCode::MethodNotAllowed,
            Self::Misdirected => ErrorCode::Misdirected,
            Self::Body(error) => error.code(),
            Self::Unread(error) => error.code(),
            Self::Part { .. } | Self::NoQuery => ErrorCode::Range,
            Self::TooOften(_) => ErrorCode::RateLimited,
            Self::NotTaken(why) => not_taken(why),
            Self::UnderWay | Self::Over => ErrorCode::UnderWay,
            Self::Window(window::Refused::Over) => ErrorCode::WindowOver,
            Self::Window(window::Refused::Begun) => ErrorCode::UnderWay,
            Self::Window(window::Refused::Otherwise) => ErrorCode::IdempotencyMismatch,
            Self::NotGranted => ErrorCode::Locked,
            Self::Store(StoreError::Closed) => ErrorCode::Unavailable,
            Self::Store(StoreError::Refusing(refusal)) => refusal.code(),
            Self::Artifact(_) | Self::NotSeen => ErrorCode::Unavailable,
            Self::Store(_) | Self::MadeName(_) | Self::Randomness(_) => ErrorCode::Internal,
        }
    }

    /// The text that is sent. For our own faults only the first sentence is sent; the log has the rest.
    #[must_use]
    pub fn problem(&self) -> ErrorBody {
        match self {
            Self::Body(error) => {
                let problem = ErrorBody::new(error.code(), chain(self));
                match error.path() {
                    Some(path) => problem.with("path", path),
                    None => problem,
                }
            }
            // The guest cannot fix it, but the reader of its log should know whom to call.
            Self::Store(StoreError::Refusing(refusal)) => refusal.problem(),
            other => ErrorBody::new(other.code(), other.to_string()),
        }
    }
}

const fn not_taken(why: &AskError) -> ErrorCode {
    match why {
        AskError::Mismatch => ErrorCode::IdempotencyMismatch,
        AskError::Busy { .. } => ErrorCode::Busy,
        AskError::Lane(_) => ErrorCode::Locked,
        AskError::NoSuchSnapshot(_) => ErrorCode::NotFound,
        AskError::NameTaken(_) => ErrorCode::NameTaken,
        AskError::Quota | AskError::Backups(_) | AskError::Daily(_) => ErrorCode::Quota,
        AskError::Store(_) => ErrorCode::Internal,
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Store(error) => Self::Store(error),
            other => Self::NotTaken(other),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let is_our_fault = self.code() == ErrorCode::Internal || matches!(self, Self::Artifact(_));
        let retry_after_s = match &self {
            Self::TooOften(often) => Some(often.retry_after_s),
            Self::NotTaken(AskError::Busy { retry_after_s }) => Some(*retry_after_s),
            _ => None,
        };
        let cause = is_our_fault.then(|| chain(&self));
        Refused { problem: self.problem(), cause, retry_after_s }.into_response()
    }
}
