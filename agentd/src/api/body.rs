//! A bounded body, read within a bounded time, strictly.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use holdfast_protocol::local::BODY_BYTES_MAX;
use holdfast_protocol::strict;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// 16 KiB from the same box arrive at once; a body that takes longer is a held-open connection.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

/// Reads one JSON document.
pub(super) async fn read<T: DeserializeOwned>(what: &'static str, body: Body) -> Result<T, ApiError> {
    parse(what, &bytes(body).await?)
}

/// One JSON document.
pub(super) fn parse<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, ApiError> {
    strict::parse(what, bytes, BODY_BYTES_MAX).map_err(ApiError::Body)
}

/// Reads the bytes.
pub(super) async fn bytes(body: Body) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(ARRIVAL_MAX, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => {
            let too_large = std::error::Error::source(&error)
                .is_some_and(|source| source.is::<http_body_util::LengthLimitError>());
            Err(if too_large { ApiError::TooLarge } else { ApiError::SlowBody })
        }
        Err(_) => Err(ApiError::SlowBody),
    }
}
