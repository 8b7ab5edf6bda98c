//! Request bodies of bounded size, read within a bounded time.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use holdfast_protocol::code::ErrorCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is too long.
    #[error("{what} is longer than the {max} bytes that are accepted")]
    TooLong { what: &'static str, max: usize },
    /// The connection ended, or its length is not what was announced.
    #[error("{what} ended before its end")]
    CutOff { what: &'static str },
    /// It came too slowly.
    #[error("{what} did not come within {seconds} seconds")]
    Slow {
        what: &'static str,
        /// How long was waited.
        seconds: u64,
    },
}

impl BodyError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TooLong { .. } => ErrorCode::Size,
            Self::CutOff { .. } => ErrorCode::Syntax,
            Self::Slow { .. } => ErrorCode::Unavailable,
        }
    }
}

/// Reads a body of at most `max` bytes.
///
/// # Errors
/// [`BodyError`].
pub async fn read(what: &'static str, body: Body, max: usize, within: Duration) -> Result<Bytes, BodyError> {
    match tokio::time::timeout(within, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLong { what, max }),
        Ok(Err(_)) => Err(BodyError::CutOff { what }),
        Err(_) => Err(BodyError::Slow { what, seconds: within.as_secs() }),
    }
}
