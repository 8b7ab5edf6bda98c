//! `GET /v1/jobs`, `POST /v1/jobs/{job}/objection`: signed jobs about guests, for their customers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::json;
use holdfast_protocol::objection::{GuestJobView, ObjectionRequest};
use holdfast_protocol::operator::Page;
use net::server::Answer;

use super::auth::Operator;
use super::jobs::job_id;
use super::mutation::Head;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::PAGE_MAX;

/// A reason of two hundred characters, with room for escapes.
const OBJECTION_BYTES_MAX: usize = 4 * 1024;

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<GuestJobView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let before = query.cursor()?.map(|cursor| cursor.parse().map_err(|_| bad_cursor())).transpose()?;
    let jobs = hub.store.guest_jobs(operator.scope(), before, limit + 1).await?;
    let Page { items, next } = page(jobs, limit, |(number, _)| number.to_string());
    Ok(Answer(StatusCode::OK, Page { items: items.into_iter().map(|(_, job)| job).collect(), next }))
}

pub(super) async fn object(
    State(hub): State<Arc<Hub>>,
    Path(job): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<GuestJobView>, ApiError> {
    let bytes = body::read("the objection", body, OBJECTION_BYTES_MAX).await?;
    let request: ObjectionRequest = json::parse("the objection", &bytes, OBJECTION_BYTES_MAX)?;
    let by = head.by(&hub, &bytes)?;
    let view = hub.store.object_to_job(by, job_id(&job)?, request.reason).await?;
    Ok(Answer(StatusCode::OK, view.ok_or_else(|| ApiError::not_found("job"))?))
}
