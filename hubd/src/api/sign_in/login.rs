//! Sign-in by password, and sign-out.
//!
//! The answer to a wrong name, a wrong password and a wrong code is the same, after the same work.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{CorrelationId, SessionId};
use holdfast_protocol::secret::{Secret, TokenHash};
use holdfast_protocol::sign_in::{LoginRequest, OneTimeCode, SessionKind};
use net::admission::Origin;
use net::server::{Answer, Ids};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::caller::{Caller, check_site, opened};
use super::hasher::{Match, fill};
use super::refusals::Reason;
use super::throttle::Attempt;
use super::{SignIn, cookie};
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::domain::sign_in::recovery_code;
use crate::store::{
    Authenticator, Credentials, NewSession, NewSignIn, SessionChoice, SessionEnd, SignInError, UsedFactor,
    WriteError,
};

pub(super) const SIGN_IN_BODY_MAX: usize = 4 * 1024;

/// A browser's name for itself is at most this long here.
const USER_AGENT_CHARS: usize = 120;

/// A sign-in is about to be decided.
struct Asking<'a> {
    hub: &'a Hub,
    from: Origin,
    correlation: CorrelationId,
    request: &'a LoginRequest,
}

pub(in crate::api) async fn login(
    State(hub): State<Arc<Hub>>,
    Visitor(from): Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    check_site(&headers)?;
    let request: LoginRequest = body::parse_secret("the sign-in", body, SIGN_IN_BODY_MAX).await?;
    let asking = Asking { hub: &hub, from, correlation: ids.correlation, request: &request };
    let now = hub.clock.now();
    let admitted = hub.sign_in.throttle.admit(&hub.store, (from, &request.name), now).await;
    let mut attempt = match admitted {
        Ok(attempt) => attempt,
        Err(error) => return Err(refused(&hub, (from, ids.correlation), &Reason::TooOften, error).await),
    };
    let credentials = hub.store.credentials(request.name.clone()).await?;
    let stored = credentials.as_ref().and_then(|credentials| credentials.password.as_deref());
    let found = hub.sign_in.hasher.check(stored, request.password.clone()).await?;
    let (credentials, stored, outdated) = match (&credentials, stored, found) {
        (Some(credentials), Some(stored), Match::Right { outdated }) => (credentials, stored, outdated),
        (Some(_), _, _) => return Err(asking.refuse(&Reason::Password(request.name.clone())).await),
        (None, _, _) => return Err(asking.refuse(&Reason::UnknownName).await),
    };
    let (factor, kind) = asking.second_factor(credentials, &mut attempt).await?;
    let (token, session) = new_session(&hub, from, &headers, kind)?;
    let session = NewSession { operator: Some(request.name.clone()), ..session };
    let new = NewSignIn { session, password: stored.to_owned(), factor, correlation: ids.correlation };
    let record = match hub.store.sign_in(new).await {
        Ok(record) => record,
        // A code that was used already, or a change in this very moment.
        Err(WriteError::Refused(_)) => return Err(asking.refuse(&Reason::Code(request.name.clone())).await),
        Err(error @ (WriteError::KeyReused | WriteError::Store(_))) => return Err(error.into()),
    };
    hub.sign_in.throttle.succeeded(attempt);
    if outdated {
        let hash = hub.sign_in.hasher.hash(request.password.clone()).await?;
        hub.store.rehash_password(request.name.clone(), stored.to_owned(), hash).await?;
    }
    let answer = Answer(StatusCode::OK, opened(&hub, record, token.hash()));
    Ok((cookie::set(&token)?, answer).into_response())
}

impl Asking<'_> {
    async fn refuse(&self, reason: &Reason) -> ApiError {
        let error = SignInError::Refused.into();
        refused(self.hub, (self.from, self.correlation), reason, error).await
    }

    /// What the code is, and what the sign-in opens.
    async fn second_factor(
        &self,
        credentials: &Credentials,
        attempt: &mut Attempt,
    ) -> Result<(UsedFactor, SessionKind), ApiError> {
        let (hub, name) = (self.hub, &self.request.name);
        let Some(authenticator) = &credentials.authenticator else {
            return Ok((UsedFactor::None, hub.sign_in.rules.without_second_factor(credentials.role)));
        };
        let admitted = hub.sign_in.throttle.admit_code(&hub.store, attempt, (name, hub.clock.now())).await;
        if let Err(error) = admitted {
            return Err(refused(hub, (self.from, self.correlation), &Reason::TooOften, error).await);
        }
        let code = self.request.code.as_ref();
        match code.and_then(|code| self.used_factor(authenticator, code)) {
            Some(factor) => Ok((factor, SessionKind::Full)),
            None => Err(self.refuse(&Reason::Code(name.clone())).await),
        }
    }

    fn used_factor(&self, authenticator: &Authenticator, code: &OneTimeCode) -> Option<UsedFactor> {
        let (authority, name) = (&self.hub.authority, &self.request.name);
        if let Some(code) = recovery_code::normal(code.expose()) {
            return Some(UsedFactor::RecoveryCode(authority.recovery_code(name, &code)));
        }
        let secret = authority.open_totp(name, &authenticator.sealed)?;
        let step = secret.step_of(code.expose(), self.hub.clock.now(), authenticator.last);
        step.map(UsedFactor::Step)
    }
}

/// Writes a refusal down and passes its error on.
pub(super) async fn refused(
    hub: &Hub,
    (from, correlation): (Origin, CorrelationId),
    reason: &Reason,
    error: ApiError,
) -> ApiError {
    let SignIn { refusals, .. } = &hub.sign_in;
    let Some(event) = refusals.count(from, reason, (hub.clock.now(), correlation)) else { return error };
    match hub.store.record_refusals(vec![event]).await {
        Ok(()) => error,
        Err(store) => store.into(),
    }
}

/// A session with a token of its own: never one that the request brought.
pub(super) fn new_session(
    hub: &Hub,
    from: Origin,
    headers: &HeaderMap,
    kind: SessionKind,
) -> Result<(Secret, NewSession), ApiError> {
    let mut random = Zeroizing::new([0; 32]);
    fill(random.as_mut_slice())?;
    let token = cookie::token_text(&Zeroizing::new(hex::encode(random.as_slice())));
    let session = session_of(hub, token.hash(), from, headers, kind);
    Ok((token, session))
}

/// A session with this token.
pub(super) fn session_of(
    hub: &Hub,
    token: TokenHash,
    from: Origin,
    headers: &HeaderMap,
    kind: SessionKind,
) -> NewSession {
    let now = hub.clock.now();
    let user_agent =
        headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    NewSession {
        token,
        id: SessionId::new(Uuid::new_v4()),
        operator: None,
        kind,
        at: now,
        ends: hub.sign_in.rules.ends(kind, now),
        address: from.to_string(),
        user_agent: user_agent.chars().take(USER_AGENT_CHARS).collect(),
    }
}

pub(in crate::api) async fn logout(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    ids: Ids,
) -> Result<Response, ApiError> {
    let end = SessionEnd {
        session: SessionChoice::Token(caller.token),
        actor: caller.record.owner.name,
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    let ended = hub.store.end_session(end).await?;
    let ended =
        ended.ok_or_else(|| ApiError::new(ErrorCode::Unauthenticated, "this session has ended already"))?;
    Ok((cookie::unset()?, Answer(StatusCode::OK, ended)).into_response())
}
