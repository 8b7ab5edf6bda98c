//! Request bodies: bounded size and time, strict JSON.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::json;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::problem::ApiError;

/// A body of the largest kind comes over a bad line in this time.
const BODY_WAIT: Duration = Duration::from_secs(15);

/// Reads a body of at most `max` bytes.
pub(super) async fn read(what: &'static str, body: Body, max: usize) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(BODY_WAIT, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::new(
            ErrorCode::Size,
            format!("{what} is longer than the {max} bytes that are accepted"),
        )),
        Ok(Err(_)) => Err(ApiError::new(ErrorCode::Syntax, format!("{what} ended before its end"))),
        Err(_) => Err(ApiError::new(
            ErrorCode::Unavailable,
            format!("{what} did not come within {} seconds", BODY_WAIT.as_secs()),
        )),
    }
}

/// Reads a body and the document in it.
pub(super) async fn parse<T: DeserializeOwned>(
    what: &'static str,
    body: Body,
    max: usize,
) -> Result<T, ApiError> {
    Ok(json::parse(what, &read(what, body, max).await?, max)?)
}
