//! Pages of facts: start, hosts, guests, events.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::filter::FilterError;
use holdfast_protocol::operator::{EnrollmentRequestState, GuestOnHost, HostState, Page, Role};
use hub_page::frame::{Frame, Section};
use hub_page::{
    events as events_page, guest as guest_page, guests as guests_page, host as host_page,
    hosts as hosts_page, start as start_page,
};
use net::server::Answer;

use super::answer::{page, problem};
use super::person::Person;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::{Hub, alerts, events as events_call, guests as guests_call, hosts as hosts_call};

/// Guests on a page: as many as a person scrolls through.
const ROWS: u32 = 300;

/// Requests of hosts that are looked at for the first page.
const REQUESTS: u32 = 100;

/// What a list was asked for. A filter is kept as text, so that a bad one can be shown again.
#[derive(Default)]
struct ListQuery {
    filter: String,
    cursor: Option<String>,
}

impl ListQuery {
    /// Fields that no list has are passed over: a browser's bookmark is no program.
    fn of(query: Option<&str>) -> Self {
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "filter" => read.filter = value.into_owned(),
                "cursor" => read.cursor = Some(value.into_owned()),
                _ => {}
            }
        }
        read
    }
}

/// No text is no filter.
fn filter_of<F: std::str::FromStr<Err = FilterError>>(text: &str) -> Result<Option<F>, ApiError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let read: Result<F, FilterError> = text.trim().parse();
    read.map(Some).map_err(|error| ApiError::new(ErrorCode::Range, error.to_string()))
}

/// A list, or why it cannot be shown as it was asked for.
fn list<T>(answer: Result<Answer<Page<T>>, ApiError>) -> (Page<T>, Option<String>) {
    match answer {
        Ok(Answer(_, page)) => (page, None),
        Err(error) => (Page { items: Vec::new(), next: None }, Some(error.shown().1)),
    }
}

pub(super) async fn start(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Start);
    match start_of(&hub, &person, &frame).await {
        Ok(response) => response,
        Err(error) => problem(&frame, error),
    }
}

async fn start_of(hub: &Arc<Hub>, person: &Person, frame: &Frame) -> Result<Response, ApiError> {
    let state = || State(Arc::clone(hub));
    let Answer(_, incidents) = alerts::firing(state(), person.operator.clone()).await?;
    let query = hosts_call::HostQuery { limit: Some(start_page::HOSTS_SHOWN), ..Default::default() };
    let Answer(_, mut hosts) =
        hosts_call::list(state(), person.operator.clone(), CheckedQuery(query)).await?;
    hosts.items.retain(|host| host.state != HostState::Revoked);
    // Who may not let a host in is not shown who asks.
    let may_admit =
        person.operator.grant.role() >= Role::Operator && person.operator.grant.scope().is_everything();
    let requests = if may_admit { hub.store.enrollment_requests(None, REQUESTS).await? } else { Vec::new() };
    let requests: Vec<_> =
        requests.into_iter().filter(|one| one.state == EnrollmentRequestState::Pending).collect();
    let shown = start_page::Start {
        incidents: &incidents.items,
        requests: &requests,
        hosts: &hosts.items,
        has_more_hosts: hosts.next.is_some(),
    };
    Ok(page(StatusCode::OK, start_page::render(frame, &shown)))
}

pub(super) async fn hosts(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Hosts);
    let query = ListQuery::of(query.as_deref());
    let answer = match filter_of(&query.filter) {
        Ok(filter) => {
            let asked = hosts_call::HostQuery { limit: Some(ROWS), cursor: query.cursor.clone(), filter };
            hosts_call::list(State(Arc::clone(&hub)), person.operator, CheckedQuery(asked)).await
        }
        Err(error) => Err(error),
    };
    let (found, bad) = list(answer);
    let status = if bad.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let shown = hosts_page::Hosts {
        hosts: &found.items,
        filter: &query.filter,
        problem: bad.as_deref(),
        next: found.next.as_deref(),
    };
    page(status, hosts_page::render(&frame, &shown))
}

pub(super) async fn guests(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Guests);
    let query = ListQuery::of(query.as_deref());
    let answer = match filter_of(&query.filter) {
        Ok(filter) => {
            let (limit, cursor) = (Some(ROWS), query.cursor.clone());
            let asked = guests_call::GuestQuery { limit, cursor, filter, ..Default::default() };
            guests_call::list(State(Arc::clone(&hub)), person.operator, CheckedQuery(asked)).await
        }
        Err(error) => Err(error),
    };
    let (found, bad) = list(answer);
    let status = if bad.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let shown = guests_page::Guests {
        guests: &found.items,
        filter: &query.filter,
        problem: bad.as_deref(),
        next: found.next.as_deref(),
    };
    page(status, guests_page::render(&frame, &shown))
}

pub(super) async fn host(State(hub): State<Arc<Hub>>, person: Person, Path(host): Path<String>) -> Response {
    let frame = person.frame(&hub, Section::Hosts);
    match hosts_call::show(State(Arc::clone(&hub)), person.operator, Path(host)).await {
        Ok(Answer(status, detail)) => page(status, host_page::render(&frame, &detail)),
        Err(error) => problem(&frame, error),
    }
}

pub(super) async fn guest(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, guest)): Path<(String, String)>,
) -> Response {
    let frame = person.frame(&hub, Section::Guests);
    let found = one_guest(&hub, &person, &host, &guest).await;
    match found {
        Ok(one) => page(StatusCode::OK, guest_page::render(&frame, &one)),
        Err(error) => problem(&frame, error),
    }
}

/// The guest among those of its host that the person may see.
async fn one_guest(
    hub: &Arc<Hub>,
    person: &Person,
    host: &str,
    guest: &str,
) -> Result<GuestOnHost, ApiError> {
    let uid: holdfast_protocol::id::GuestUid = guest.parse().map_err(|_| ApiError::not_found("guest"))?;
    let mut cursor = None;
    loop {
        let query = guests_call::GuestQuery { host: Some(host.to_owned()), cursor, ..Default::default() };
        let Answer(_, found) =
            guests_call::list(State(Arc::clone(hub)), person.operator.clone(), CheckedQuery(query)).await?;
        if let Some(one) = found.items.into_iter().find(|one| one.guest.uid == Some(uid)) {
            return Ok(one);
        }
        match found.next {
            Some(next) => cursor = Some(next),
            None => return Err(ApiError::not_found("guest")),
        }
    }
}

pub(super) async fn events(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Events);
    let ListQuery { cursor, .. } = ListQuery::of(query.as_deref());
    let query = events_call::EventQuery { cursor, ..Default::default() };
    match events_call::list(State(Arc::clone(&hub)), person.operator, CheckedQuery(query)).await {
        Ok(Answer(status, found)) => {
            let shown = events_page::Events { events: &found.items, next: found.next.as_deref() };
            page(status, events_page::render(&frame, &shown))
        }
        Err(error) => problem(&frame, error),
    }
}
