//! Answers to forms, and pages that cannot be shown.

use axum::http::StatusCode;
use axum::response::Response;
use hub_page::RenderError;
use hub_page::frame::{Frame, Section};
use net::server::Answer;

use super::super::answer::{page, problem, to_page};
use super::super::person::Person;
use crate::api::Hub;
use crate::api::problem::ApiError;

/// A page, or why there is none.
pub(super) fn shown(frame: &Frame, html: Result<Result<String, RenderError>, ApiError>) -> Response {
    match html {
        Ok(html) => page(StatusCode::OK, html),
        Err(error) => problem(frame, error),
    }
}

/// The frame of a page that answers a form. It is not read anew, since its address is not a page's.
pub(super) fn still(hub: &Hub, person: &Person) -> Frame {
    person.frame(hub, Section::Other)
}

/// Goes on to a page where the change was made.
pub(super) fn went<T>(hub: &Hub, person: &Person, done: Result<Answer<T>, ApiError>, next: &str) -> Response {
    match done {
        Ok(_) => to_page(next),
        Err(error) => problem(&still(hub, person), error),
    }
}
