//! Request bodies: bounded size and time, strict JSON.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use holdfast_protocol::json;
use serde::de::DeserializeOwned;
use zeroize::Zeroize as _;

use super::problem::ApiError;

/// A body of the largest kind comes over a bad line in this time.
const BODY_WAIT: Duration = Duration::from_secs(15);

/// Reads a body of at most `max` bytes.
pub(super) async fn read(what: &'static str, body: Body, max: usize) -> Result<Bytes, ApiError> {
    Ok(net::server::body::read(what, body, max, BODY_WAIT).await?)
}

/// Reads a body and the document in it.
pub(super) async fn parse<T: DeserializeOwned>(
    what: &'static str,
    body: Body,
    max: usize,
) -> Result<T, ApiError> {
    Ok(json::parse(what, &read(what, body, max).await?, max)?)
}

/// The same for a document with a secret: the bytes are wiped after it is read.
pub(super) async fn parse_secret<T: DeserializeOwned>(
    what: &'static str,
    body: Body,
    max: usize,
) -> Result<T, ApiError> {
    let bytes = read(what, body, max).await?;
    let parsed = json::parse(what, &bytes, max);
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.as_mut().zeroize();
    }
    Ok(parsed?)
}
