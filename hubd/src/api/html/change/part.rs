//! A form for one part, new or existing.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::resource::diff::volume_words;
use holdfast_protocol::resource::requests::{ChangeAnswer, PartChanged};
use holdfast_protocol::resource::{DocumentPart, PartContent, PartKind};
use hub_page::edit::{self, Edit, Novelty, VolumeLink};
use hub_page::form::content::{content_of, values_of};
use hub_page::form::merge::Collision;
use hub_page::form::name_choices::KnownNames;
use hub_page::form::parts::form_of;
use hub_page::form::problem::{Problem, REASON, place};
use hub_page::form::values::Values;
use hub_page::review::{self, Review, WayBack};
use net::server::{Answer, Ids};
use serde_json::{Value, json};
use uuid::Uuid;

use super::part_page::PartPage;
use super::submission::{Step, Submission, or_problem};
use crate::api::Hub;
use crate::api::document_change::{Basis, DryRunQuery, Mode};
use crate::api::html::answer::{page, status, to_address};
use crate::api::page::CheckedQuery;
use crate::api::problem::ApiError;
use crate::api::resources;
use crate::domain::desired::IfMatch;
use crate::domain::host::HostRef;

/// The longest forms are those of policies, with a hundred fields; percent signs triple a text.
pub(super) const PART_FORM_MAX: usize = 64 * 1024;

impl PartPage {
    fn novelty(&self) -> Novelty {
        if self.path.ends_with("/new") { Novelty::New } else { Novelty::Existing }
    }

    /// Where refusals of the whole document begin their paths, if they are about this part.
    fn prefix(&self, basis: &Basis) -> String {
        let document = &basis.document;
        let guest_at = |is_it: &dyn Fn(&holdfast_protocol::desired::DesiredGuest) -> bool| {
            document.guests.iter().position(is_it).unwrap_or(document.guests.len())
        };
        match (self.kind(), self.address.part().ok()) {
            (PartKind::Guest, Some(DocumentPart::Guest(guest))) => {
                format!("guests[{}]", guest_at(&|one| guest.names(one)))
            }
            (PartKind::Guest, _) => format!("guests[{}]", document.guests.len()),
            (PartKind::Volume, part) => {
                let at = guest_at(&|one| self.address.within.as_ref().is_some_and(|guest| guest.names(one)));
                let volumes = document.guests.get(at).map_or(&[][..], |guest| &guest.volumes);
                let is_it = |name: &str| {
                    part.is_some_and(
                        |part| matches!(part, DocumentPart::Volume(_, own) if own.as_str() == name),
                    )
                };
                let volume = volumes.iter().position(|one| is_it(one.name.as_str())).unwrap_or(volumes.len());
                format!("guests[{at}].volumes[{volume}]")
            }
            (PartKind::StorageTarget, part) => {
                let is_it = |name: &str| {
                    part.is_some_and(
                        |part| matches!(part, DocumentPart::StorageTarget(own) if own.as_str() == name),
                    )
                };
                let at = document.storage.iter().position(|one| is_it(one.name.as_str()));
                format!("storage[{}]", at.unwrap_or(document.storage.len()))
            }
            (PartKind::Policy, part) => {
                let is_it = |name: &str| {
                    part.is_some_and(|part| matches!(part, DocumentPart::Policy(own) if own.as_str() == name))
                };
                let at = document.policies.iter().position(|one| is_it(one.name.as_str()));
                format!("policies[{}]", at.unwrap_or(document.policies.len()))
            }
        }
    }

