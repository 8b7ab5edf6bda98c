//! A part in three states: desired, reported, last applied.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::NamedGuest;
use super::part::{PartContent, PartKind};
use super::users::PartUser;
use crate::generation::Generation;
use crate::id::{GuestUid, OperatorName};
use crate::protection::KeptVolume;
use crate::report::{AppliedValue, GuestReport};
use crate::storage::report::TargetReport;

/// How the states of a part go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// The host holds the document, and reports no difference.
    Settled,
    /// Something differs.
    Differs,
    /// The host has not reported on it.
    Unreported,
    /// The host reports it, and the document does not name it.
    Unnamed,
}

/// What the document says of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredPart {
    /// The generation of the newest document.
    pub generation: Generation,
    /// When that was put.
    pub put_at: Timestamp,
    /// Who put it.
    pub author: OperatorName,
    /// The content.
    pub value: PartContent,
}

/// What a host reports of a policy: the guests under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyReport {
    /// Each guest of the document that is under it.
    pub guests: Vec<GuestUnderPolicy>,
}

/// A guest under a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestUnderPolicy {
    /// Which.
    pub guest: NamedGuest,
    /// Parts of the promise that are not in force as the policy has them, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// What the last report says of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PartReport {
    /// Of a guest.
    Guest(Box<GuestReport>),
    /// Of a storage target.
    StorageTarget(Box<TargetReport>),
    /// Of the guests under a policy.
    Policy(PolicyReport),
    /// Of a volume: what becomes of its data.
    Volume(KeptVolume),
}

/// The state of a part on its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurrentPart {
    /// When the host was last heard of.
    pub reported_at: Timestamp,
    /// How long ago that was, in seconds.
    pub age_s: u64,
    /// What it reported.
    pub value: PartReport,
}

/// What the host works from, and what it carried out last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastApplied {
    /// The generation that the host holds and works from.
    pub generation: Generation,
    /// When it carried something out last, where it reported that. It reports this for fields that differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The values that it carried out last, of fields that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<AppliedField>,
}

/// A field as it was carried out last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppliedField {
    /// Which, such as `size.memory_mib`.
    pub field: String,
    /// What was carried out.
    pub applied: AppliedValue,
}

/// One difference between document and host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartDifference {
    /// Of what, such as `size.memory_mib`.
    pub path: String,
    /// What the document says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What the host reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
}

/// A part in three states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartView {
    /// What it is.
    pub kind: PartKind,
    /// Its name.
    pub name: String,
    /// Its identity, of a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<GuestUid>,
    /// How the three go together.
    pub state: PartState,
    /// What the document says; none where it does not name the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<DesiredPart>,
    /// What the host last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<CurrentPart>,
    /// What the host works from; none where it never took a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied: Option<LastApplied>,
    /// In what they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<PartDifference>,
    /// What else in the document names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<PartUser>,
}
