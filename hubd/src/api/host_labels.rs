//! `POST /v1/hosts/{id or name}/labels`, `PUT /v1/hosts/{id or name}/update-windows`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::host_label::LabelChange;
use holdfast_protocol::json;
use holdfast_protocol::operator::{HostView, UpdateWindowsPut};
use net::server::Answer;

use super::hosts::host_ref;
use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};

/// Thirty-two keys and values of 63 characters, with room for white space.
const LABELS_BYTES_MAX: usize = 8 * 1024;

/// Eight windows.
const WINDOWS_BYTES_MAX: usize = 4 * 1024;

pub(super) async fn change(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<HostView>, ApiError> {
    let bytes = body::read("the labels", body, LABELS_BYTES_MAX).await?;
    let change: LabelChange = json::parse("the labels", &bytes, LABELS_BYTES_MAX)?;
    let view = hub.store.change_labels(head.by(&hub, &bytes)?, host_ref(&host)?, change).await?;
    Ok(Answer(StatusCode::OK, view.ok_or_else(|| ApiError::not_found("host"))?))
}

pub(super) async fn put_windows(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<HostView>, ApiError> {
    let bytes = body::read("the windows", body, WINDOWS_BYTES_MAX).await?;
    let UpdateWindowsPut { windows } = json::parse("the windows", &bytes, WINDOWS_BYTES_MAX)?;
    let view = hub.store.set_update_windows(head.by(&hub, &bytes)?, host_ref(&host)?, windows).await?;
    Ok(Answer(StatusCode::OK, view.ok_or_else(|| ApiError::not_found("host"))?))
}
