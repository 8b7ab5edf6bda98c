//! The headers of a page, and errors as pages.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use holdfast_protocol::code::ErrorCode;
use hub_page::frame::Frame;
use hub_page::{CONTENT_SECURITY_POLICY, RenderError};
use net::server::as_it_is;

use crate::api::problem::ApiError;

/// What every page is sent with. No cache keeps it: it may be of another person.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

/// A page, or the plain sentence where even that cannot be written.
pub(super) fn page(status: StatusCode, html: Result<String, RenderError>) -> Response {
    match html {
        Ok(html) => as_it_is((status, HEADERS, html)),
        Err(error) => ApiError::internal(error.to_string()).into_response(),
    }
}

/// Sends the browser to another page, by GET.
pub(super) fn to(path: &'static str) -> Response {
    to_page(path)
}

/// Sends the browser to another site, by GET.
pub(super) fn to_elsewhere(url: &url::Url) -> Response {
    let Ok(location) = HeaderValue::from_str(url.as_str()) else {
        return ApiError::internal("an address that is no header").into_response();
    };
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    as_it_is((StatusCode::SEE_OTHER, headers))
}

/// The same, to a page whose path has a name in it.
pub(super) fn to_page(path: &str) -> Response {
    match HeaderValue::from_str(path) {
        Ok(path) => {
            let headers =
                [(header::LOCATION, path), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
            as_it_is((StatusCode::SEE_OTHER, headers))
        }
        Err(_) => to("/"),
    }
}

/// A file of ours to be saved.
pub(super) fn file(name: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static(name)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    as_it_is((StatusCode::OK, headers, text))
}

/// The same to an address that depends on what was done.
pub(super) fn to_address(path: &str) -> Result<Response, ApiError> {
    let location = HeaderValue::from_str(path);
    let location = location.map_err(|error| ApiError::internal(format!("{path} is no address: {error}")))?;
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok(as_it_is((StatusCode::SEE_OTHER, headers)))
}

pub(super) fn status(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// An error as a page.
pub(super) fn problem(frame: &Frame, error: ApiError) -> Response {
    let (code, message) = error.shown();
    let title = if code == ErrorCode::NotFound {
        "Not here"
    } else if code == ErrorCode::Forbidden {
        "Not allowed"
    } else {
        "This did not work"
    };
    page(status(code), hub_page::problem::render(frame, title, &message, code.as_str()))
}
