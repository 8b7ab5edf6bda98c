//! Sign-in and sign-out by forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hub_page::frame::Section;
use hub_page::sign_in as page_of_sign_in;
use net::server::Ids;

use super::answer::{page, problem, status, to};
use super::form::Fields;
use super::person::{checked, stranger};
use crate::api::Hub;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::sign_in;

pub(super) async fn form(State(hub): State<Arc<Hub>>) -> Response {
    page(StatusCode::OK, page_of_sign_in::render(&stranger(&hub, Section::Other), None))
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
            let frame = stranger(hub, Section::Other);
            page(status(code), page_of_sign_in::render(&frame, Some(&message)))
        }
    }
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
