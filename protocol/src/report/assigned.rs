//! What guests were given of a host, against what it has.
//!
//! In: sums that an agent reports, and the sizes of its host. Out: shares in percent, with the level above which a share is a
//! condition. Agent, hub and commands show the same numbers, since all of them are made here.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HostSection;
use crate::desired::OvercommitLevels;
use crate::size::PromisedPercent;

/// Storages with disks of guests, at most.
pub const STORAGES_ASSIGNED_MAX: usize = 64;

/// What guests were given of a host: cores and memory of those that run and of all of ours, and all disks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostAssigned {
    /// How many guests have cores and memory here.
    pub guests: u32,
    /// Guests whose configuration could not be read: nothing of them is counted.
    #[serde(default)]
    pub unread: u32,
    /// Their cores. A guest without a number has all of the host.
    pub cores: u64,
    /// Their memory in MiB, without swap.
    pub memory_mib: u64,
    /// Disks by storage.
    #[schemars(length(max = 64))]
    pub disks: Vec<StorageAssigned>,
    /// The levels in force.
    pub levels: OvercommitLevels,
}

/// Disks of guests on a storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageAssigned {
    /// Its name in Proxmox.
    pub storage: String,
    /// Their sizes together, in GiB.
    pub gib: u64,
}

/// A part of a host that is given to guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignedPart {
    /// CPUs.
    Cores,
    /// Memory.
    Memory,
    /// A storage.
    Disk(String),
}

/// What was given of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedShare {
    /// Of what.
    pub part: AssignedPart,
    /// What guests were given.
    pub assigned: u64,
    /// What there is; none where the host does not say.
    pub total: Option<u64>,
    /// The level above which it is a condition, in percent.
    pub level: u64,
}

impl AssignedShare {
    /// In percent, rounded down; none where it is not known what there is.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        let total = u128::from(self.total?);
        u64::try_from(u128::from(self.assigned).saturating_mul(100).checked_div(total)?).ok()
    }

    /// Whether more was given than the level allows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let Some(total) = self.total else { return false };
        u128::from(self.assigned).saturating_mul(100)
            > u128::from(total).saturating_mul(u128::from(self.level))
    }
}

impl fmt::Display for AssignedShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total.map_or_else(|| "?".to_owned(), |total| total.to_string());
        match &self.part {
            AssignedPart::Cores if self.assigned == 1 => write!(f, "1 core of {total} CPUs")?,
            AssignedPart::Cores => write!(f, "{} cores of {total} CPUs", self.assigned)?,
            AssignedPart::Memory => write!(f, "{} of {total} MiB memory", self.assigned)?,
            AssignedPart::Disk(storage) => write!(f, "{} of {total} GiB on {storage}", self.assigned)?,
        }
        self.percent().map_or(Ok(()), |percent| write!(f, " ({percent} %)"))
    }
}

impl HostSection {
    /// What guests were given of each part, in a fixed order.
    #[must_use]
    pub fn assigned_shares(&self) -> Vec<AssignedShare> {
        let Some(assigned) = &self.assigned else { return Vec::new() };
        let levels = assigned.levels.in_force();
        let level = |named: Option<PromisedPercent>| named.map_or(100, |percent| u64::from(percent.get()));
        let cores = AssignedShare {
            part: AssignedPart::Cores,
            assigned: assigned.cores,
            total: Some(self.cpus.into()),
            level: level(levels.cores_percent),
        };
        let memory = AssignedShare {
            part: AssignedPart::Memory,
            assigned: assigned.memory_mib,
            total: Some(self.memory_bytes >> 20),
            level: level(levels.memory_percent),
        };
        let disks = assigned.disks.iter().map(|disk| AssignedShare {
            part: AssignedPart::Disk(disk.storage.clone()),
            assigned: disk.gib,
            total: self
                .storages
                .iter()
                .find(|storage| storage.name == disk.storage)
                .and_then(|storage| storage.total_bytes)
                .map(|bytes| bytes >> 30),
            level: level(levels.disk_percent),
        });
        [cores, memory].into_iter().chain(disks).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(cores: u64, levels: serde_json::Value) -> HostSection {
        serde_json::from_value(json!({
            "node": "pve1", "proxmox_version": "9.2.11", "cpus": 4, "memory_bytes": 8_u64 << 30, "memory_used_bytes": 0,
            "storages": [{ "name": "fast", "state": "active", "total_bytes": 100_u64 << 30 }, { "name": "away", "state": "inactive" }],
            "assigned": { "guests": 3, "cores": cores, "memory_mib": 8192, "levels": levels,
                "disks": [{ "storage": "away", "gib": 900 }, { "storage": "fast", "gib": 201 }] }
        }))
        .unwrap()
    }

    #[test]
    fn a_share_is_over_its_level_and_not_at_it() {
        let over = |host: &HostSection| {
            host.assigned_shares()
                .iter()
                .filter(|share| share.is_over())
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(over(&host(16, json!({}))), ["201 of 100 GiB on fast (201 %)"]);
        assert_eq!(over(&host(17, json!({ "disk_percent": 300 }))), ["17 cores of 4 CPUs (425 %)"]);
        assert_eq!(
            over(&host(16, json!({ "memory_percent": 99, "disk_percent": 300 }))),
            ["8192 of 8192 MiB memory (100 %)"]
        );
        let shares = host(1, json!({})).assigned_shares();
        assert_eq!(shares[2].to_string(), "900 of ? GiB on away");
    }
}
