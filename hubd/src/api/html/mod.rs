//! The hub's pages: requests of browsers, answered with HTML.
//!
//! In: a request with the cookie of a session. Out: a page of `hub-page`. Each page stands for a call of `/v1`, whose path is
//! the same behind `/v1`, or as `person` says: whoever may make the call may see the page, and the page is made from the call's own answer.
//! Deliberately absent: rules of access and queries of its own.
//!
//! | module | pages |
//! | --- | --- |
//! | [`views`] | `/`, `/hosts…`, `/guests` |
//! | [`sheets`] | all other pages of who has a session, and their forms |
//! | [`change`] | forms that change a document, and those by which a host comes in |
//! | [`entrance`] | `/sign-in…`, `/sign-out` |
//! | [`account`] | `/account…` |
//! | [`details`] | what the pages of a host and of a guest have besides its report |
//! | [`orders`] | work orders: forms and pages |
//! | [`live`] | `/live`: what changed, while a page is open |
//! | [`look`] | `/theme`, and the theme of each page |
//! | [`person`] | who looks at a page |
//! | [`form`] | what a form sent |
//! | [`answer`] | headers of a page, and errors as pages |

mod account;
mod answer;
mod change;
mod details;
mod entrance;
mod form;
mod live;
mod look;
mod orders;
mod person;
mod query;
mod sheets;
mod views;

use std::sync::Arc;

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use net::server::as_it_is;

pub use sheets::page_paths;

use super::Hub;
use super::problem::ApiError;
use super::sign_in::oidc::CALLBACK;

/// Pages of who has a session. `person::require` decides before them.
pub(super) fn routes(hub: &Arc<Hub>) -> Router<Arc<Hub>> {
    Router::new()
        .route("/", get(views::start))
        .route("/hosts", get(views::hosts))
        .route("/hosts/{host}", get(views::host))
        .route("/hosts/{host}/guests/{guest}", get(views::guest))
        .route("/hosts/{host}/work-orders", post(orders::make))
        .route("/hosts/{host}/work-orders/{order}", get(orders::show))
        .route("/guests", get(views::guests))
        .merge(sheets::routes())
        .route("/live", get(live::live))
        .layer(middleware::from_fn_with_state(Arc::clone(hub), person::require))
        .merge(change::routes(hub))
        .layer(middleware::from_fn(look::read))
}

/// Pages of who has no session yet, or one that may only set up a sign-in.
pub(super) fn entrances() -> Router<Arc<Hub>> {
    Router::new()
        .route("/sign-in", get(entrance::form).post(entrance::sign_in))
        .route("/sign-in/link", post(entrance::by_link))
        .route("/sign-in/oidc", get(entrance::to_provider))
        .route(CALLBACK, get(entrance::from_provider))
        .route("/sign-out", post(entrance::sign_out))
        .route("/account", get(account::show))
        .route("/account/password", post(account::set_password))
        .route("/account/authenticator", post(account::begin_authenticator))
        .route("/account/authenticator/confirm", post(account::confirm_authenticator))
        .route("/theme", post(look::choose))
        .layer(middleware::from_fn(look::read))
        .route("/assets/{file}", get(asset))
}

/// A year: the name changes with the bytes.
const ASSET_CACHE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

async fn asset(Path(file): Path<String>) -> Response {
    let Some(asset) = hub_page::assets::named(&file) else {
        return ApiError::not_found("file").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.media)),
        (header::CACHE_CONTROL, ASSET_CACHE),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    as_it_is((headers, asset.bytes))
}
