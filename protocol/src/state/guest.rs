//! One guest in a snapshot of state.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::StateCondition;
use crate::code::ErrorCode;
use crate::desired::field::GuestField;
use crate::desired::{DesiredGuest, GuestSize};
use crate::id::{CustomerId, GoldenVersion, GuestUid, Vmid};
use crate::net::Ipv4Cidr;
use crate::protection::{NewestBackup, Posture, Protection, TierTested};
use crate::report::{AppliedValue, FieldState, GuestStatus, Health, InForce, Running};

/// One guest: desired, current, last applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateGuest {
    /// Our identity for it; none for a guest that is not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<GuestUid>,
    /// Its name.
    pub name: String,
    /// Who it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// What the newest document says of it; none, where it does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Box<DesiredGuest>>,
    /// How its host reported it; none, where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<GuestCurrent>,
    /// Fields whose values in the document, in Proxmox and as last carried out differ. Of a field that is not here, all
    /// three are the same, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_applied: Vec<StateField>,
    /// How its data is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<GuestProtection>,
    /// Conditions about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StateCondition>,
    /// What a person should know of it, by code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<GuestProblem>,
    /// When that was so.
    #[serde(default, skip_serializing_if = "GuestObserved::is_empty")]
    pub observed: GuestObserved,
}

/// A field's three values side by side, as people write them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateField {
    /// Which field.
    pub field: GuestField,
    /// What the document says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What Proxmox had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// What the agent carried out last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedValue>,
    /// From when on the guest has what Proxmox has.
    #[serde(default, skip_serializing_if = "InForce::is_now")]
    pub in_force: InForce,
}

impl From<FieldState> for StateField {
    fn from(field: FieldState) -> Self {
        let FieldState { field, desired, observed, applied, in_force } = field;
        Self { field, desired, current: observed, applied, in_force }
    }
}

/// How a guest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestCurrent {
    /// Its VMID, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// Its relation to Holdfast.
    pub status: GuestStatus,
    /// Whether it runs.
    pub run: Running,
    /// Its size, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<GuestSize>,
    /// Its address, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Cidr>,
    /// Its volumes, as Proxmox names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The image that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<GoldenVersion>,
    /// The version of its controller, once that said hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// How its controller said it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// How a guest's data is protected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestProtection {
    /// How well, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posture: Option<Posture>,
    /// The promise in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<Protection>,
    /// The parts of the document's request that are held for a signature, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
}

/// One thing that a person should know of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestProblem {
    /// For programs.
    pub code: ErrorCode,
    /// For people; these may have figures that move.
    pub observed: String,
}

/// When a guest was observed, and what is measured of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestObserved {
    /// Since when it is unknown whether it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<Timestamp>,
    /// When it was found whether it runs, where that is older than the host's bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_of: Option<Timestamp>,
    /// When its configuration was read, where that is older than the host's bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_as_of: Option<Timestamp>,
    /// When its controller last said hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hello_at: Option<Timestamp>,
    /// Why it is protected as it is, the weightiest reason first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub posture_why: Vec<String>,
    /// The newest backup of each tier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newest: Vec<NewestBackup>,
    /// What restore tests showed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<TierTested>,
}

impl GuestObserved {
    /// Whether nothing was observed that has a time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
