//! Sign-in and sign-out by forms, and by a provider.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use hub_page::frame::Section;
use hub_page::sign_in::{self as page_of_sign_in, SignInWays};
use net::server::Ids;

use super::answer::{page, problem, status, to, to_elsewhere};
use super::form::Fields;
use super::person::{checked, stranger};
use crate::api::Hub;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::sign_in::{self, oidc};

pub(super) async fn form(State(hub): State<Arc<Hub>>) -> Response {
    shown(&hub, StatusCode::OK, None)
}

pub(super) async fn sign_in(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let signed_in = async {
        let body = Fields::read(body).await?.body_of(&["name", "password", "code"])?;
        sign_in::login(State(Arc::clone(&hub)), visitor, ids, headers, body).await
    };
    entered(&hub, signed_in.await)
}

pub(super) async fn by_link(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let signed_in = async {
        let body = Fields::read(body).await?.body_of(&["token"])?;
        sign_in::redeem(State(Arc::clone(&hub)), visitor, ids, headers, body).await
    };
    entered(&hub, signed_in.await)
}

/// Takes the cookie of a sign-in along to the first page, or shows the form again.
fn entered(hub: &Hub, signed_in: Result<Response, ApiError>) -> Response {
    match signed_in {
        Ok(answer) => with_cookies(to("/"), &answer),
        Err(error) => {
            let (code, message) = error.shown();
            shown(hub, status(code), Some(&message))
        }
    }
}

/// The form, and why the last attempt failed.
fn shown(hub: &Hub, code: StatusCode, problem: Option<&str>) -> Response {
    let ways = SignInWays { provider: hub.sign_in.provider_name(), problem };
    page(code, page_of_sign_in::render(&stranger(hub, Section::Other), &ways))
}

/// Sends the browser to the provider.
pub(super) async fn to_provider(
    State(hub): State<Arc<Hub>>,
    Visitor(from): Visitor,
    ids: Ids,
    headers: HeaderMap,
) -> Response {
    match oidc::begin(&hub, (from, ids.correlation), &headers).await {
        Ok((url, cookie)) => with_cookie(to_elsewhere(&url), cookie),
        Err(error) => entered(&hub, Err(error)),
    }
}

/// Takes the browser in that comes back. A page of ours leads on: a request that the provider's site caused would come
/// without the session's cookie.
pub(super) async fn from_provider(
    State(hub): State<Arc<Hub>>,
    Visitor(from): Visitor,
    ids: Ids,
    headers: HeaderMap,
    returned: Result<Query<oidc::CallbackQuery>, QueryRejection>,
) -> Response {
    let finished = async {
        let Query(returned) = returned.map_err(|_| {
            ApiError::new(ErrorCode::Range, "the provider's answer cannot be read, and nobody was signed in")
        })?;
        oidc::finish(State(Arc::clone(&hub)), (from, ids.correlation), headers, returned).await
    };
    let answer = match finished.await {
        Ok(answer) => {
            let frame = stranger(&hub, Section::Other);
            with_cookies(page(StatusCode::OK, page_of_sign_in::entered(&frame)), &answer)
        }
        Err(error) => entered(&hub, Err(error)),
    };
    match oidc::ended() {
        Ok(cookie) => with_cookie(answer, cookie),
        Err(error) => problem(&stranger(&hub, Section::Other), error),
    }
}

fn with_cookie(mut page: Response, (name, value): (HeaderName, HeaderValue)) -> Response {
    page.headers_mut().append(name, value);
    page
}

/// What the call of `/v1` set is set by the page.
fn with_cookies(mut page: Response, answer: &Response) -> Response {
    let cookies = answer.headers().get_all(header::SET_COOKIE).iter().cloned();
    page.headers_mut().extend(cookies.map(|cookie| (header::SET_COOKIE, cookie)));
    page
}

pub(super) async fn sign_out(
    State(hub): State<Arc<Hub>>,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let signed_out = async {
        let Some((caller, _)) = checked(&hub, &headers, body).await? else { return Ok(to("/sign-in")) };
        let answer = sign_in::logout(State(Arc::clone(&hub)), caller, ids).await?;
        Ok(with_cookies(to("/sign-in"), &answer))
    };
    match signed_out.await {
        Ok(page) => page,
        Err(error) => problem(&stranger(&hub, Section::Other), error),
    }
}
