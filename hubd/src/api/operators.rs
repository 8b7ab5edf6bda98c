//! `/v1/operators`: listing, adding and removing persons.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::access::Grant;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::json;
use holdfast_protocol::operator::{OperatorMade, OperatorRequest, OperatorView, Page};
use holdfast_protocol::size::TokenDays;
use jiff::{SignedDuration, Timestamp};
use net::server::Answer;
use uuid::Uuid;

use super::auth::Operator;
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::{NewOperator, OperatorRecord};

/// When a token ends that lives so long.
pub(super) fn token_end(now: Timestamp, days: TokenDays) -> Result<Timestamp, ApiError> {
    now.checked_add(SignedDuration::from_hours(24 * i64::from(days.get()))).map_err(|_| {
        ApiError::new(ErrorCode::Range, "the token would end beyond what can be written: fewer days")
    })
}

const REQUEST_BODY_MAX: usize = 4 * 1024;

/// All at once: a hub has only as many operators as a team has members.
pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
) -> Result<Answer<Page<OperatorView>>, ApiError> {
    let all = hub.store.operators().await?.into_iter();
    let items = all.filter(|record| operator.grant.covers(&record.grant)).map(OperatorRecord::view);
    Ok(Answer(StatusCode::OK, Page { items: items.collect(), next: None }))
}

pub(super) async fn make(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<Answer<OperatorMade>, ApiError> {
    let bytes = body::read("the operator's request", body, REQUEST_BODY_MAX).await?;
    let request: OperatorRequest = json::parse("the operator's request", &bytes, REQUEST_BODY_MAX)?;
    let (name, role, scope) = (request.name, request.role, request.scope);
    let grant = Grant::new(role, scope.clone())?;
    head.operator().may_give(&grant)?;
    let (by, number) = (head.by(&hub, &bytes)?, Uuid::new_v4());
    let expires_at = token_end(by.at, request.days)?;
    let token = hub.authority.operator_token(number).hash();
    let new =
        NewOperator { name: name.clone(), grant, token, expires_at, at: by.at, correlation: by.correlation };
    // Of a repeated request the first token comes back.
    let made = hub.store.make_operator(by, new, number).await?;
    let token = hub.authority.operator_token(made.number);
    Ok(Answer(StatusCode::CREATED, OperatorMade { name, role, scope, token, expires_at: made.expires_at }))
}

pub(super) async fn revoke(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<OperatorView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let name: OperatorName = name.parse().map_err(|_| ApiError::not_found("operator"))?;
    Ok(Answer(StatusCode::OK, hub.store.let_operator_go(head.by(&hub, &bytes)?, name).await?))
}
