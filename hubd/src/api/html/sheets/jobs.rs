//! Pages of jobs, objections and withdrawals.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use holdfast_protocol::operator::HostDetail;
use hub_page::RenderError;
use hub_page::frame::Section;
use hub_page::jobs as page_of_jobs;
use hub_page::sheet::Notice;
use net::server::Answer;

use super::super::form::Fields;
use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::{shown, still, went};
use crate::api::authorize::may_list;
use crate::api::mutation::Head;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::{Hub, guest_jobs, hosts as hosts_call, jobs as jobs_call};
use crate::domain::host::HostRef;

/// Hosts whose waiting entries are shown at most. Few hosts have one at a time.
const WAITING_HOSTS_MAX: u32 = 50;

pub(super) async fn all(State(hub): State<Arc<Hub>>, person: Person, RawQuery(query): RawQuery) -> Response {
    let frame = person.frame(&hub, Section::Jobs);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]).checked()?;
        let Answer(_, jobs) =
            guest_jobs::list(State(Arc::clone(&hub)), person.operator.clone(), asked).await?;
        let waiting = match may_list(&person.operator, "/v1/hosts") {
            true => Some(waiting(&hub, &person).await?),
            false => None,
        };
        let on: Option<Vec<_>> = waiting.as_ref().map(|(hosts, _)| hosts.iter().map(waiting_on).collect());
        let page = page_of_jobs::Jobs {
            waiting: on.as_deref(),
            has_more_waiting: waiting.as_ref().is_some_and(|(_, has_more)| *has_more),
            jobs: &jobs.items,
            next: jobs.next.as_deref(),
        };
        Ok(page_of_jobs::render(&frame, &page))
    };
    shown(&frame, html.await)
}

fn waiting_on(host: &HostDetail) -> page_of_jobs::WaitingOn<'_> {
    let entries = host.sections.waiting.as_deref().unwrap_or_default();
    page_of_jobs::WaitingOn { host: host.host.name.to_string(), entries }
}

/// Hosts on which something waits for a signature, and whether more were not read. What waits counts as something to look at.
async fn waiting(hub: &Arc<Hub>, person: &Person) -> Result<(Vec<HostDetail>, bool), ApiError> {
    let query = hosts_call::HostQuery {
        limit: Some(WAITING_HOSTS_MAX),
        cursor: None,
        filter: "@attention-some".parse().ok(),
    };
    let Answer(_, found) =
        hosts_call::list(State(Arc::clone(hub)), person.operator.clone(), CheckedQuery(query)).await?;
    let mut hosts = Vec::new();
    for host in found.items {
        let detail = hub.store.host(HostRef::Id(host.id), hub.clock.now()).await?;
        hosts.extend(detail.filter(|detail| detail.sections.waiting.iter().flatten().next().is_some()));
    }
    Ok((hosts, found.next.is_some()))
}

pub(super) async fn of_host(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(host): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Jobs);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]).checked()?;
        let found =
            jobs_call::list(State(Arc::clone(&hub)), person.operator.clone(), Path(host.clone()), asked);
        let Answer(_, jobs) = found.await?;
        Ok(page_of_jobs::of_host(&frame, &host, &jobs.items, jobs.next.as_deref()))
    };
    shown(&frame, html.await)
}

pub(super) async fn one(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, job)): Path<(String, String)>,
) -> Response {
    let frame = person.frame(&hub, Section::Jobs);
    let path = Path((host.clone(), job));
    let found = jobs_call::show(State(Arc::clone(&hub)), person.operator.clone(), path).await;
    let html: Result<Result<String, RenderError>, ApiError> =
        found.map(|Answer(_, detail)| page_of_jobs::one(&frame, &host, &detail, Notice::Nothing));
    shown(&frame, html)
}

pub(super) async fn withdraw(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, job)): Path<(String, String)>,
    head: Head,
) -> Response {
    let next = format!("/hosts/{host}/jobs/{job}");
    let done = jobs_call::withdraw(State(Arc::clone(&hub)), Path((host, job)), head, Body::empty()).await;
    went(&hub, &person, done, &next)
}

pub(super) async fn object(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(job): Path<String>,
    Extension(fields): Extension<Arc<Fields>>,
    head: Head,
) -> Response {
    let body = match fields.body_of(&["reason"]) {
        Ok(body) => body,
        Err(error) => return shown(&still(&hub, &person), Err(error)),
    };
    let done = guest_jobs::object(State(Arc::clone(&hub)), Path(job), head, body).await;
    went(&hub, &person, done, "/jobs")
}
