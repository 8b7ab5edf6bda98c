//! Ratios above which a host counts as over-committed, by document.
//!
//! In: the section `overcommit` of a document. Out: the ratios in force. Deliberately absent: what keeps guests from growing
//! beyond a host, which is `[growth]` of the operators' policy on the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::size::PromisedPercent;

/// How much of what the host has may be promised to guests before there is a condition: `HOST_OVERCOMMITTED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OvercommitLevels {
    /// Cores of guests, in percent of the host's CPUs; 400 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_percent: Option<PromisedPercent>,
    /// Memory of guests, in percent of the host's; 100 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_percent: Option<PromisedPercent>,
    /// Disks of guests, in percent of the storage that they are on; 200 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_percent: Option<PromisedPercent>,
}

impl OvercommitLevels {
    /// These, and the usual ones for what they leave out.
    #[must_use]
    pub fn in_force(self) -> Self {
        Self {
            cores_percent: self.cores_percent.or(Some(PromisedPercent::CORES)),
            memory_percent: self.memory_percent.or(Some(PromisedPercent::MEMORY)),
            disk_percent: self.disk_percent.or(Some(PromisedPercent::DISK)),
        }
    }
}
