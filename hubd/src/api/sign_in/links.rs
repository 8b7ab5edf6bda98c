//! Sign-in links: made by an admin, redeemed once.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::OperatorName;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::sign_in::{LinkRedemption, SessionKind, SignInLink};
use net::server::{Answer, Ids};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::caller::{check_site, opened};
use super::cookie;
use super::login::{SIGN_IN_BODY_MAX, new_session, refused, session_of};
use super::refusals::Reason;
use crate::api::auth::From as Visitor;
use crate::api::hosts::EMPTY_BODY_MAX;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::domain::sign_in::LINK_LIFE;
use crate::store::{NewLinkSession, NewSignInLink, WriteError};

/// The page that redeems a link, with what proves it behind the `#`.
#[must_use]
pub(super) fn url(public_url: &str, token: &Secret) -> Secret {
    Secret::new(format!("{public_url}/sign-in#{}", token.expose()))
}

pub(in crate::api) async fn make(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    head: Head,
    body: Body,
) -> Result<Answer<SignInLink>, ApiError> {
    let bytes = body::read("the request", body, EMPTY_BODY_MAX).await?;
    let name: OperatorName = name.parse().map_err(|_| ApiError::not_found("operator"))?;
    let (by, number) = (head.by(&hub, &bytes)?, Uuid::new_v4());
    let expires_at = by.at.checked_add(LINK_LIFE);
    let expires_at = expires_at.map_err(|_| {
        ApiError::new(ErrorCode::Unavailable, "the hub's clock is beyond what can be written")
    })?;
    let token = hub.authority.sign_in_link_token(number).hash();
    let new = NewSignInLink { operator: name.clone(), token, kind: SessionKind::Setup, expires_at };
    // Of a repeated request the first link comes back.
    let made = hub.store.make_sign_in_link(by, new, number).await?;
    let url = url(&hub.public_url, &hub.authority.sign_in_link_token(made.number));
    Ok(Answer(StatusCode::CREATED, SignInLink { name, url, expires_at: made.expires_at }))
}

pub(in crate::api) async fn redeem(
    State(hub): State<Arc<Hub>>,
    Visitor(from): Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    check_site(&headers)?;
    let request: LinkRedemption = body::parse_secret("the sign-in", body, SIGN_IN_BODY_MAX).await?;
    let attempt = match hub.sign_in.throttle.admit_address(from, hub.clock.now()) {
        Ok(attempt) => attempt,
        Err(error) => return Err(refused(&hub, (from, ids.correlation), &Reason::TooOften, error).await),
    };
    let (token, full) = new_session(&hub, from, &headers, SessionKind::Full)?;
    let setup = session_of(&hub, full.token, from, &headers, SessionKind::Setup);
    let new = NewLinkSession { full, setup, correlation: ids.correlation };
    // A person may copy a space along.
    let link = Zeroizing::new(request.token.expose().trim().to_owned());
    let used =
        hub.store.sign_in_by_link(holdfast_protocol::secret::TokenHash::of(link.as_bytes()), new).await;
    let record = match used {
        Ok(record) => record,
        Err(WriteError::Refused(refusal)) => {
            return Err(refused(&hub, (from, ids.correlation), &Reason::Link, refusal.into()).await);
        }
        Err(error @ (WriteError::KeyReused | WriteError::Store(_))) => return Err(error.into()),
    };
    hub.sign_in.throttle.succeeded(attempt);
    let answer = Answer(StatusCode::OK, opened(&hub, record, token.hash()));
    Ok((cookie::set(&token)?, answer).into_response())
}
