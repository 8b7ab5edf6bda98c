//! `/v1/hosts/{id or name}/jobs`: submitting, listing and withdrawing signed jobs.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::id::{JobId, TunnelName};
use holdfast_protocol::job::envelope::SIGNED_BYTES_MAX;
use holdfast_protocol::json;
use holdfast_protocol::operator::{JobDetail, JobSubmit, JobView, Page, TunnelOrder};
use net::server::Answer;

use super::auth::Operator;
use super::hosts::{EMPTY_BODY_MAX, host_ref};
use super::mutation::Head;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::{PAGE_MAX, SubmitJob};

/// The body holds the text as a string: its quotes take two bytes each.
pub(super) const SUBMIT_BODY_MAX: usize = 2 * SIGNED_BYTES_MAX;

/// A text that is no id names no job.
pub(super) fn job_id(text: &str) -> Result<JobId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("job"))
}

pub(super) async fn leave(
    State(hub): State<Arc<Hub>>,
    Path(host): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<JobView>, ApiError> {
    let bytes = body::read("the signed job's request", body, SUBMIT_BODY_MAX).await?;
    let request: JobSubmit = json::parse("the signed job's request", &bytes, SUBMIT_BODY_MAX)?;
    let leave =
        SubmitJob { host: host_ref(&host)?, id: request.job, blob: request.blob, tunnel: request.tunnel };
    let done = hub.store.submit_job(head.by(&hub, &bytes)?, leave).await?;
    let done = done.ok_or_else(|| ApiError::not_found("host"))?;
    hub.long_polls.wake(done.host);
    Ok(Answer(StatusCode::CREATED, done.job))
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path(host): Path<String>,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<JobView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let before = query.cursor()?.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let jobs = hub.store.jobs(host_ref(&host)?, before, limit + 1).await?;
    let jobs = jobs.ok_or_else(|| ApiError::not_found("host"))?;
    let Page { items, next } = page(jobs, limit, |(number, _)| number.to_string());
    Ok(Answer(StatusCode::OK, Page { items: items.into_iter().map(|(_, job)| job).collect(), next }))
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path((host, job)): Path<(String, String)>,
) -> Result<Answer<JobDetail>, ApiError> {
    let found = hub.store.job(host_ref(&host)?, job_id(&job)?).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(|| ApiError::not_found("job"))?))
}

pub(super) async fn tunnel_order(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Path((host, tunnel)): Path<(String, String)>,
) -> Result<Answer<TunnelOrder>, ApiError> {
    let missing = || ApiError::not_found("order of this tunnel");
    let tunnel: TunnelName = tunnel.parse().map_err(|_| missing())?;
    let found = hub.store.tunnel_order(host_ref(&host)?, tunnel).await?;
    Ok(Answer(StatusCode::OK, found.ok_or_else(missing)?))
}

pub(super) async fn withdraw(
    State(hub): State<Arc<Hub>>,
    Path((host, job)): Path<(String, String)>,
    head: Head,
    body: Body,
) -> Result<Answer<JobView>, ApiError> {
    let bytes = body::read("the withdrawal", body, EMPTY_BODY_MAX).await?;
    let by = head.by(&hub, &bytes)?;
    let withdrawn = hub.store.withdraw_job(by, host_ref(&host)?, job_id(&job)?).await?;
    Ok(Answer(StatusCode::OK, withdrawn.ok_or_else(|| ApiError::not_found("job"))?))
}
