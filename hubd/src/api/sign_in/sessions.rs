//! Open sessions: listing and ending them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use holdfast_protocol::id::SessionId;
use holdfast_protocol::operator::{Page, Role};
use holdfast_protocol::sign_in::{SessionOpened, SessionView};
use net::server::{Answer, Ids};

use super::caller::Caller;
use crate::api::Hub;
use crate::api::auth::Operator;
use crate::api::problem::ApiError;
use crate::store::{SessionChoice, SessionEnd};

pub(super) async fn own(State(hub): State<Arc<Hub>>, caller: Caller) -> Answer<SessionOpened> {
    Answer(StatusCode::OK, caller.opened(&hub))
}

/// Whether the sessions of everybody are the caller's to see and end.
fn sees_all(operator: &Operator) -> bool {
    operator.grant.role() == Role::Admin && operator.grant.scope().is_everything()
}

/// All at once, up to a page: an operator has few, and an operator's number is bounded.
pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    operator: Operator,
) -> Result<Answer<Page<SessionView>>, ApiError> {
    let of = (!sees_all(&operator)).then(|| operator.principal.name().clone());
    let items = hub.store.sessions(of, hub.clock.now()).await?;
    Ok(Answer(StatusCode::OK, Page { items, next: None }))
}

pub(super) async fn end(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    operator: Operator,
    ids: Ids,
) -> Result<Answer<SessionView>, ApiError> {
    let missing = || ApiError::not_found("session");
    let id: SessionId = id.parse().map_err(|_| missing())?;
    let actor = operator.principal.name().clone();
    let session =
        if sees_all(&operator) { SessionChoice::Any(id) } else { SessionChoice::Own(id, actor.clone()) };
    let (at, correlation) = (hub.clock.now(), ids.correlation);
    let ended = hub.store.end_session(SessionEnd { session, actor, at, correlation }).await?;
    Ok(Answer(StatusCode::OK, ended.ok_or_else(missing)?))
}
