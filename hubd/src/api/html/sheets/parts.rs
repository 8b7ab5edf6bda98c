//! Pages of storage targets and backup policies.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use holdfast_protocol::operator::{HostDetail, Page};
use holdfast_protocol::resource::PartKind;
use hub_page::frame::Section;
use hub_page::parts::{self as page_of_parts, OnHost};
use hub_page::storage as page_of_storage;
use net::server::Answer;

use super::super::person::Person;
use super::super::query::AskedFields;
use super::outcome::shown;
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::resources::address::Address;
use crate::api::resources::read;
use crate::api::{Hub, hosts as hosts_call};
use crate::domain::host::HostRef;

/// Hosts on one page: the whole report of each is read.
const HOSTS_ON_A_PAGE: u32 = 25;

/// One page of hosts with their reports.
pub(super) async fn reports(
    hub: &Arc<Hub>,
    person: &Person,
    query: Option<&str>,
) -> Result<Page<HostDetail>, ApiError> {
    let CheckedQuery(mut asked) = AskedFields::of(query, &["cursor"]).checked::<hosts_call::HostQuery>()?;
    asked.limit = Some(HOSTS_ON_A_PAGE);
    let Answer(_, found) =
        hosts_call::list(State(Arc::clone(hub)), person.operator.clone(), CheckedQuery(asked)).await?;
    let mut items = Vec::new();
    for host in found.items {
        items.extend(hub.store.host(HostRef::Id(host.id), hub.clock.now()).await?);
    }
    Ok(Page { items, next: found.next })
}

pub(super) async fn storage(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Storage);
    let found = reports(&hub, &person, query.as_deref()).await;
    shown(&frame, found.map(|hosts| page_of_storage::render(&frame, &hosts.items, hosts.next.as_deref())))
}

pub(super) async fn policies(
    State(hub): State<Arc<Hub>>,
    person: Person,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = person.frame(&hub, Section::Policies);
    let html = async {
        let hosts = reports(&hub, &person, query.as_deref()).await?;
        let mut all = Vec::new();
        for HostDetail { host, .. } in hosts.items {
            let views = read::all(&hub, &Address::all(HostRef::Id(host.id), PartKind::Policy)).await?;
            all.extend(views.into_iter().map(|view| OnHost { host: host.name.to_string(), view }));
        }
        Ok(page_of_parts::list(&frame, PartKind::Policy, None, &all, hosts.next.as_deref()))
    };
    shown(&frame, html.await)
}

const fn section(kind: PartKind) -> Section {
    match kind {
        PartKind::StorageTarget => Section::Storage,
        PartKind::Policy => Section::Policies,
        PartKind::Guest | PartKind::Volume => Section::Guests,
    }
}

pub(super) async fn of_host(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path(host): Path<String>,
    address: Address,
) -> Response {
    let frame = person.frame(&hub, section(address.kind));
    let html = async {
        let views = read::all(&hub, &address).await?;
        let all: Vec<OnHost> = views.into_iter().map(|view| OnHost { host: host.clone(), view }).collect();
        Ok(page_of_parts::list(&frame, address.kind, Some(&host), &all, None))
    };
    shown(&frame, html.await)
}

pub(super) async fn one(
    State(hub): State<Arc<Hub>>,
    person: Person,
    Path((host, _)): Path<(String, String)>,
    address: Address,
) -> Response {
    let frame = person.frame(&hub, section(address.kind));
    let html = async {
        let (_, view) = read::one(&hub, &address).await?;
        let written = view.desired.as_ref().map(|desired| serde_json::to_string_pretty(&desired.value));
        let written = written.transpose().map_err(|error| ApiError::internal(error.to_string()))?;
        Ok(page_of_parts::one(&frame, &host, &view, written.as_deref()))
    };
    shown(&frame, html.await)
}
