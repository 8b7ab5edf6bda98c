//! Targets of jobs, and how an operator recognised them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CustomerId, GuestName, GuestUid, Vmid};

/// What a job is done to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// One guest.
    Guest {
        /// Our identity for it.
        uid: GuestUid,
        /// Its number, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vmid: Option<Vmid>,
        /// What the operator saw. If it is not so any more, the signature is void.
        fingerprint: Fingerprint,
    },
    /// The host itself.
    Host {},
}

/// By what a guest is recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Its name.
    pub name: GuestName,
    /// Whose it is. A job of an older `holdfast` does not say it; a copy and a guest that is taken over have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// Its volumes, as Proxmox names them.
    pub volumes: BTreeSet<String>,
}

/// Another guest that an act is about, as the operator saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenGuest {
    /// Our identity for it.
    pub uid: GuestUid,
    /// Its number.
    pub vmid: Vmid,
    /// What the operator saw. If it is not so any more, the signature is void.
    pub fingerprint: Fingerprint,
}

impl SeenGuest {
    /// The same, as a target is written.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::Guest { uid: self.uid, vmid: Some(self.vmid), fingerprint: self.fingerprint.clone() }
    }
}

/// A copy next to a guest, as the operator saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenCopy {
    /// Its number.
    pub vmid: Vmid,
    /// What the operator saw. If it is not so any more, the signature is void.
    pub fingerprint: Fingerprint,
}

/// Kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// One guest.
    Guest,
    /// The host itself.
    Host,
}

impl TargetKind {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Host => "host",
        }
    }
}

impl Target {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> TargetKind {
        match self {
            Self::Guest { .. } => TargetKind::Guest,
            Self::Host {} => TargetKind::Host,
        }
    }
}
