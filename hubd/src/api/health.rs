//! Health and readiness probes, and the answer to unknown paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use net::server::Answer;

use super::Hub;
use super::problem::ApiError;

type Text = BTreeMap<&'static str, &'static str>;

pub(super) async fn healthz() -> Answer<Text> {
    Answer(StatusCode::OK, BTreeMap::from([("status", "alive")]))
}

/// Ready when the database takes a write and answers a read, and the hub is not stopping.
pub(super) async fn readyz(State(hub): State<Arc<Hub>>) -> Result<Answer<Text>, ApiError> {
    if *hub.stop.borrow() {
        return Err(ApiError::from(crate::store::StoreError::Stopped));
    }
    hub.store.ready().await?;
    Ok(Answer(StatusCode::OK, BTreeMap::from([("status", "ready")])))
}

pub(super) async fn no_such_route() -> ApiError {
    ApiError::not_found("path")
}
