//! A person's own sign-in: password, authenticator, open sessions.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use hub_page::account::{self as page_of_account, Account, QrCode};
use hub_page::frame::Section;
use net::server::{Answer, Ids};

use super::answer::{page, problem, status, to};
use super::person::{checked, frame_of, stranger};
use crate::api::Hub;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::sign_in::{self, Caller, caller_of_cookie};

/// What became of the last change.
enum Outcome {
    /// There was none.
    Nothing,
    Done(&'static str),
    Refused(ApiError),
}

pub(super) async fn show(State(hub): State<Arc<Hub>>, headers: HeaderMap) -> Response {
    match caller_of_cookie(&headers, &hub).await {
        Ok(Some(caller)) => shown(&hub, &caller, Outcome::Nothing).await,
        Ok(None) => to("/sign-in"),
        Err(error) => problem(&stranger(&hub, Section::Other), error),
    }
}

/// The page, with what was done or why it was not.
async fn shown(hub: &Hub, caller: &Caller, outcome: Outcome) -> Response {
    match account(hub, caller, outcome).await {
        Ok(page) => page,
        Err(error) => problem(&frame_of(hub, caller), error),
    }
}

async fn account(hub: &Hub, caller: &Caller, outcome: Outcome) -> Result<Response, ApiError> {
    let name = caller.record.owner.name.clone();
    let credentials = hub.store.credentials(name.clone()).await?;
    let ended = || ApiError::new(ErrorCode::Unauthenticated, "this operator was removed");
    let state = credentials.ok_or_else(ended)?.state;
    let sessions = hub.store.sessions(Some(name), hub.clock.now()).await?;
    let (answered, done, refused) = match outcome {
        Outcome::Nothing => (StatusCode::OK, None, None),
        Outcome::Done(done) => (StatusCode::OK, Some(done), None),
        Outcome::Refused(error) => {
            let (code, message) = error.shown();
            (status(code), None, Some(message))
        }
    };
    let (kind, problem) = (caller.record.view.kind, refused.as_deref());
    let account = Account { state, kind, sessions: &sessions, problem, done };
    Ok(page(answered, page_of_account::render(&frame_of(hub, caller), &account)))
}

pub(super) async fn set_password(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let set = async {
        let Some((caller, fields)) = checked(&hub, &headers, body).await? else { return Ok(to("/sign-in")) };
        let body = fields.body_of(&["current", "password"])?;
        let state = State(Arc::clone(&hub));
        let outcome = match sign_in::set_password(state, caller.clone(), visitor, ids, body).await {
            Ok(_) => Outcome::Done("The password was set, and all your other sessions ended."),
            Err(error) => Outcome::Refused(error),
        };
        Ok(shown(&hub, &caller, outcome).await)
    };
    or_problem(&hub, set.await)
}

pub(super) async fn begin_authenticator(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let begun = async {
        let Some((caller, fields)) = checked(&hub, &headers, body).await? else { return Ok(to("/sign-in")) };
        let body = fields.body_of(&["password"])?;
        let state = State(Arc::clone(&hub));
        Ok(match sign_in::begin_totp(state, caller.clone(), visitor, ids, body).await {
            Ok(Answer(status, offer)) => {
                let picture = QrCode::of(offer.uri.expose());
                page(status, page_of_account::authenticator(&frame_of(&hub, &caller), &offer, &picture))
            }
            Err(error) => shown(&hub, &caller, Outcome::Refused(error)).await,
        })
    };
    or_problem(&hub, begun.await)
}

pub(super) async fn confirm_authenticator(
    State(hub): State<Arc<Hub>>,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let confirmed = async {
        let Some((caller, fields)) = checked(&hub, &headers, body).await? else { return Ok(to("/sign-in")) };
        let body = fields.body_of(&["code"])?;
        Ok(match sign_in::confirm_totp(State(Arc::clone(&hub)), caller.clone(), ids, body).await {
            Ok(Answer(status, codes)) => {
                page(status, page_of_account::recovery_codes(&frame_of(&hub, &caller), &codes))
            }
            Err(error) => shown(&hub, &caller, Outcome::Refused(error)).await,
        })
    };
    or_problem(&hub, confirmed.await)
}

fn or_problem(hub: &Hub, answer: Result<Response, ApiError>) -> Response {
    answer.unwrap_or_else(|error| problem(&stranger(hub, Section::Other), error))
}
