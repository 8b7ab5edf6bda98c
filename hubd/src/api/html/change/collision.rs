//! A change that another one came before.

use axum::http::StatusCode;
use axum::response::Response;
use holdfast_protocol::desired::{Desired, DesiredDocument};
use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::resource::change::{create, replace};
use holdfast_protocol::resource::diff::PromisesInForce;
use holdfast_protocol::resource::{DocumentDiff, PartContent, diff};
use hub_page::conflict::{self, Conflict};
use hub_page::form::content::values_of;
use hub_page::form::merge::merged;
use hub_page::form::parts::form_of;
use hub_page::form::values::Values;
use serde_json::Value;

use super::part_page::PartPage;
use super::submission::Submission;
use crate::api::Hub;
use crate::api::document_change::{Basis, parsed};
use crate::api::html::answer::page;
use crate::api::problem::ApiError;
use crate::domain::desired::IfMatch;
use crate::domain::host::HostRef;

/// Versions that came between, as many as are shown.
const BETWEEN_MAX: u32 = 20;

/// The newest version, and what came since the one that was seen.
pub(super) struct NewerVersions {
    pub between: Vec<DesiredVersion>,
    pub basis: Basis,
    /// What differs between the version that was seen and the newest.
    pub theirs: DocumentDiff,
}

impl NewerVersions {
    pub(super) async fn read(hub: &Hub, host: HostRef, before: &DesiredDocument) -> Result<Self, ApiError> {
        let versions = hub.store.desired_history(host.clone(), None, BETWEEN_MAX).await?;
        let mut between = versions.ok_or_else(|| ApiError::not_found("host"))?;
        let newest = between.first().ok_or_else(|| ApiError::not_found("document"))?;
        let (seen, document) = (IfMatch(newest.generation), parsed(newest)?);
        between.retain(|version| version.generation > before.generation);
        let theirs = diff(Some(before), document.document(), &PromisesInForce::new());
        Ok(Self { between, basis: Basis::read(hub, host, seen).await?, theirs })
    }

    pub(super) fn generation(&self) -> holdfast_protocol::generation::Generation {
        self.basis.document.generation
    }
}

/// What a change would have made of the document that was seen.
pub(super) fn own_diff(before: &DesiredDocument, after: DesiredDocument) -> Option<DocumentDiff> {
    let after = Desired::check(after).ok()?;
    Some(diff(Some(before), after.document(), &PromisesInForce::new()))
}

pub(super) async fn of_part(
    one: &PartPage,
    basis: &Basis,
    sent: &Submission,
    content: &Value,
) -> Result<Response, ApiError> {
    let newer = NewerVersions::read(&one.hub, one.address.host.clone(), &basis.document).await?;
    let form = form_of(one.kind());
    let wish = PartContent::parse(one.kind(), content).ok();
    let (next, collisions, after) = match one.address.part() {
        Ok(part) => {
            let after = wish.and_then(|wish| replace(&basis.document, part, wish).ok());
            let before = values_of(form, &one.content(basis)?);
            let now = one.content(&newer.basis).ok().map(|now| values_of(form, &now));
            let both = now.map(|now| merged(form, &before, &now, &sent.values));
            let (next, collisions) = both.map_or((None, Vec::new()), |(next, all)| (Some(next), all));
            (next, collisions, after)
        }
        // A new part is in nobody's way, unless its name was taken, which the next review says.
        Err(_) => {
            let after = wish.and_then(|wish| create(&basis.document, one.address.within.as_ref(), wish).ok());
            (Some(sent.values.clone()), Vec::new(), after.map(|(after, _)| after))
        }
    };
    let next: Option<Values> = next.map(|mut next| {
        next.set("generation", &newer.generation().to_string());
        next
    });
    let own = after.and_then(|after| own_diff(&basis.document, after));
    let shown = Conflict {
        name: &one.name(basis),
        host: &one.host,
        action: &one.path,
        seen: sent.seen.0,
        newest: newer.generation(),
        between: &newer.between,
        theirs: &newer.theirs,
        own: own.as_ref(),
        collisions: &collisions,
        next: next.as_ref(),
    };
    Ok(page(StatusCode::PRECONDITION_FAILED, conflict::render(&one.frame, &shown)))
}
