//! `/v1/tokens`: machine tokens.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::access::Grant;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::json;
use holdfast_protocol::machine_token::{TokenMade, TokenRequest, TokenRotation, TokenView};
use holdfast_protocol::operator::Page;
use holdfast_protocol::size::TokenDays;
use jiff::{SignedDuration, Timestamp};
use net::server::Answer;
use uuid::Uuid;

use super::auth::{Operator, Principal};
use super::authorize::stands_above;
use super::hosts::EMPTY_BODY_MAX;
use super::mutation::Head;
use super::operators::token_end;
use super::problem::ApiError;
use super::{Hub, body};
use crate::store::{NewMachineToken, NewSecret, SecretMade};

const TOKEN_REQUEST_BYTES_MAX: usize = 4 * 1024;

fn token_name(text: &str) -> Result<OperatorName, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("token"))
}

/// All at once: each maker has a bounded number.
pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
) -> Result<Answer<Page<TokenView>>, ApiError> {
    let is_own = |view: &TokenView| match &operator.principal {
        Principal::Person { name, .. } => *name == view.maker,
        Principal::Machine { name } => *name == view.name,
    };
    let mut items = hub.store.machine_tokens().await?;
    items.retain(|view| is_own(view) || stands_above(&operator.grant, view.role, view.scope.clone()));
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

fn new_secret(hub: &Hub, now: Timestamp, days: TokenDays) -> Result<NewSecret, ApiError> {
    let number = Uuid::new_v4();
    let hash = hub.authority.machine_token(number).hash();
    Ok(NewSecret { number, hash, expires_at: token_end(now, days)? })
}

/// Of a repeated request the first secret comes back.
fn made(hub: &Hub, made: SecretMade) -> TokenMade {
    let SecretMade { number, expires_at, earlier_until, token } = made;
    let TokenView { name, role, scope, .. } = token;
    TokenMade { name, role, scope, token: hub.authority.machine_token(number), expires_at, earlier_until }
}

pub(super) async fn create(
    State(hub): State<Arc<Hub>>,
    head: Head,
    body: Body,
) -> Result<Answer<TokenMade>, ApiError> {
    let bytes = body::read("the token's request", body, TOKEN_REQUEST_BYTES_MAX).await?;
    let request: TokenRequest = json::parse("the token's request", &bytes, TOKEN_REQUEST_BYTES_MAX)?;
    let grant = Grant::new(request.role, request.scope)?;
    head.operator().may_give(&grant)?;
    let by = head.by(&hub, &bytes)?;
    let secret = new_secret(&hub, by.at, request.days)?;
    let new = NewMachineToken { name: request.name, grant, secret };
    let done = hub.store.make_machine_token(by, new).await?;
    Ok(Answer(StatusCode::CREATED, made(&hub, done)))
}

pub(super) async fn rotate(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<TokenMade>, ApiError> {
    let bytes = body::read("the rotation", body, TOKEN_REQUEST_BYTES_MAX).await?;
    let request: TokenRotation = json::parse("the rotation", &bytes, TOKEN_REQUEST_BYTES_MAX)?;
    let by = head.by(&hub, &bytes)?;
    let secret = new_secret(&hub, by.at, request.days)?;
    let overlap = SignedDuration::from_hours(request.overlap_hours.get().into());
    let until = by.at.checked_add(overlap).unwrap_or(by.at);
    let done = hub.store.rotate_machine_token(by, token_name(&name)?, secret, until).await?;
    Ok(Answer(StatusCode::OK, made(&hub, done)))
}

pub(super) async fn revoke(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<TokenView>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    Ok(Answer(
        StatusCode::OK,
        hub.store.revoke_machine_token(head.by(&hub, &bytes)?, token_name(&name)?).await?,
    ))
}