    /// The refusal of a call at its field.
    fn placed(&self, basis: &Basis, error: ApiError) -> Problem {
        let prefix = self.prefix(basis);
        let path = error.path().map(str::to_owned);
        // Of two that are the same, the second may be the other one; this form is where it can be mended.
        let is_twice = matches!(
            error.code(),
            ErrorCode::DuplicateAddress
                | ErrorCode::DuplicateName
                | ErrorCode::DuplicateTarget
                | ErrorCode::DuplicateVmid
                | ErrorCode::DuplicateVolume
        );
        let within = path.as_deref().and_then(|path| match path.strip_prefix(prefix.as_str()) {
            Some(rest) => rest.strip_prefix('.'),
            None if is_twice => path.rsplit_once("].").map(|(_, field)| field),
            // A path of another part of the document is none of this form.
            None if ["guests[", "policies[", "storage["].iter().any(|list| path.starts_with(list)) => None,
            None => Some(path),
        });
        place(form_of(self.kind()), within, &error.shown().1)
    }

    /// The form with these values.
    pub(super) fn shown(
        &self,
        basis: &Basis,
        (seen, values): (Generation, &Values),
        (code, problems): (StatusCode, &[Problem]),
        taken_over: &[Collision],
    ) -> Response {
        let guest = self.address.part().ok().and_then(|part| part.read(&basis.document));
        let volumes: Vec<VolumeLink> = match guest {
            Some(PartContent::Guest(guest)) => guest
                .volumes
                .iter()
                .map(|volume| VolumeLink { name: volume.name.to_string(), words: volume_words(volume) })
                .collect(),
            Some(PartContent::StorageTarget(_) | PartContent::Policy(_) | PartContent::Volume(_)) | None => {
                Vec::new()
            }
        };
        let form = Edit {
            kind: self.kind(),
            novelty: self.novelty(),
            name: &self.name(basis),
            host: &self.host,
            action: &self.path,
            base: &self.base,
            values,
            seen,
            known: &KnownNames::of(&basis.document, &basis.detail.sections),
            problems,
            taken_over,
            volumes: &volumes,
        };
        page(code, edit::render(&self.frame, &form))
    }

    async fn open(&self) -> Result<Response, ApiError> {
        let seen = newest(&self.hub, &self.address.host).await?;
        let basis = Basis::read(&self.hub, self.address.host.clone(), IfMatch(seen)).await?;
        let values = match self.novelty() {
            Novelty::Existing => values_of(form_of(self.kind()), &self.content(&basis)?),
            Novelty::New => beginning(self.kind()),
        };
        Ok(self.shown(&basis, (seen, &values), (StatusCode::OK, &[]), &[]))
    }

    async fn handle(&self, ids: Ids, body: Body) -> Result<Response, ApiError> {
        let sent = Submission::read(&self.hub, &self.person, body, PART_FORM_MAX).await?;
        let basis = Basis::read(&self.hub, self.address.host.clone(), sent.seen).await?;
        let form = |code, problems: &[Problem]| {
            Ok(self.shown(&basis, (sent.seen.0, &sent.values), (code, problems), &[]))
        };
        let base = match self.novelty() {
            Novelty::Existing => self.content(&basis)?,
            Novelty::New => empty(self.kind(), &sent.values),
        };
        if sent.step == Step::Edit {
            return form(StatusCode::OK, &[]);
        }
        let content = match content_of(form_of(self.kind()), base, &sent.values) {
            Ok(content) => content,
            Err(problems) => return form(StatusCode::BAD_REQUEST, &problems),
        };
        match self.call(ids, &sent, &content).await {
            Ok(ChangeAnswer::Made(changed)) => {
                to_address(&format!("/hosts/{}/desired/history/{}", self.host, changed.generation))
            }
            Ok(ChangeAnswer::Preview(preview)) => {
                let shown = Review {
                    name: &self.name(&basis),
                    host: &self.host,
                    action: &self.path,
                    preview: &preview,
                    fields: &carried(&sent),
                    key: &Uuid::new_v4().to_string(),
                    way_back: WayBack::Form,
                };
                Ok(page(StatusCode::OK, review::render(&self.frame, &shown)))
            }
            Err(error) if error.code() == ErrorCode::PreconditionFailed => {
                super::collision::of_part(self, &basis, &sent, &content).await
            }
            Err(error) => {
                let code = status(error.code());
                if code.is_server_error() || code == StatusCode::TOO_MANY_REQUESTS {
                    return Err(error);
                }
                form(code, &[self.placed(&basis, error)])
            }
        }
    }

