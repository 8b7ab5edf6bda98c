//! Sign-in and sign-out by forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use hub_page::frame::Section;
use hub_page::sign_in as page_of_sign_in;
use net::server::Ids;
use serde_json::json;

use super::answer::{page, status, to};
use super::form::Fields;
use super::person::{stranger, theme};
use crate::api::Hub;
use crate::api::auth::From as Visitor;
use crate::api::problem::ApiError;
use crate::api::sign_in::{self, caller_of_cookie};

pub(super) async fn form(State(hub): State<Arc<Hub>>, headers: HeaderMap) -> Response {
    let frame = stranger(&hub, Section::Other, theme(&headers));
    page(StatusCode::OK, page_of_sign_in::render(&frame, None))
}

pub(super) async fn sign_in(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let signed_in = async {
        let fields = Fields::read(body).await?;
        let mut request =
            json!({ "name": fields.required("name")?, "password": fields.required("password")? });
        if let (Some(code), Some(request)) = (fields.optional("code"), request.as_object_mut()) {
            request.insert("code".to_owned(), code.into());
        }
        sign_in::login(State(Arc::clone(&hub)), visitor, ids, headers.clone(), as_body(&request)).await
    };
    entered(&hub, &headers, signed_in.await)
}

pub(super) async fn by_link(
    State(hub): State<Arc<Hub>>,
    visitor: Visitor,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let signed_in = async {
        let fields = Fields::read(body).await?;
        let request = json!({ "token": fields.required("token")? });
        sign_in::redeem(State(Arc::clone(&hub)), visitor, ids, headers.clone(), as_body(&request)).await
    };
    entered(&hub, &headers, signed_in.await)
}

/// The body that the call of `/v1` would have had.
pub(super) fn as_body(request: &serde_json::Value) -> Body {
    Body::from(request.to_string())
}

/// Takes the cookie of a sign-in along to the first page, or shows the form again.
fn entered(hub: &Hub, headers: &HeaderMap, signed_in: Result<Response, ApiError>) -> Response {
    match signed_in {
        Ok(answer) => {
            let mut response = to("/");
            let cookies = answer.headers().get_all(header::SET_COOKIE).iter().cloned();
            response.headers_mut().extend(cookies.map(|cookie| (header::SET_COOKIE, cookie)));
            response
        }
        Err(error) => {
            let (code, message) = error.shown();
            let frame = stranger(hub, Section::Other, theme(headers));
            page(status(code), page_of_sign_in::render(&frame, Some(&message)))
        }
    }
}

pub(super) async fn sign_out(
    State(hub): State<Arc<Hub>>,
    ids: Ids,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let signed_out = async {
        let fields = Fields::read(body).await?;
        let caller = caller_of_cookie(&headers, &hub).await?;
        let caller = caller
            .ok_or_else(|| ApiError::new(ErrorCode::Unauthenticated, "this session has ended already"))?;
        caller.check(&hub, fields.required("csrf")?)?;
        sign_in::logout(State(Arc::clone(&hub)), caller, ids).await
    };
    let mut response = to("/sign-in");
    if let Ok(answer) = signed_out.await {
        let cookies = answer.headers().get_all(header::SET_COOKIE).iter().cloned();
        response.headers_mut().extend(cookies.map(|cookie| (header::SET_COOKIE, cookie)));
    }
    response
}
