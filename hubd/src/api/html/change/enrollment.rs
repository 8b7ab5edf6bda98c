//! Pages by which a host comes in.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::EnrollmentRequestId;
use holdfast_protocol::operator::EnrollmentRequestView;
use hub_page::enrollment::{self as pages, ApprovalFields};
use hub_page::form::problem::words;
use net::server::{Answer, Ids};
use serde_json::json;

use super::submission::{frame_of, or_problem};
use crate::api::html::answer::{page, status, to};
use crate::api::html::form::Fields;
use crate::api::html::person::Person;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::{Hub, enrollment_requests, invites};
use crate::store::PAGE_MAX;

/// A name and a fingerprint.
const FORM_MAX: usize = 8 * 1024;

/// Requests that are looked through for one, in pages.
const PAGES_MAX: usize = 20;

pub(super) async fn form(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    page(StatusCode::OK, pages::invite(&frame_of(&hub, &person), "", None))
}

pub(super) async fn invite(State(hub): State<Arc<Hub>>, person: Person, ids: Ids, body: Body) -> Response {
    let frame = frame_of(&hub, &person);
    let invited = async {
        let fields = Fields::read_up_to(body, FORM_MAX).await?;
        person.check(&hub, &fields)?;
        let name = fields.optional("host_name").unwrap_or_default().trim();
        let call = (Method::POST, "/v1/invites".to_owned());
        let head = Head::of_page(call, HeaderMap::new(), person.operator.clone(), ids);
        let body = Body::from(json!({ "host_name": name }).to_string());
        Ok(match invites::create(State(Arc::clone(&hub)), head, body).await {
            Ok(Answer(code, made)) => page(code, pages::invited(&frame, name, &made)),
            Err(error) => {
                let (code, message) = in_words(error);
                page(code, pages::invite(&frame, name, Some(&message)))
            }
        })
    };
    or_problem(&frame, invited.await)
}

/// A refusal as a page shows it.
fn in_words(error: ApiError) -> (StatusCode, String) {
    let path = error.path().map(str::to_owned);
    let (code, message) = error.shown();
    (status(code), words(&message, path.as_deref()))
}

/// One request among all. There are few: an address may send thirty a minute, and each is decided.
async fn found(hub: &Hub, id: &str) -> Result<EnrollmentRequestView, ApiError> {
    let missing = || ApiError::not_found("enrollment request");
    let id: EnrollmentRequestId = id.parse().map_err(|_| missing())?;
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let batch = hub.store.enrollment_requests(after, PAGE_MAX).await?;
        after = batch.last().map(|last| (last.first_at, last.id));
        let is_last = batch.len() < PAGE_MAX as usize;
        if let Some(one) = batch.into_iter().find(|one| one.id == id) {
            return Ok(one);
        }
        if is_last {
            break;
        }
    }
    Err(missing())
}

pub(super) async fn show(State(hub): State<Arc<Hub>>, person: Person, Path(id): Path<String>) -> Response {
    let frame = frame_of(&hub, &person);
    let shown = async {
        let request = found(&hub, &id).await?;
        Ok(page(StatusCode::OK, pages::request(&frame, &request, ApprovalFields::default(), None)))
    };
    or_problem(&frame, shown.await)
}

pub(super) async fn decide(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(id): Path<String>,
    ids: Ids,
    body: Body,
) -> Response {
    let frame = frame_of(&hub, &person);
    let decided = async {
        let fields = Fields::read_up_to(body, FORM_MAX).await?;
        person.check(&hub, &fields)?;
        let field = |name| fields.optional(name).unwrap_or_default().trim();
        let typed = ApprovalFields { name: field("host_name"), fingerprint: field("fingerprint") };
        let end = if field("step") == "refuse" { "refuse" } else { "approve" };
        let call = (Method::POST, format!("/v1/enrollment-requests/{id}/{end}"));
        let head = Head::of_page(call, HeaderMap::new(), person.operator.clone(), ids);
        let (state, named) = (State(Arc::clone(&hub)), Path(id.clone()));
        let outcome = if end == "refuse" {
            enrollment_requests::refuse(state, named, head, Body::empty()).await
        } else {
            let body = json!({ "host_name": typed.name, "fingerprint": typed.fingerprint });
            enrollment_requests::approve(state, named, head, Body::from(body.to_string())).await
        };
        match outcome {
            Ok(_) => Ok(to("/")),
            Err(error) => {
                if error.code() == ErrorCode::NotFound || status(error.code()).is_server_error() {
                    return Err(error);
                }
                let request = found(&hub, &id).await?;
                let (code, message) = in_words(error);
                Ok(page(code, pages::request(&frame, &request, typed, Some(&message))))
            }
        }
    };
    or_problem(&frame, decided.await)
}
