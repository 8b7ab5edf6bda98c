//! Pages of alerts and silences, and the forms on them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::Page;
use hub_page::alerts::{self as page_of_alerts, AlertFilter, Alerts};
use hub_page::frame::Section;
use hub_page::sheet::Notice;
use hub_page::silences::{self as page_of_silences, TypedSilence};
use jiff::{SignedDuration, Timestamp};
use net::server::Answer;
use serde_json::json;

use super::super::answer::{page, status};
use super::super::form::Fields;
use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::{shown, still, went};
use crate::api::Hub;
use crate::api::alerts::{incidents, log as log_call, silences as silences_call};
use crate::api::mutation::Head;
use crate::api::problem::ApiError;

const ASKED: [&str; 6] = ["filter", "severity", "host", "guest", "code", "cursor"];

pub(super) async fn list(State(hub): State<Arc<Hub>>, person: Person, RawQuery(query): RawQuery) -> Response {
    let frame = person.frame(&hub, Section::Alerts);
    let fields = AskedFields::of(query.as_deref(), &ASKED);
    let typed = |name| fields.get(name).to_owned();
    let asked = AlertFilter {
        filter: typed("filter"),
        severity: typed("severity"),
        host: typed("host"),
        guest: typed("guest"),
        code: typed("code"),
    };
    let found = async {
        let query = fields.checked()?;
        incidents::list(State(Arc::clone(&hub)), person.operator.clone(), query).await
    };
    let (answered, found, refused) = match found.await {
        Ok(Answer(answered, found)) => (answered, found, None),
        Err(error) => {
            let (code, message) = error.shown();
            (status(code), Page { items: Vec::new(), next: None }, Some(message))
        }
    };
    let notice = refused.as_deref().map_or(Notice::Nothing, Notice::Refused);
    let alerts = Alerts { incidents: &found.items, asked: &asked, next: found.next.as_deref(), notice };
    page(answered, page_of_alerts::render(&frame, &alerts))
}

pub(super) async fn one(State(hub): State<Arc<Hub>>, person: Person, Path(id): Path<String>) -> Response {
    let frame = person.frame(&hub, Section::Alerts);
    let found = incidents::show(State(Arc::clone(&hub)), person.operator.clone(), Path(id)).await;
    shown(&frame, found.map(|Answer(_, detail)| page_of_alerts::one(&frame, &detail, Notice::Nothing)))
}

pub(super) async fn log(State(hub): State<Arc<Hub>>, person: Person, RawQuery(query): RawQuery) -> Response {
    let frame = person.frame(&hub, Section::Alerts);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]).checked()?;
        let Answer(_, log) = log_call::list(State(Arc::clone(&hub)), person.operator.clone(), asked).await?;
        Ok(page_of_alerts::log(&frame, &log.items, log.next.as_deref()))
    };
    shown(&frame, html.await)
}

/// The end of what lasts for some hours from now. How long is possible, the call says.
fn end(now: Timestamp, hours: &str) -> Result<Timestamp, ApiError> {
    let bad = || ApiError::new(ErrorCode::Range, "hours are a whole number, and nothing was changed");
    let hours: u32 = hours.trim().parse().map_err(|_| bad())?;
    now.checked_add(SignedDuration::from_hours(hours.into())).map_err(|_| bad())
}

fn body(value: &serde_json::Value) -> Body {
    Body::from(value.to_string())
}

pub(super) async fn acknowledge(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(id): Path<String>,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    let next = format!("/alerts/{id}");
    let done = async {
        let until = fields.optional("hours").map(|hours| end(hub.clock.now(), hours)).transpose()?;
        let request = until.map_or_else(|| json!({}), |until| json!({ "until": until }));
        incidents::acknowledge(State(Arc::clone(&hub)), Path(id), head, body(&request)).await
    };
    went(&hub, &person, done.await, &next)
}

pub(super) async fn unacknowledge(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(id): Path<String>,
    head: Head,
) -> Response {
    let next = format!("/alerts/{id}");
    let done = incidents::unacknowledge(State(Arc::clone(&hub)), Path(id), head, Body::empty()).await;
    went(&hub, &person, done, &next)
}

pub(super) async fn silences(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Alerts);
    let found = silences_call::list(State(Arc::clone(&hub)), person.operator.clone()).await;
    let typed = TypedSilence::default();
    let html = |Answer(_, page): Answer<Page<_>>| {
        page_of_silences::render(&frame, &page.items, &typed, Notice::Nothing)
    };
    shown(&frame, found.map(html))
}

pub(super) async fn add_silence(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    let typed = |name| fields.optional(name).unwrap_or_default().to_owned();
    let typed =
        TypedSilence { matchers: typed("matchers"), hours: typed("hours"), comment: typed("comment") };
    let added = async {
        let until = end(hub.clock.now(), &typed.hours)?;
        let matchers = typed.matchers.split(',').map(str::trim).filter(|one| !one.is_empty());
        let request =
            json!({ "matchers": matchers.collect::<Vec<_>>(), "until": until, "comment": typed.comment });
        silences_call::add(State(Arc::clone(&hub)), head, body(&request)).await
    };
    let error = match added.await {
        Ok(added) => return went(&hub, &person, Ok(added), "/silences"),
        Err(error) => error,
    };
    let (code, message) = error.shown();
    let frame = still(&hub, &person);
    match silences_call::list(State(Arc::clone(&hub)), person.operator.clone()).await {
        Ok(Answer(_, found)) => {
            let notice = Notice::Refused(&message);
            page(status(code), page_of_silences::render(&frame, &found.items, &typed, notice))
        }
        Err(error) => shown(&frame, Err(error)),
    }
}

pub(super) async fn end_silence(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(id): Path<String>,
    head: Head,
) -> Response {
    let done = silences_call::end(State(Arc::clone(&hub)), Path(id), head, Body::empty()).await;
    went(&hub, &person, done, "/silences")
}
