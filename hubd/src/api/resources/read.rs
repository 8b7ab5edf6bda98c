//! Reading parts: one, or a page of all of one kind.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use holdfast_protocol::desired::{Desired, DesiredDocument};
use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::operator::{DesiredVersion, HostDetail, Page};
use holdfast_protocol::resource::effects::report_of;
use holdfast_protocol::resource::view::PartView;
use holdfast_protocol::resource::{DocumentPart, GuestRef, PartKind};
use net::server::Answer;
use serde::Deserialize;

use super::address::Address;
use crate::api::Hub;
use crate::api::auth::Operator;
use crate::api::desired::etag;
use crate::api::document_change::parsed;
use crate::api::page::{CheckedQuery, close, limit, open};
use crate::api::problem::ApiError;
use crate::domain::host::HostRef;
use crate::domain::part_view::{Situation, absent_report, unnamed_guests, view};

/// A view has the whole report of a guest.
const PARTS_PAGE_MAX: u32 = 100;

/// A host with its newest document.
struct HostDocument {
    detail: HostDetail,
    newest: Option<(DesiredVersion, Desired)>,
}

impl HostDocument {
    async fn read(hub: &Hub, host: &HostRef) -> Result<Self, ApiError> {
        let missing = || ApiError::not_found("host");
        let newest = hub.store.desired(host.clone()).await?.ok_or_else(missing)?;
        let newest = newest.map(|version| parsed(&version).map(|desired| (version, desired))).transpose()?;
        let detail = hub.store.host(host.clone(), hub.clock.now()).await?.ok_or_else(missing)?;
        Ok(Self { detail, newest })
    }

    fn document(&self) -> Option<&DesiredDocument> {
        self.newest.as_ref().map(|(_, desired)| desired.document())
    }

    fn generation(&self) -> Generation {
        self.newest.as_ref().map_or(Generation::NONE, |(version, _)| version.generation)
    }

    fn situation(&self, hub: &Hub) -> Situation<'_> {
        let newest = self.newest.as_ref().map(|(version, desired)| (version, desired.document()));
        Situation { newest, detail: &self.detail, now: hub.clock.now() }
    }
}

pub(super) async fn show(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    address: Address,
) -> Result<impl IntoResponse, ApiError> {
    let (generation, found) = one(&hub, &address).await?;
    Ok((etag(generation), Answer(StatusCode::OK, found)))
}

/// The part, and the newest version of the document.
pub(in crate::api) async fn one(hub: &Hub, address: &Address) -> Result<(Generation, PartView), ApiError> {
    let host = HostDocument::read(hub, &address.host).await?;
    let found = view(address.part()?, host.situation(hub)).ok_or_else(|| address.missing())?;
    Ok((host.generation(), found))
}

/// Every part of a kind by name, for a page.
pub(in crate::api) async fn all(hub: &Hub, address: &Address) -> Result<Vec<PartView>, ApiError> {
    let host = HostDocument::read(hub, &address.host).await?;
    let mut places = places(address, &host)?;
    places.sort_by(|(one, _), (other, _)| one.cmp(other));
    let situation = host.situation(hub);
    Ok(places.iter().filter_map(|(_, part)| view(part, situation)).collect())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartsQuery {
    limit: Option<u32>,
    cursor: Option<String>,
    filter: Option<GuestFilter>,
}

pub(super) async fn list(
    State(hub): State<Arc<Hub>>,
    _: Operator,
    address: Address,
    CheckedQuery(query): CheckedQuery<PartsQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let limit = limit(query.limit, PARTS_PAGE_MAX)? as usize;
    let after = query.cursor.as_deref().map(open).transpose()?;
    if query.filter.is_some() && address.kind != PartKind::Guest {
        return Err(ApiError::new(
            holdfast_protocol::code::ErrorCode::Range,
            format!(
                "the query is refused: a filter is for guests, and this is a list of each {}",
                address.kind.as_str()
            ),
        ));
    }
    let host = HostDocument::read(&hub, &address.host).await?;
    let mut places = places(&address, &host)?;
    places.retain(|(place, part)| {
        after.as_ref().is_none_or(|after| place > after) && is_selected(&host, query.filter.as_ref(), part)
    });
    places.sort_by(|(one, _), (other, _)| one.cmp(other));
    let next = places.get(limit).and(limit.checked_sub(1).and_then(|last| places.get(last)));
    let next = next.map(|(place, _)| close(place));
    let situation = host.situation(&hub);
    let items: Vec<PartView> =
        places.iter().take(limit).filter_map(|(_, part)| view(part, situation)).collect();
    Ok((etag(host.generation()), Answer(StatusCode::OK, Page { items, next })))
}

/// Every part of the kind, with its place in the list: by name.
fn places(address: &Address, host: &HostDocument) -> Result<Vec<(String, DocumentPart)>, ApiError> {
    let document = host.document();
    Ok(match address.kind {
        PartKind::Guest => {
            let sections = &host.detail.sections;
            let named = document.iter().flat_map(|document| &document.guests);
            let named = named.map(|guest| (format!("{} {}", guest.name, guest.uid), guest.uid));
            let unnamed = unnamed_guests(document, sections)
                .into_iter()
                .filter_map(|uid| Some((format!("{} {uid}", report_of(sections, uid)?.name), uid)));
            let part = |(place, uid)| (place, DocumentPart::Guest(GuestRef::Uid(uid)));
            named.chain(unnamed).map(part).collect()
        }
        PartKind::Volume => {
            let guest = address.within.as_ref().ok_or_else(|| address.missing())?;
            let owner = document.iter().flat_map(|document| &document.guests).find(|one| guest.names(one));
            let owner = owner.ok_or_else(|| ApiError::not_found("guest in the document"))?;
            let part =
                |name: &holdfast_protocol::id::VolumeName| DocumentPart::Volume(guest.clone(), name.clone());
            owner.volumes.iter().map(|volume| (volume.name.to_string(), part(&volume.name))).collect()
        }
        PartKind::StorageTarget => {
            let targets = document.iter().flat_map(|document| &document.storage);
            let part = |target: &holdfast_protocol::storage::StorageTarget| {
                (target.name.to_string(), DocumentPart::StorageTarget(target.name.clone()))
            };
            targets.map(part).collect()
        }
        PartKind::Policy => {
            let policies = document.iter().flat_map(|document| &document.policies);
            policies
                .map(|policy| (policy.name.to_string(), DocumentPart::Policy(policy.name.clone())))
                .collect()
        }
    })
}

/// By the last report; by the document where the host has not reported the guest.
fn is_selected(host: &HostDocument, filter: Option<&GuestFilter>, part: &DocumentPart) -> bool {
    let (Some(filter), DocumentPart::Guest(GuestRef::Uid(uid))) = (filter, part) else { return true };
    if let Some(report) = report_of(&host.detail.sections, *uid) {
        return filter.selects(&host.detail.host, report);
    }
    let guest = host.document().and_then(|document| document.guests.iter().find(|guest| guest.uid == *uid));
    guest.is_some_and(|guest| filter.selects(&host.detail.host, &absent_report(guest)))
}
