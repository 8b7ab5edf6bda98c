//! Concurrency limits and time-outs of requests.

use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use tokio::sync::Semaphore;

use super::Refused;

/// How long a request may wait for a slot.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// How long a request may take once it has a slot.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// What a caller should wait before it asks again.
const RETRY_AFTER_S: u32 = 5;

/// Runs a request when fewer than the permits of `turns` are under way.
pub async fn in_turn(turns: &Semaphore, request: Request, next: Next) -> Response {
    let Ok(Ok(turn)) = tokio::time::timeout(TURN_WAIT, turns.acquire()).await else {
        return later(ErrorCode::Busy, "too many requests wait already: ask again a little later");
    };
    let answer = tokio::time::timeout(ANSWER_WAIT, next.run(request)).await;
    drop(turn);
    answer.unwrap_or_else(|_| {
        let text = "the answer took too long: ask again; a repeat with the same Idempotency-Key is safe";
        later(ErrorCode::Unavailable, text)
    })
}

fn later(code: ErrorCode, text: &'static str) -> Response {
    let refused = Refused { retry_after_s: Some(RETRY_AFTER_S), ..Refused::new(ErrorBody::new(code, text)) };
    refused.into_response()
}
