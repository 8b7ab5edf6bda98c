//! The caller by the cookie of a session.
//!
//! In: a request. Out: the session with its operator, looked up each time, so that an end holds at the next request on every
//! hub. A request that may change something must show that a page of ours made it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::secret::{Secret, TokenHash};
use holdfast_protocol::sign_in::{CSRF_HEADER, SessionKind, SessionOpened};

use super::cookie;
use crate::api::Hub;
use crate::api::problem::ApiError;
use crate::domain::sign_in::USE_WRITTEN_EVERY;
use crate::store::{OperatorRecord, SessionRecord};

/// A session, whatever it may do.
#[derive(Clone)]
pub(in crate::api) struct Caller {
    pub record: SessionRecord,
    pub token: TokenHash,
}

impl Caller {
    /// What each form of its pages sends back.
    pub(in crate::api) fn csrf(&self, hub: &Hub) -> Secret {
        hub.authority.csrf(self.token)
    }

    /// Checks what a form sent back.
    pub(in crate::api) fn check(&self, hub: &Hub, given: &str) -> Result<(), ApiError> {
        check_form(hub, self.token, given)
    }

    /// As its own browser sees it.
    pub(super) fn opened(&self, hub: &Hub) -> SessionOpened {
        opened(hub, self.record.clone(), self.token)
    }
}

/// Checks what a form of a session sent back.
pub(in crate::api) fn check_form(hub: &Hub, token: TokenHash, given: &str) -> Result<(), ApiError> {
    if hub.authority.is_csrf(token, given.as_bytes()) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Forbidden,
        "the form is not of this session, and nothing was changed: load the page again",
    ))
}

/// A session as its own browser sees it.
pub(super) fn opened(hub: &Hub, record: SessionRecord, token: TokenHash) -> SessionOpened {
    SessionOpened { session: record.view, role: record.owner.grant.role(), csrf: hub.authority.csrf(token) }
}

impl FromRequestParts<Arc<Hub>> for Caller {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, hub: &Arc<Hub>) -> Result<Self, ApiError> {
        find(parts, hub).await?.ok_or_else(|| {
            ApiError::new(ErrorCode::Unauthenticated, "this call needs a session that has not ended: sign in")
        })
    }
}

/// The operator of a full session; none without one. A request with a token is judged by its token alone.
pub(in crate::api) async fn operator_of_session(
    parts: &Parts,
    hub: &Hub,
) -> Result<Option<OperatorRecord>, ApiError> {
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return Ok(None);
    }
    let Some(caller) = find(parts, hub).await? else { return Ok(None) };
    match caller.record.view.kind {
        SessionKind::Full => Ok(Some(caller.record.owner)),
        SessionKind::Setup => Err(ApiError::new(
            ErrorCode::Forbidden,
            "this session may only set a password and an authenticator: do that, then sign in with them",
        )),
    }
}

async fn find(parts: &Parts, hub: &Hub) -> Result<Option<Caller>, ApiError> {
    let Some(token) = cookie::session(&parts.headers) else { return Ok(None) };
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        // An ended session is said to have ended; a good one must have its header.
        if hub.store.session(token, hub.clock.now()).await?.is_none() {
            return Ok(None);
        }
        check_csrf(&parts.headers, hub, token)?;
    }
    caller_of_cookie(&parts.headers, hub).await
}

/// The session of a cookie, for pages: what changes something checks the token of its form ([`Caller::check`]).
pub(in crate::api) async fn caller_of_cookie(
    headers: &HeaderMap,
    hub: &Hub,
) -> Result<Option<Caller>, ApiError> {
    let Some(token) = cookie::session(headers) else { return Ok(None) };
    let now = hub.clock.now();
    let Some(record) = hub.store.session(token, now).await? else { return Ok(None) };
    if now.duration_since(record.view.used_at) >= USE_WRITTEN_EVERY {
        let idle_end = hub.sign_in.rules.idle_end(now, record.view.ends_at);
        hub.store.use_session(token, now, idle_end).await?;
    }
    Ok(Some(Caller { record, token }))
}

fn check_csrf(headers: &HeaderMap, hub: &Hub, token: TokenHash) -> Result<(), ApiError> {
    let given = headers.get(CSRF_HEADER).map_or(&b""[..], |value| value.as_bytes());
    if hub.authority.is_csrf(token, given) {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Forbidden,
        format!(
            "a change by a session needs `{CSRF_HEADER}` with the session's own value, and nothing was changed: load the page again"
        ),
    ))
}

/// A page of another site may not sign a browser in, to an account of its choice.
pub(super) fn check_site(headers: &HeaderMap) -> Result<(), ApiError> {
    let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
    match site {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(ApiError::new(
            ErrorCode::Forbidden,
            "another site sent this sign-in, and it was not looked at: open the hub's own page",
        )),
    }
}
