//! One field of a guest: desired, observed and last applied.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::desired::field::GuestField;

/// A field's three values side by side, as people write them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldState {
    /// Which field.
    pub field: GuestField,
    /// What the document says; none, where it does not name the field or the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What Proxmox had when its configuration was last read; none, where it says nothing of the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// What the agent carried out last; none, where it never did since it writes that down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedValue>,
    /// From when on the guest has what Proxmox has.
    #[serde(default, skip_serializing_if = "InForce::is_now")]
    pub in_force: InForce,
}

/// What an agent carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppliedValue {
    /// The value.
    pub value: String,
    /// When it was carried out.
    pub at: Timestamp,
}

/// From when on a guest has the value in its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InForce {
    /// It has it.
    #[default]
    Now,
    /// It gets it by its next start.
    NextStart,
}

impl InForce {
    /// From when on a running guest has a change of a field, as it was recorded (`23-net-name`, `29-limits-options`).
    #[must_use]
    pub const fn of_change(field: GuestField) -> Self {
        match field {
            GuestField::Name | GuestField::Mtu | GuestField::Resolver => Self::NextStart,
            GuestField::Run
            | GuestField::Cores
            | GuestField::Memory
            | GuestField::Swap
            | GuestField::Rootfs
            | GuestField::CpuLimit
            | GuestField::CpuWeight
            | GuestField::Bridge
            | GuestField::Address
            | GuestField::Gateway
            | GuestField::Vlan
            | GuestField::Rate
            | GuestField::Firewall => Self::Now,
        }
    }

    /// Whether it has it.
    #[must_use]
    pub const fn is_now(&self) -> bool {
        matches!(self, Self::Now)
    }
}

impl FieldState {
    /// Whether document, Proxmox and what was carried out are one, as far as they are known.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let differs = |value: Option<&String>| value.is_some() && value != self.observed.as_ref();
        let applied = self.applied.as_ref().map(|applied| &applied.value);
        self.in_force.is_now() && !differs(self.desired.as_ref()) && !differs(applied)
    }
}
