//! Pages of facts: start, hosts, guests.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::filter::FilterError;
use holdfast_protocol::operator::{
    EnrollmentRequestState, EnrollmentRequestView, GuestOnHost, HostState, HostView, Page, Role,
};
use hub_page::chart::ChartSpan;
use hub_page::first_start::FirstStart;
use hub_page::frame::{Frame, Section};
use hub_page::{
    guest as guest_page, guests as guests_page, host as host_page, hosts as hosts_page, start as start_page,
};
use net::server::Answer;

use super::answer::{self, page, problem};
use super::details;
use super::person::Person;
use super::sheets::own;
use crate::api::authorize::{may_call, may_list};
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::{Hub, alerts, guests as guests_call, hosts as hosts_call};
use crate::store::PAGE_MAX;

/// Guests on a page: as many as a person scrolls through.
const ROWS: u32 = 300;

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
fn list<T>(answer: Result<Answer<Page<T>>, ApiError>) -> (StatusCode, Page<T>, Option<String>) {
    match answer {
        Ok(Answer(status, page)) => (status, page, None),
        Err(error) => {
            let (code, message) = error.shown();
            (answer::status(code), Page { items: Vec::new(), next: None }, Some(message))
        }
    }
}

pub(super) async fn start(State(hub): State<Arc<Hub>>, person: Person) -> Response {
    let frame = person.frame(&hub, Section::Start);
    if person.operator.grant.role() == Role::Customer {
        return own::start(&hub, &person, &frame).await;
    }
    match start_of(&hub, &person, &frame).await {
        Ok(response) => response,
        Err(error) => problem(&frame, error),
    }
}

async fn start_of(hub: &Arc<Hub>, person: &Person, frame: &Frame) -> Result<Response, ApiError> {
    let state = || State(Arc::clone(hub));
    let Answer(_, incidents) = alerts::firing(state(), person.operator.clone()).await?;
    let hosts = if may_list(&person.operator, "/v1/hosts") {
        let query = hosts_call::HostQuery { limit: Some(start_page::HOSTS_SHOWN), ..Default::default() };
        let answer = hosts_call::list(state(), person.operator.clone(), CheckedQuery(query)).await?;
        let Answer(_, mut hosts) = answer;
        hosts.items.retain(|host| host.state != HostState::Revoked);
        Some(hosts)
    } else {
        None
    };
    let requests = if may_list(&person.operator, "/v1/enrollment-requests") {
        Some(undecided(hub).await?)
    } else {
        None
    };
    let first = first_start(hub, person, hosts.as_ref(), requests.as_ref()).await?;
    let shown = start_page::Start {
        first: first.as_ref(),
        incidents: &incidents.items,
        requests: requests.as_deref(),
        fleet: hosts
            .as_ref()
            .map(|hosts| start_page::Fleet { hosts: &hosts.items, has_more: hosts.next.is_some() }),
    };
    Ok(page(StatusCode::OK, start_page::render(frame, &shown)))
}

/// The first steps of a hub that has nothing yet, for who may take them.
async fn first_start(
    hub: &Hub,
    person: &Person,
    hosts: Option<&Page<HostView>>,
    requests: Option<&Vec<EnrollmentRequestView>>,
) -> Result<Option<FirstStart>, ApiError> {
    let (Some(hosts), Some(requests)) = (hosts, requests) else { return Ok(None) };
    let may = may_call(&person.operator, &Method::POST, "/v1/invites");
    if FirstStart::is_done(&hosts.items) || !may {
        return Ok(None);
    }
    let credentials = hub.store.credentials(person.operator.principal.name().clone()).await?;
    Ok(credentials.and_then(|own| FirstStart::of(&own.state, &hosts.items, requests.len())))
}

/// Requests for enrollment that nobody decided, the oldest first, a page of them at most.
async fn undecided(hub: &Hub) -> Result<Vec<EnrollmentRequestView>, ApiError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let batch = hub.store.enrollment_requests(after, PAGE_MAX).await?;
        let is_last = batch.len() < PAGE_MAX as usize;
        after = batch.last().map(|last| (last.first_at, last.id));
        found.extend(batch.into_iter().filter(|one| one.state == EnrollmentRequestState::Pending));
        if is_last || found.len() >= PAGE_MAX as usize {
            return Ok(found);
        }
    }
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
    let (status, found, bad) = list(answer);
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
    let (status, found, bad) = list(answer);
    let shown = guests_page::Guests {
        guests: &found.items,
        filter: &query.filter,
        problem: bad.as_deref(),
        next: found.next.as_deref(),
    };
    page(status, guests_page::render(&frame, &shown))
}

pub(super) async fn host(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(host): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Hosts);
    match host_of(&hub, &person, &frame, host, query.as_deref()).await {
        Ok(response) => response,
        Err(error) => problem(&frame, error),
    }
}

async fn host_of(
    hub: &Arc<Hub>,
    person: &Person,
    frame: &Frame,
    host: String,
    query: Option<&str>,
) -> Result<Response, ApiError> {
    let call = hosts_call::show(State(Arc::clone(hub)), person.operator.clone(), Path(host.clone()));
    let Answer(status, detail) = call.await?;
    let span = details::span(query);
    let usage = details::usage(hub, person, &host, None, span.series()).await?;
    let hourly = details::usage(hub, person, &host, None, ChartSpan::Month.series()).await?;
    let orders = details::orders(hub, person, &host, None).await?;
    let shown = host_page::Host {
        detail: &detail,
        usage: usage.as_ref().map(|usage| (span, usage)),
        hourly: hourly.as_ref(),
        orders: &orders,
        once: &details::once(),
    };
    Ok(page(status, host_page::render(frame, &shown)))
}

pub(super) async fn guest(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, guest)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Guests);
    match guest_of(&hub, &person, &frame, (&host, &guest), query.as_deref()).await {
        Ok(response) => response,
        Err(error) => problem(&frame, error),
    }
}

async fn guest_of(
    hub: &Arc<Hub>,
    person: &Person,
    frame: &Frame,
    (host, guest): (&str, &str),
    query: Option<&str>,
) -> Result<Response, ApiError> {
    let one = one_guest(hub, person, host, guest).await?;
    let span = details::span(query);
    let usage = details::usage(hub, person, host, Some(guest), span.series()).await?;
    let audit = details::audit(hub, person, host, guest).await?;
    let shown = guest_page::Guest {
        one: &one,
        usage: usage.as_ref().map(|usage| (span, usage)),
        audit: audit.as_ref(),
        orders: &details::orders(hub, person, host, one.guest.uid).await?,
        once: &details::once(),
        certificate: details::certificate(hub, person, host, guest).await?,
    };
    Ok(page(StatusCode::OK, guest_page::render(frame, &shown)))
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
