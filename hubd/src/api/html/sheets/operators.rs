//! Pages of operators and machine tokens, and their forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::host_label::{LabelError, LabelSelector};
use hub_page::frame::{Frame, Section};
use hub_page::operators::{self as page_of_operators, TypedGrant};
use hub_page::sheet::Notice;
use hub_page::tokens as page_of_tokens;
use net::server::Answer;
use serde_json::json;
use uuid::Uuid;

use super::super::answer::{page, status};
use super::super::form::Fields;
use super::super::person::Person;
use super::outcome::{shown, still, went};
use super::settings::open;
use crate::api::mutation::Head;
use crate::api::problem::ApiError;
use crate::api::sign_in::make_sign_in_link;
use crate::api::{Hub, operators as operators_call, tokens as tokens_call};

/// How long a token lives where nobody says so.
const DAYS: &str = "90";
/// How long a new secret lives, and the ones before it.
const ROTATION: &str = r#"{"days":90,"overlap_hours":24}"#;

fn fresh() -> TypedGrant {
    TypedGrant { days: DAYS.to_owned(), key: Uuid::new_v4().to_string(), ..TypedGrant::default() }
}

fn typed(fields: &Fields) -> TypedGrant {
    let text = |name| fields.optional(name).unwrap_or_default().to_owned();
    // What was refused made nothing, so the next try is a request of its own.
    let key = Uuid::new_v4().to_string();
    TypedGrant { name: text("name"), role: text("role"), scope: text("scope"), days: text("days"), key }
}

/// What both calls take: name, role, scope, days.
fn request(typed: &TypedGrant) -> Result<Body, ApiError> {
    let days: u32 = typed
        .days
        .trim()
        .parse()
        .map_err(|_| ApiError::new(ErrorCode::Range, "days are a whole number, and nothing was made"))?;
    let mut request = json!({ "name": typed.name, "role": typed.role, "days": days });
    if let (Some(scope), Some(fields)) = (scope(&typed.scope)?, request.as_object_mut()) {
        fields.insert("scope".to_owned(), json!(scope));
    }
    Ok(Body::from(request.to_string()))
}

/// A scope as it is typed: nothing for all, a customer, or labels of hosts.
fn scope(text: &str) -> Result<Option<AccessScope>, ApiError> {
    let refused = |why: String| ApiError::new(ErrorCode::Range, format!("{why}; nothing was made"));
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(match text.strip_prefix("customer=") {
        Some(customer) => {
            let customer =
                customer.parse().map_err(|_| refused("this is no name of a customer".to_owned()))?;
            AccessScope::Customer { customer }
        }
        None => {
            let labels: LabelSelector =
                text.parse().map_err(|error: LabelError| refused(error.to_string()))?;
            AccessScope::Hosts { labels }
        }
    }))
}

pub(super) async fn list(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Settings);
    operators_page(&hub, &person, &frame, (&fresh(), StatusCode::OK, Notice::Nothing)).await
}

async fn operators_page(
    hub: &Arc<Hub>,
    person: &Person,
    frame: &Frame,
    (typed, answered, notice): (&TypedGrant, StatusCode, Notice<'_>),
) -> Response {
    match operators_call::list(State(Arc::clone(hub)), person.operator.clone()).await {
        Ok(Answer(_, found)) => {
            let open = open(&person.operator);
            page(answered, page_of_operators::render(frame, &open, &found.items, typed, notice))
        }
        Err(error) => shown(frame, Err(error)),
    }
}

pub(super) async fn add(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    let (frame, typed) = (still(&hub, &person), typed(&fields));
    let made = async { operators_call::make(State(Arc::clone(&hub)), head, request(&typed)?).await };
    match made.await {
        Ok(Answer(answered, made)) => page(answered, page_of_operators::made(&frame, &made)),
        Err(error) => {
            let (code, message) = error.shown();
            let refused = (&typed, status(code), Notice::Refused(&message));
            operators_page(&hub, &person, &frame, refused).await
        }
    }
}

pub(super) async fn link(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(name): Path<String>,
    head: Head,
) -> Response {
    let frame = still(&hub, &person);
    let made = make_sign_in_link(State(Arc::clone(&hub)), Path(name), head, Body::empty()).await;
    shown(&frame, made.map(|Answer(_, link)| page_of_operators::link(&frame, &link)))
}

pub(super) async fn let_go(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(name): Path<String>,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    if fields.optional("confirmed").is_none() {
        let frame = still(&hub, &person);
        let says = format!("{name} can do nothing any more, and the tokens that they made end with them.");
        let action = format!("/operators/{name}/revoke");
        return shown(
            &frame,
            Ok(page_of_operators::confirm(&frame, &format!("Let {name} go?"), &says, &action)),
        );
    }
    let done = operators_call::revoke(State(Arc::clone(&hub)), Path(name), head, Body::empty()).await;
    went(&hub, &person, done, "/operators")
}

pub(super) async fn tokens(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Settings);
    tokens_page(&hub, &person, &frame, (&fresh(), StatusCode::OK, Notice::Nothing)).await
}

async fn tokens_page(
    hub: &Arc<Hub>,
    person: &Person,
    frame: &Frame,
    (typed, answered, notice): (&TypedGrant, StatusCode, Notice<'_>),
) -> Response {
    match tokens_call::list(State(Arc::clone(hub)), person.operator.clone()).await {
        Ok(Answer(_, found)) => {
            let open = open(&person.operator);
            page(answered, page_of_tokens::render(frame, &open, &found.items, typed, notice))
        }
        Err(error) => shown(frame, Err(error)),
    }
}

pub(super) async fn make_token(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    let (frame, typed) = (still(&hub, &person), typed(&fields));
    let made = async { tokens_call::create(State(Arc::clone(&hub)), head, request(&typed)?).await };
    match made.await {
        Ok(Answer(answered, made)) => page(answered, page_of_tokens::made(&frame, &made)),
        Err(error) => {
            let (code, message) = error.shown();
            let refused = (&typed, status(code), Notice::Refused(&message));
            tokens_page(&hub, &person, &frame, refused).await
        }
    }
}

pub(super) async fn rotate(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(name): Path<String>,
    head: Head,
) -> Response {
    let frame = still(&hub, &person);
    let made = tokens_call::rotate(State(Arc::clone(&hub)), Path(name), head, Body::from(ROTATION)).await;
    shown(&frame, made.map(|Answer(_, made)| page_of_tokens::made(&frame, &made)))
}

pub(super) async fn revoke(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(name): Path<String>,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    if fields.optional("confirmed").is_none() {
        let frame = still(&hub, &person);
        let says = format!("What calls with {name} is refused from now on.");
        let action = format!("/tokens/{name}/revoke");
        return shown(
            &frame,
            Ok(page_of_operators::confirm(&frame, &format!("Revoke {name}?"), &says, &action)),
        );
    }
    let done = tokens_call::revoke(State(Arc::clone(&hub)), Path(name), head, Body::empty()).await;
    went(&hub, &person, done, "/tokens")
}
