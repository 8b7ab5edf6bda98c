//! The routes and their guards.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use net::server::frame;

use super::calls::{Call, healthz, openapi};
use super::envelope::{framing, guests};
use super::error::ApiError;
use super::{
    Local, audit, backups, claim, desired, due_backups, guest, operations, restore_tests, scratch_api,
    windows, work,
};

/// Every call there is.
#[must_use]
pub fn table() -> Vec<Call> {
    vec![
        ("/healthz", get(healthz)),
        ("/v1/openapi.json", get(openapi)),
        ("/v1/claim", post(claim::claim)),
        ("/v1/hello", post(guest::hello)),
        ("/v1/self", get(guest::itself)),
        ("/v1/storage", get(guest::storage)),
        ("/v1/operations/{id}", get(operations::operation).delete(operations::cancel)),
        ("/v1/snapshots", get(work::snapshots).post(work::take_snapshot)),
        ("/v1/snapshots/{name}", delete(work::delete_snapshot)),
        ("/v1/rollback", post(work::roll_back)),
        ("/v1/backups", get(backups::all).post(work::take_backup)),
        ("/v1/backups/due", get(due_backups::due)),
        ("/v1/backups/{id}", get(backups::one)),
        ("/v1/quiesce-windows", post(windows::ask)),
        ("/v1/quiesce-windows/{id}", get(windows::look).delete(windows::give_up)),
        ("/v1/quiesce-windows/{id}/quiesced", put(windows::quiesced)),
        ("/v1/quiesce-windows/{id}/released", put(windows::released)),
        ("/v1/restore-tests", get(restore_tests::all)),
        ("/v1/restore-tests/report", post(restore_tests::report)),
        ("/v1/desired", get(desired::desired)),
        ("/v1/artifacts/{sha256}", get(desired::artifact)),
        ("/v1/audit", get(audit::audit)),
    ]
}

/// Everything that is served to guests.
pub fn router(local: Arc<Local>) -> Router {
    guarded(local, table())
}

/// Everything that is served to scratch guests.
pub fn test_router(local: Arc<Local>) -> Router {
    guarded(local, scratch_api::table())
}

/// These calls behind their guards: the frame around all, then one layer for what only guests meet. Each layer more is
/// a boxed future and a copy of the router for every request.
pub fn guarded(local: Arc<Local>, calls: Vec<Call>) -> Router {
    let clock = Arc::clone(&local.clock);
    let guests = from_fn_with_state(Arc::clone(&local), guests);
    let routes = calls.into_iter().fold(Router::new(), |routes, (path, call)| routes.route(path, call));
    routes
        .method_not_allowed_fallback(other_method)
        .fallback(no_such_call)
        .with_state(local)
        .layer(guests)
        .layer(from_fn_with_state(framing(&clock), frame))
}

async fn other_method() -> Response {
    ApiError::OtherMethod.into_response()
}

async fn no_such_call() -> Response {
    ApiError::NoSuchCall.into_response()
}
