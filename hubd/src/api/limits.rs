//! Concurrency limits and time-outs for all calls but check-ins.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use tokio::sync::Semaphore;

use super::Hub;
use super::problem::ApiError;

/// How long a request may wait for its turn.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// How long it may take once it has it.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

pub(super) async fn agents(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    in_turn(&hub.concurrency.agents, request, next).await
}

pub(super) async fn operators(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    in_turn(&hub.concurrency.operators, request, next).await
}

pub(super) async fn strangers(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    in_turn(&hub.concurrency.strangers, request, next).await
}

async fn in_turn(turns: &Semaphore, request: Request, next: Next) -> Response {
    let turn = match tokio::time::timeout(TURN_WAIT, turns.acquire()).await {
        Ok(Ok(turn)) => turn,
        Ok(Err(_)) | Err(_) => {
            return ApiError::new(
                ErrorCode::Busy,
                "too many requests wait already: ask again a little later",
            )
            .into_response();
        }
    };
    let answer = tokio::time::timeout(ANSWER_WAIT, next.run(request)).await;
    drop(turn);
    answer.unwrap_or_else(|_| {
        ApiError::new(
            ErrorCode::Unavailable,
            "the hub took too long: ask again; a repeat with the same Idempotency-Key is safe",
        )
        .into_response()
    })
}
