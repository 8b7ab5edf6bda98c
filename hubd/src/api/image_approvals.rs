//! `/v1/image-approvals`: submitting, listing and withdrawing image approvals for all hosts.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::image_approval::{ImageApprovalDetail, ImageApprovalSubmit, ImageApprovalView};
use holdfast_protocol::json;
use holdfast_protocol::operator::Page;
use net::server::Answer;

use super::auth::Operator;
use super::hosts::EMPTY_BODY_MAX;
use super::jobs::{SUBMIT_BODY_MAX, job_id};
use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::domain::image_approval;

fn absent() -> ApiError {
    ApiError::not_found("approval for all hosts")
}

pub(super) async fn submit(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<Answer<ImageApprovalView>, ApiError> {
    let bytes = body::read("the approval's request", body, SUBMIT_BODY_MAX).await?;
    let request: ImageApprovalSubmit = json::parse("the approval's request", &bytes, SUBMIT_BODY_MAX)?;
    let by = head.by(&hub, &bytes)?;
    let submitted = image_approval::read(request.job, request.blob, by.at)?;
    let done = hub.store.submit_image_approval(by, submitted).await?;
    for host in done.hosts {
        hub.long_polls.wake(host);
    }
    Ok(Answer(StatusCode::CREATED, done.approval))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
) -> Result<Answer<Page<ImageApprovalView>>, ApiError> {
    let items = hub.store.image_approvals().await?;
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(job): Path<String>,
) -> Result<Answer<ImageApprovalDetail>, ApiError> {
    let found = hub.store.image_approval(job_id(&job)?).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(absent)?))
}

pub(super) async fn withdraw(
    State(hub): State<Arc<Hub>>,
    Path(job): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<ImageApprovalView>, ApiError> {
    let bytes = body::read("the withdrawal", body, EMPTY_BODY_MAX).await?;
    let withdrawn = hub.store.withdraw_image_approval(head.by(&hub, &bytes)?, job_id(&job)?).await?;
    Ok(Answer(StatusCode::OK, withdrawn.ok_or_else(absent)?))
}
