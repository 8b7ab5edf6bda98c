//! Requests that change a document by its parts, and the answers.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::{DocumentDiff, diff, promises_in_force};
use super::effects::{ChangeEffect, effects};
use super::merge::UniqueKeys;
use super::part::{PartContent, PartKind};
use super::signatures::{SignatureNeed, not_judged, signatures};
use crate::desired::{DesiredDocument, Reason};
use crate::generation::Generation;
use crate::id::{HostName, OperatorName};
use crate::operator::HostDetail;

/// Makes a part, or sets it whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartPut<T> {
    /// Why; kept in the history.
    pub reason: Reason,
    /// The content.
    pub value: T,
}

/// Changes fields of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartPatch {
    /// Why; kept in the history.
    pub reason: Reason,
    /// A JSON merge: what is left out stays, `null` takes a field back to its default.
    pub patch: UniqueKeys,
}

/// Puts the content of an earlier version again, as a new generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// Why; kept in the history.
    pub reason: Reason,
    /// The generation that the content comes from.
    pub to: Generation,
}

/// A part that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartChanged {
    /// What it is.
    pub kind: PartKind,
    /// Its name; of a guest that was removed, as the request named it.
    pub name: String,
    /// The generation of the document that has the change.
    pub generation: Generation,
    /// Who changed it.
    pub author: OperatorName,
    /// Why.
    pub reason: Reason,
    /// When.
    pub put_at: Timestamp,
    /// The content; none where it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<PartContent>,
}

/// What a change would do. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePreview {
    /// Of which host.
    pub host: HostName,
    /// What would differ in the document, and which guests would be less protected.
    pub diff: DocumentDiff,
    /// What the host would do, as far as document and last report can say.
    pub effects: Vec<ChangeEffect>,
    /// What would wait for a signature.
    pub signatures: Vec<SignatureNeed>,
    /// What may hold it up and was not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<String>,
    /// When the host was last heard of; none where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_at: Option<Timestamp>,
}

impl ChangePreview {
    /// Judges the change of a document, as far as it and the host's last report can say.
    #[must_use]
    pub fn of(detail: &HostDetail, before: Option<&DesiredDocument>, after: &DesiredDocument) -> Self {
        let sections = &detail.sections;
        let diff = diff(before, after, &promises_in_force(sections.guests.as_deref()));
        let effects = effects(before, after, &diff, sections);
        let signatures = signatures(before, after, &diff, sections);
        let not_judged = not_judged(&effects);
        let (host, reported_at) = (detail.host.name.clone(), detail.host.seen_at);
        Self { host, diff, effects, signatures, not_judged, reported_at }
    }
}

/// What came of a change, or with `dry_run` what would come of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ChangeAnswer<T> {
    /// It was made.
    Made(T),
    /// It was only judged.
    Preview(Box<ChangePreview>),
}
