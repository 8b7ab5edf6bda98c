//! Parts of a document as desired, reported and last applied.
//!
//! In: the newest document, the host with its last report, the time. Out: one view for each part, and lists of them. What a
//! report does not say is left out, never guessed: a host reports what it carried out last only for fields that differ.

mod guest;
mod policy;
mod storage;

use holdfast_protocol::desired::DesiredDocument;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::resource::users::{PartUser, users};
use holdfast_protocol::resource::view::{
    AppliedField, CurrentPart, DesiredPart, LastApplied, PartDifference, PartReport, PartState, PartView,
};
use holdfast_protocol::resource::{DocumentPart, PartContent};
use jiff::Timestamp;

pub use guest::{absent_report, unnamed_guests};

/// The newest document of a host, and what the host last reported.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The version, with the document that its text says.
    pub newest: Option<(&'a DesiredVersion, &'a DesiredDocument)>,
    pub detail: &'a HostDetail,
    pub now: Timestamp,
}

/// What the report says of one part.
#[derive(Debug, Default)]
struct ReportedPart {
    value: Option<PartReport>,
    differences: Vec<PartDifference>,
    applied: Vec<AppliedField>,
}

fn differs(path: impl Into<String>, desired: Option<String>, current: Option<String>) -> PartDifference {
    PartDifference { path: path.into(), desired, current }
}

/// One part; none where neither document nor report has it.
#[must_use]
pub fn view(part: &DocumentPart, situation: Situation<'_>) -> Option<PartView> {
    let desired = situation.newest.and_then(|(version, document)| {
        let value = part.read(document)?;
        let (generation, put_at) = (version.generation, version.put_at);
        Some(DesiredPart { generation, put_at, author: version.author.clone(), value })
    });
    let document = situation.newest.map(|(_, document)| document);
    let sections = &situation.detail.sections;
    let content = desired.as_ref().map(|desired| &desired.value);
    let (reported, uid) = match (part, content) {
        (DocumentPart::Guest(guest), content) => {
            let content =
                if let Some(PartContent::Guest(content)) = content { Some(content.as_ref()) } else { None };
            let report = guest::report(guest, content, sections);
            let uid = content.map(|content| content.uid).or_else(|| report?.uid);
            (guest::reported(content, document, report), uid)
        }
        (DocumentPart::Volume(owner, _), Some(PartContent::Volume(volume))) => {
            let owner = document.and_then(|document| document.guests.iter().find(|one| owner.names(one)));
            (guest::volume(owner, volume, sections), None)
        }
        (DocumentPart::StorageTarget(name), content) => {
            let content = if let Some(PartContent::StorageTarget(content)) = content {
                Some(content.as_ref())
            } else {
                None
            };
            (storage::reported(name, content, sections), None)
        }
        (DocumentPart::Policy(_), Some(PartContent::Policy(policy))) => {
            (policy::reported(policy, document, sections), None)
        }
        (DocumentPart::Volume(..) | DocumentPart::Policy(_), _) => (ReportedPart::default(), None),
    };
    if desired.is_none() && reported.value.is_none() {
        return None;
    }
    let name = match (&desired, &reported.value) {
        (Some(desired), _) => desired.value.name().to_owned(),
        (None, Some(PartReport::Guest(report))) => report.name.clone(),
        (None, Some(PartReport::StorageTarget(report))) => report.name.to_string(),
        (None, Some(PartReport::Policy(_) | PartReport::Volume(_)) | None) => part.to_string(),
    };
    let used_by = document.map(|document| users(part, document)).unwrap_or_default();
    Some(assemble(part, (name, uid), (desired, reported), used_by, situation))
}

fn assemble(
    part: &DocumentPart,
    (name, uid): (String, Option<GuestUid>),
    (desired, reported): (Option<DesiredPart>, ReportedPart),
    used_by: Vec<PartUser>,
    situation: Situation<'_>,
) -> PartView {
    let host = &situation.detail.host;
    let ReportedPart { value, mut differences, applied } = reported;
    let wanted = desired.as_ref().map(|desired| desired.generation);
    if let Some(wanted) = wanted.filter(|wanted| *wanted != host.held) {
        differences.insert(0, differs("generation", Some(wanted.to_string()), Some(host.held.to_string())));
    }
    let state = match (&desired, &value) {
        (None, _) => PartState::Unnamed,
        (Some(_), None) => PartState::Unreported,
        (Some(_), Some(_)) if differences.is_empty() => PartState::Settled,
        (Some(_), Some(_)) => PartState::Differs,
    };
    let current = value.zip(host.seen_at).map(|(value, reported_at)| {
        let age_s = situation.now.duration_since(reported_at).as_secs();
        CurrentPart { reported_at, age_s: u64::try_from(age_s).unwrap_or(0), value }
    });
    let last_applied = (host.held != Generation::NONE).then(|| LastApplied {
        generation: host.held,
        at: applied.iter().map(|field| field.applied.at).max(),
        fields: applied,
    });
    PartView { kind: part.kind(), name, uid, state, desired, current, last_applied, differences, used_by }
}

#[cfg(test)]
mod tests;
