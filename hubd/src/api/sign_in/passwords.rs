//! One's own password.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{CorrelationId, OperatorName};
use holdfast_protocol::oidc::LinkOrigin;
use holdfast_protocol::sign_in::{Password, PasswordChange, SessionKind, SignInState};
use net::admission::Origin;
use net::server::{Answer, Ids};

use super::caller::Caller;
use super::hasher::Match;
use super::login::{SIGN_IN_BODY_MAX, refused};
use super::refusals::Reason;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::{Hub, body};
use crate::domain::sign_in::password;
use crate::store::{NewPassword, SignInChange, SignInError};

pub(in crate::api) async fn set(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    Visitor(from): Visitor,
    ids: Ids,
    body: Body,
) -> Result<Answer<SignInState>, ApiError> {
    let change: PasswordChange = body::parse_secret("the password", body, SIGN_IN_BODY_MAX).await?;
    let name = &caller.record.owner.name;
    check_origin(&hub, name).await?;
    let checked = check_own(&hub, &caller, (from, ids.correlation), change.current).await?;
    password::check(&change.password, name)
        .map_err(|error| ApiError::new(ErrorCode::Range, error.to_string()))?;
    let hash = hub.sign_in.hasher.hash(change.password).await?;
    let by = SignInChange {
        operator: name.clone(),
        actor: Some(name.clone()),
        at: hub.clock.now(),
        correlation: ids.correlation,
    };
    hub.store.set_password(NewPassword { by, hash, checked, keep: Some(caller.token) }).await?;
    let state = hub.store.credentials(name.clone()).await?.map(|credentials| credentials.state);
    Ok(Answer(StatusCode::OK, state.ok_or(SignInError::Refused)?))
}

/// Whom a group of the provider made signs in by it alone: a password would outlive the group.
async fn check_origin(hub: &Hub, name: &OperatorName) -> Result<(), ApiError> {
    match hub.store.provider_link(name.clone()).await?.map(|link| link.origin) {
        None | Some(LinkOrigin::Admin) => Ok(()),
        Some(LinkOrigin::Group) => Err(ApiError::new(
            ErrorCode::Forbidden,
            "you sign in by the provider alone, since one of its groups made you an operator here, and no password was set",
        )),
    }
}

/// Who came by a link or has yet to set up an authenticator need not show the password; others must. Gives the stored hash
/// that it was checked against.
pub(super) async fn check_own(
    hub: &Hub,
    caller: &Caller,
    (from, correlation): (Origin, CorrelationId),
    given: Option<Password>,
) -> Result<Option<String>, ApiError> {
    match caller.record.view.kind {
        SessionKind::Setup => return Ok(None),
        SessionKind::Full => {}
    }
    let name = &caller.record.owner.name;
    let needed = |says| ApiError::new(ErrorCode::PreconditionFailed, says);
    let given = given.ok_or_else(|| {
        needed("your present password is needed for this, and nothing was changed; without one, ask for a sign-in link")
    })?;
    let attempt = match hub.sign_in.throttle.admit(&hub.store, (from, name), hub.clock.now()).await {
        Ok(attempt) => attempt,
        Err(error) => return Err(refused(hub, (from, correlation), &Reason::TooOften, error).await),
    };
    let stored = hub.store.credentials(name.clone()).await?.and_then(|credentials| credentials.password);
    match hub.sign_in.hasher.check(stored.as_deref(), given).await? {
        Match::Right { .. } => {
            hub.sign_in.throttle.succeeded(attempt);
            Ok(stored)
        }
        Match::Wrong => {
            let error = needed("your present password is another one, and nothing was changed");
            Err(refused(hub, (from, correlation), &Reason::Password(name.clone()), error).await)
        }
    }
}
