//! Health and readiness probes, the API's description, the answer to unknown paths.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_protocol::hub::openapi;
use net::server::{Answer, as_it_is};
use serde_json::Value;

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

/// The description of all calls, made once.
pub(super) async fn openapi() -> Response {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);
    as_it_is(Json(&*DOCUMENT))
}

pub(super) async fn no_such_route() -> ApiError {
    ApiError::not_found("path")
}
