//! `/v1/enrollment-requests`: requests of agents, and decisions of operators.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{EnrollmentAnswer, EnrollmentRequest, request_fingerprint};
use holdfast_protocol::id::{EnrollmentRequestId, HostId};
use holdfast_protocol::json;
use holdfast_protocol::operator::{EnrollmentApproval, EnrollmentRequestView, Page};
use jiff::Timestamp;
use net::server::{Answer, Ids};
use uuid::Uuid;

use super::auth::{From, Operator};
use super::enrol::{ENROL_BODY_MAX, enrolled};
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::page::{CheckedQuery, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body, since_epoch, too_often};
use crate::authority::AgentKey;
use crate::domain::enrollment::REQUEST_AGAIN_S;
use crate::domain::host::is_usable_name;
use crate::store::{Approval, EnrollmentReply, NewEnrollmentRequest, PAGE_MAX};

const APPROVAL_BODY_MAX: usize = 4 * 1024;

pub(super) async fn submit(
    State(hub): State<Arc<Hub>>,
    From(origin): From,
    ids: Ids,
    body: Body,
) -> Result<Answer<EnrollmentAnswer>, ApiError> {
    let paced = hub.rates.enrollment_requests.take(origin, since_epoch(hub.clock.now()));
    paced.map_err(|often| too_often("too many enrollment_requests come from this address", often))?;
    let request: EnrollmentRequest = body::parse("the enrollment request", body, ENROL_BODY_MAX).await?;
    let key = AgentKey::from_csr(&request.csr_pem)?;
    let fingerprint = request_fingerprint(key.fingerprint(), request.sealing.as_ref());
    let arrived = NewEnrollmentRequest {
        id: EnrollmentRequestId::new(Uuid::new_v4()),
        key,
        claimed_name: request.claimed_name,
        sealing: request.sealing,
        origin,
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    Ok(match hub.store.request_enrollment(arrived).await? {
        EnrollmentReply::Pending(request) => Answer(
            StatusCode::ACCEPTED,
            EnrollmentAnswer::Pending { request, fingerprint, retry_after_s: REQUEST_AGAIN_S },
        ),
        EnrollmentReply::Approved(record) => {
            Answer(StatusCode::OK, EnrollmentAnswer::Approved(Box::new(enrolled(&hub, record))))
        }
    })
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    CheckedQuery(query): CheckedQuery<PageQuery>,
) -> Result<Answer<Page<EnrollmentRequestView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let after = query.cursor()?.map(|cursor| place(&cursor)).transpose()?;
    let enrollment_requests = hub.store.enrollment_requests(after, limit + 1).await?;
    Ok(Answer(
        StatusCode::OK,
        page(enrollment_requests, limit, |last| format!("{}/{}", last.first_at, last.id)),
    ))
}

fn place(cursor: &str) -> Result<(Timestamp, EnrollmentRequestId), ApiError> {
    let (at, id) = cursor.split_once('/').ok_or_else(bad_cursor)?;
    Ok((at.parse().map_err(|_| bad_cursor())?, id.parse().map_err(|_| bad_cursor())?))
}

fn request_id(text: &str) -> Result<EnrollmentRequestId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("enrollment request"))
}

pub(super) async fn approve(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<EnrollmentRequestView>, ApiError> {
    let bytes = body::read("the approval", body, APPROVAL_BODY_MAX).await?;
    let request: EnrollmentApproval = json::parse("the approval", &bytes, APPROVAL_BODY_MAX)?;
    if !is_usable_name(&request.host_name) {
        return Err(ApiError::new(ErrorCode::Range, "this name reads as an id: choose another"));
    }
    let approval = Approval { id: request_id(&id)?, request, host: HostId::new(Uuid::new_v4()) };
    let issue = hub.issue();
    Ok(Answer(StatusCode::OK, hub.store.approve_enrollment(head.by(&hub, &bytes)?, approval, issue).await?))
}

pub(super) async fn refuse(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<EnrollmentRequestView>, ApiError> {
    let bytes = body::read("the refusal", body, EMPTY_BODY_MAX).await?;
    Ok(Answer(StatusCode::OK, hub.store.refuse_enrollment(head.by(&hub, &bytes)?, request_id(&id)?).await?))
}
