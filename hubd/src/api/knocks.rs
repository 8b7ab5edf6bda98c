//! `POST /v1/knock`, and operators' decisions on knocks.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::enrol::{KnockAnswer, KnockRequest};
use holdfast_protocol::id::{HostId, KnockId};
use holdfast_protocol::operator::{KnockApproval, KnockView, Page};
use holdfast_protocol::strict;
use jiff::Timestamp;
use uuid::Uuid;

use super::auth::{From, Operator};
use super::enrol::{ENROL_BODY_MAX, enrolled};
use super::frame::{Answer, Ids};
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::page::{Asked, PageQuery, bad_cursor, page};
use super::problem::ApiError;
use super::{Hub, body, since_epoch, too_often};
use crate::authority::AgentKey;
use crate::domain::enrolment::KNOCK_AGAIN_S;
use crate::domain::host::is_usable_name;
use crate::store::{Approval, Knock, KnockAnswered, PAGE_MAX};

const APPROVAL_BODY_MAX: usize = 4 * 1024;

pub(super) async fn knock(
    State(hub): State<Arc<Hub>>,
    From(origin): From,
    ids: Ids,
    body: Body,
) -> Result<Answer<KnockAnswer>, ApiError> {
    let paced = hub.pace.knocks.take(origin, since_epoch(hub.clock.now()));
    paced.map_err(|often| too_often("too many knocks come from this address", often))?;
    let request: KnockRequest = body::parse("the knock", body, ENROL_BODY_MAX).await?;
    let key = AgentKey::from_csr(&request.csr_pem)?;
    let fingerprint = key.fingerprint();
    let knock = Knock {
        id: KnockId::new(Uuid::new_v4()),
        key,
        says: request.says,
        origin,
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    Ok(match hub.store.knock(knock).await? {
        KnockAnswered::Pending(knock) => Answer(
            StatusCode::ACCEPTED,
            KnockAnswer::Pending { knock, fingerprint, retry_after_s: KNOCK_AGAIN_S },
        ),
        KnockAnswered::Approved(record) => {
            Answer(StatusCode::OK, KnockAnswer::Approved(Box::new(enrolled(&hub, record))))
        }
    })
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    Asked(query): Asked<PageQuery>,
) -> Result<Answer<Page<KnockView>>, ApiError> {
    let limit = query.limit(PAGE_MAX)?;
    let after = query.cursor()?.map(|cursor| place(&cursor)).transpose()?;
    let knocks = hub.store.knocks(after, limit + 1).await?;
    Ok(Answer(StatusCode::OK, page(knocks, limit, |last| format!("{}/{}", last.first_at, last.id))))
}

fn place(cursor: &str) -> Result<(Timestamp, KnockId), ApiError> {
    let (at, id) = cursor.split_once('/').ok_or_else(bad_cursor)?;
    Ok((at.parse().map_err(|_| bad_cursor())?, id.parse().map_err(|_| bad_cursor())?))
}

fn knock_id(text: &str) -> Result<KnockId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("knock"))
}

pub(super) async fn approve(
    State(hub): State<Arc<Hub>>,
    Path(knock): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<KnockView>, ApiError> {
    let bytes = body::read("the approval", body, APPROVAL_BODY_MAX).await?;
    let request: KnockApproval = strict::parse("the approval", &bytes, APPROVAL_BODY_MAX)?;
    if !is_usable_name(&request.host_name) {
        return Err(ApiError::new(ErrorCode::Range, "this name reads as an id: choose another"));
    }
    let approval = Approval { knock: knock_id(&knock)?, request, host: HostId::new(Uuid::new_v4()) };
    let authority = Arc::clone(&hub.authority);
    let issue = move |host, generation, key: &AgentKey, now| authority.issue_host(host, generation, key, now);
    Ok(Answer(StatusCode::OK, hub.store.approve_knock(head.by(&hub, &bytes)?, approval, issue).await?))
}

pub(super) async fn refuse(
    State(hub): State<Arc<Hub>>,
    Path(knock): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<KnockView>, ApiError> {
    let bytes = body::read("the refusal", body, EMPTY_BODY_MAX).await?;
    Ok(Answer(StatusCode::OK, hub.store.refuse_knock(head.by(&hub, &bytes)?, knock_id(&knock)?).await?))
}
