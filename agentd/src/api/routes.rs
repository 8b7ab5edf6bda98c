//! The table of calls.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde::Serialize;

use super::error::ApiError;
use super::frame::{Data, frame};
use super::{Local, auth, backups, claim, guest, operations, work};

/// Everything that is served to guests.
pub fn router(local: Arc<Local>) -> Router {
    let clock = Arc::clone(&local.clock);
    Router::new()
        .route("/v1/claim", post(claim::claim))
        .route("/v1/hello", post(guest::hello))
        .route("/v1/self", get(guest::itself))
        .route("/v1/storage", get(guest::storage))
        .route("/v1/operations/{id}", get(operations::operation).delete(operations::cancel))
        .route("/v1/snapshots", get(work::snapshots).post(work::take_snapshot))
        .route("/v1/snapshots/{name}", delete(work::delete_snapshot))
        .route("/v1/rollback", post(work::roll_back))
        .route("/v1/backups", get(backups::all).post(work::take_backup))
        .route("/v1/backups/{id}", get(backups::one))
        .route_layer(from_fn_with_state(Arc::clone(&local), auth::throttle))
        .route("/healthz", get(healthz))
        .method_not_allowed_fallback(no_such_call)
        .fallback(no_such_call)
        .with_state(local)
        .layer(from_fn_with_state(clock, frame))
}

#[derive(Serialize)]
struct Healthy {
    ok: &'static str,
}

async fn healthz() -> Data<Healthy> {
    Data(Healthy { ok: "serving" })
}

async fn no_such_call() -> Response {
    ApiError::NoSuchCall.into_response()
}