    /// Makes the call of `/v1`, with the same body that a program would send.
    async fn call(
        &self,
        ids: Ids,
        sent: &Submission,
        content: &Value,
    ) -> Result<ChangeAnswer<PartChanged>, ApiError> {
        let verb = match self.novelty() {
            Novelty::New => Method::POST,
            Novelty::Existing => Method::PUT,
        };
        let head = sent.head(&self.person, ids, (verb, format!("/v1{}", self.base)))?;
        let mode = if sent.step == Step::Apply { Mode::Apply } else { Mode::DryRun };
        let query = CheckedQuery(DryRunQuery::of(mode));
        let body = Body::from(json!({ "reason": sent.values.get(REASON), "value": content }).to_string());
        let (hub, address, headers) = (State(Arc::clone(&self.hub)), self.address.clone(), sent.headers()?);
        let (_, Answer(_, answer)) = match self.novelty() {
            Novelty::New => resources::create(hub, head, address, headers, query, body).await?,
            Novelty::Existing => resources::put(hub, head, address, headers, query, body).await?,
        };
        Ok(answer)
    }
}

/// What the next form of the same change sends again.
pub(super) fn carried(sent: &Submission) -> Values {
    let mut values = sent.values.clone();
    values.set("generation", &sent.seen.0.to_string());
    values
}

/// The generation of the newest document; none is 0.
pub(super) async fn newest(hub: &Hub, host: &HostRef) -> Result<Generation, ApiError> {
    let found = hub.store.desired(host.clone()).await?.ok_or_else(|| ApiError::not_found("host"))?;
    Ok(found.map_or(Generation::NONE, |version| version.generation))
}

/// What a new part holds before the form.
fn empty(kind: PartKind, values: &Values) -> Value {
    match kind {
        PartKind::Guest => json!({ "uid": values.get("uid"), "volumes": [] }),
        PartKind::Volume | PartKind::StorageTarget | PartKind::Policy => json!({}),
    }
}

/// What the form of a new part begins with. The identity of a guest is made with its form, so that sending it twice makes one.
fn beginning(kind: PartKind) -> Values {
    match kind {
        PartKind::Guest => [
            ("uid", Uuid::now_v7().to_string().as_str()),
            ("run", "running"),
            ("size.cores", "1"),
            ("size.memory_mib", "1024"),
            ("size.swap_mib", "0"),
            ("size.rootfs_gib", "8"),
            ("network.bridge", "vmbr0"),
        ]
        .into_iter()
        .collect(),
        PartKind::Volume => [("kind", "hot")].into_iter().collect(),
        PartKind::StorageTarget => [
            ("state", "attached"),
            ("role", "local-backup"),
            ("class", "slow"),
            ("schedulable", "yes"),
            ("backend", "usb"),
        ]
        .into_iter()
        .collect(),
        PartKind::Policy => [
            ("tiers.local", "yes"),
            ("tiers.local.schedule.at", "02:30"),
            ("tiers.local.schedule.zone", "UTC"),
            ("tiers.local.schedule.jitter_min", "30"),
            ("tiers.local.schedule.window_min", "240"),
            ("tiers.local.consistency", "application"),
            ("tiers.local.retention", "keep"),
            ("tiers.local.retention.keep.daily", "7"),
            ("tiers.local.retention.keep.weekly", "4"),
            ("tiers.local.restore_test_days", "30"),
        ]
        .into_iter()
        .collect(),
    }
}

pub(super) async fn form(one: PartPage) -> Response {
    or_problem(&one.frame, one.open().await)
}

pub(super) async fn submit(one: PartPage, ids: Ids, body: Body) -> Response {
    or_problem(&one.frame, one.handle(ids, body).await)
}
