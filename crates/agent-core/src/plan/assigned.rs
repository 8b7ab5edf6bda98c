//! What guests were given of the host.
//!
//! In: the guests that are seen, and the levels of the document. Out: sums of cores, memory and disks, by the same rule as the
//! room for growth (`plan/capacity`): cores and memory of guests that run and of all of ours, and every disk.

use std::collections::BTreeMap;

use holdfast_protocol::desired::OvercommitLevels;
use holdfast_protocol::report::{HostAssigned, Running, STORAGES_ASSIGNED_MAX, StorageAssigned};

use super::capacity::gib;
use crate::model::mark::Mark;
use crate::model::observed::{Detail, GuestFacts, NodeFacts, Observed};

/// The sums of one observation.
#[must_use]
pub(super) fn of(observed: &Observed, node: &NodeFacts, levels: OvercommitLevels) -> HostAssigned {
    let mut disks: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sums = HostAssigned {
        guests: 0,
        unread: 0,
        cores: 0,
        memory_mib: 0,
        disks: Vec::new(),
        levels: levels.in_force(),
    };
    for seen in observed.guests.values() {
        let facts = match &seen.detail {
            Detail::Known(facts) => facts,
            Detail::Unknown(_) => {
                sums.unread = sums.unread.saturating_add(1);
                continue;
            }
        };
        if seen.run == Running::Running || matches!(facts.mark, Mark::Of(_)) {
            sums.guests = sums.guests.saturating_add(1);
            sums.cores = sums.cores.saturating_add(facts.cores.unwrap_or_else(|| node.cpus.into()));
            sums.memory_mib = sums.memory_mib.saturating_add(facts.memory_mib);
        }
        for (storage, bytes) in of_disks(facts) {
            let of = disks.entry(storage).or_default();
            *of = of.saturating_add(gib(bytes));
        }
    }
    let rows = disks.into_iter().map(|(storage, gib)| StorageAssigned { storage: storage.to_owned(), gib });
    sums.disks = rows.take(STORAGES_ASSIGNED_MAX).collect();
    sums
}

/// Each disk of a guest with a size, by its storage.
fn of_disks(facts: &GuestFacts) -> impl Iterator<Item = (&str, u64)> {
    let root = facts.rootfs_storage.as_deref().zip(facts.rootfs_bytes);
    let mounts = facts.mounts.values().filter_map(|mount| mount.volume.as_ref()?.storage().zip(mount.bytes));
    root.into_iter().chain(mounts)
}
