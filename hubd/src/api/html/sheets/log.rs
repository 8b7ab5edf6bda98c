//! Pages of events and audits.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use holdfast_protocol::operator::Page;
use hub_page::audit::{self as page_of_audit, HostAudit};
use hub_page::events as page_of_events;
use hub_page::frame::Section;
use hub_page::sheet::Notice;
use net::server::Answer;

use super::super::answer::{page, status};
use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::shown;
use crate::api::events::{self as events_call, EventQuery};
use crate::api::hosts::host_ref;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::{Hub, guest_audit as guest_audit_call, hosts as hosts_call};
use crate::domain::host::HostRef;

/// Hosts on one page of audits: the evidence of each is read.
const HOSTS_ON_A_PAGE: u32 = 50;

pub(super) async fn events(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Events);
    let fields = AskedFields::of(query.as_deref(), &["text", "host", "cursor"]);
    let (text, host) = (fields.get("text").to_owned(), fields.get("host").to_owned());
    let (answered, found, refused) = match found_events(&hub, &person, fields).await {
        Ok(found) => (axum::http::StatusCode::OK, found, None),
        Err(error) => {
            let (code, message) = error.shown();
            (status(code), nothing(), Some(message))
        }
    };
    let events = page_of_events::Events {
        events: &found.items,
        text: &text,
        host: &host,
        next: found.next.as_deref(),
        notice: refused.as_deref().map_or(Notice::Nothing, Notice::Refused),
    };
    page(answered, page_of_events::render(&frame, &events))
}

const fn nothing<T>() -> Page<T> {
    Page { items: Vec::new(), next: None }
}

async fn found_events(
    hub: &Arc<Hub>,
    person: &Person,
    fields: AskedFields,
) -> Result<Page<holdfast_protocol::operator::EventView>, ApiError> {
    let host = fields.get("host").to_owned();
    let CheckedQuery(mut query) = fields.without("host").checked::<EventQuery>()?;
    if !host.is_empty() {
        // A host that is not there has no events: the answer tells nobody which hosts there are.
        let Some(found) = hub.store.host(host_ref(&host)?, hub.clock.now()).await? else {
            return Ok(nothing());
        };
        query.host = Some(found.host.id);
    }
    let Answer(_, page) =
        events_call::list(State(Arc::clone(hub)), person.operator.clone(), CheckedQuery(query)).await?;
    Ok(page)
}

pub(super) async fn audit(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Audit);
    let html = async {
        let asked = AskedFields::of(query.as_deref(), &["cursor"]);
        let CheckedQuery(mut asked) = asked.checked::<hosts_call::HostQuery>()?;
        asked.limit = Some(HOSTS_ON_A_PAGE);
        let Answer(_, found) =
            hosts_call::list(State(Arc::clone(&hub)), person.operator.clone(), CheckedQuery(asked)).await?;
        let mut hosts = Vec::new();
        for host in found.items {
            let evidence = hub.store.audit_evidence(HostRef::Id(host.id)).await?;
            hosts.extend(evidence.map(|evidence| HostAudit { host, evidence }));
        }
        Ok(page_of_audit::render(&frame, &hosts, found.next.as_deref()))
    };
    shown(&frame, html.await)
}

pub(super) async fn audit_heads(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(host): Path<String>,
) -> Response {
    let frame = person.frame(&hub, Section::Audit);
    let state = State(Arc::clone(&hub));
    let found = hosts_call::audit_heads(state, person.operator.clone(), Path(host.clone())).await;
    shown(&frame, found.map(|Answer(_, evidence)| page_of_audit::heads(&frame, &host, &evidence)))
}

pub(super) async fn guest_audit(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, guest)): Path<(String, String)>,
) -> Response {
    let frame = person.frame(&hub, Section::Audit);
    let path = Path((host.clone(), guest.clone()));
    let found = guest_audit_call::newest(State(Arc::clone(&hub)), person.operator.clone(), path).await;
    shown(&frame, found.map(|Answer(_, audit)| page_of_audit::of_guest(&frame, &host, &guest, &audit)))
}
