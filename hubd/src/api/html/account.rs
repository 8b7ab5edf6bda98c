//! A person's own sign-in: password, authenticator, open sessions.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use holdfast_protocol::sign_in::SignInState;
use hub_page::account::{self as page_of_account, Account, QrCode};
use net::server::{Answer, Ids};
use serde_json::{Map, Value};

use super::answer::{page, status, to};
use super::entrance::as_body;
use super::form::Fields;
use super::person::frame_of;
use crate::api::Hub;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::sign_in::{self, Caller, caller_of_cookie};

pub(super) async fn show(State(hub): State<Arc<Hub>>, headers: HeaderMap) -> Response {
    match caller_of_cookie(&headers, &hub).await {
        Ok(Some(caller)) => shown(&hub, &caller, &headers, Ok("")).await,
        Ok(None) | Err(_) => to("/sign-in"),
    }
}

/// The page, with what was done or why it was not.
async fn shown(
    hub: &Arc<Hub>,
    caller: &Caller,
    headers: &HeaderMap,
    done: Result<&str, ApiError>,
) -> Response {
    let name = caller.record.owner.name.clone();
    let state = hub.store.credentials(name.clone()).await.ok().flatten().map(|credentials| credentials.state);
    let sessions = hub.store.sessions(Some(name), hub.clock.now()).await.unwrap_or_default();
    let (answered, done, problem) = match done {
        Ok(done) => (StatusCode::OK, Some(done).filter(|done| !done.is_empty()), None),
        Err(error) => {
            let (code, message) = error.shown();
            (status(code), None, Some(message))
        }
    };
    let nothing = SignInState { password_set_at: None, totp_since: None, recovery_codes: 0 };
    let account = Account {
        state: state.unwrap_or(nothing),
        kind: caller.record.view.kind,
        sessions: &sessions,
        problem: problem.as_deref(),
        done,
    };
    page(answered, page_of_account::render(&frame_of(hub, caller, headers), &account))
}

/// The session behind a form, whose token must be the session's own.
async fn checked(hub: &Hub, headers: &HeaderMap, body: Body) -> Result<Option<(Caller, Fields)>, ApiError> {
    let fields = Fields::read(body).await?;
    let Some(caller) = caller_of_cookie(headers, hub).await? else { return Ok(None) };
    caller.check(hub, fields.required("csrf")?)?;
    Ok(Some((caller, fields)))
}

/// The named fields that have a value, each under the name that the call of `/v1` has for it.
fn request(fields: &Fields, names: &[(&str, &str)]) -> Value {
    let pairs =
        names.iter().filter_map(|(field, name)| Some(((*name).to_owned(), fields.optional(field)?.into())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

pub(super) async fn set_password(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (caller, fields) = match checked(&hub, &headers, body).await {
        Ok(Some(found)) => found,
        Ok(None) | Err(_) => return to("/sign-in"),
    };
    let request = request(&fields, &[("current", "current"), ("password", "password")]);
    let set =
        sign_in::set_password(State(Arc::clone(&hub)), caller.clone(), visitor, ids, as_body(&request)).await;
    let done = set.map(|_| "The password was set, and all your other sessions ended.");
    shown(&hub, &caller, &headers, done).await
}

pub(super) async fn begin_authenticator(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (caller, fields) = match checked(&hub, &headers, body).await {
        Ok(Some(found)) => found,
        Ok(None) | Err(_) => return to("/sign-in"),
    };
    let request = request(&fields, &[("password", "password")]);
    let begun =
        sign_in::begin_totp(State(Arc::clone(&hub)), caller.clone(), visitor, ids, as_body(&request)).await;
    match begun {
        Ok(Answer(status, offer)) => {
            let picture = QrCode::of(offer.uri.expose());
            let frame = frame_of(&hub, &caller, &headers);
            page(status, page_of_account::authenticator(&frame, &offer, &picture, None))
        }
        Err(error) => shown(&hub, &caller, &headers, Err(error)).await,
    }
}

pub(super) async fn confirm_authenticator(
    State(hub): State<Arc<Hub>>,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (caller, fields) = match checked(&hub, &headers, body).await {
        Ok(Some(found)) => found,
        Ok(None) | Err(_) => return to("/sign-in"),
    };
    let request = request(&fields, &[("code", "code")]);
    match sign_in::confirm_totp(State(Arc::clone(&hub)), caller.clone(), ids, as_body(&request)).await {
        Ok(Answer(status, codes)) => {
            page(status, page_of_account::recovery_codes(&frame_of(&hub, &caller, &headers), &codes))
        }
        Err(error) => shown(&hub, &caller, &headers, Err(error)).await,
    }
}
