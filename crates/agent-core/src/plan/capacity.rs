//! Room for growth on a storage and in the node's memory.
//!
//! What comes in: what Proxmox says of storages and node, the sizes of the guests that are seen, and what is under way. What
//! goes out: why there is no room, with the numbers, or nothing. A disk fits when all of it could be written now, and when
//! the storage is not promised beyond the policy's share with it. Memory is that of guests that run and of all of ours, which
//! can be started any time. What is not known is no room. No signature for one guest changes any of it: the policy does.
//! Deliberately absent: the metadata of thin pools, which no token of the agent's may read (`docs/adr/0076`).

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, StorageName};
use holdfast_protocol::report::Running;
use holdfast_trust::growth::GrowthLimits;

use super::Inputs;
use crate::model::growth::{Amount, UnderWay};
use crate::model::mark::Mark;
use crate::model::observed::{Detail, GuestFacts, ObservedGuest, StorageFact};

/// Why there is no room.
pub(super) type NoRoom = (ErrorCode, String);

/// What is promised to guests.
#[derive(Debug, Default)]
pub(super) struct Promised {
    disks: BTreeMap<String, u64>,
    memory_mib: u64,
    /// Of operations under way, and of those of this plan: on each storage, since it is not known on which.
    more_gib: u64,
}

impl Promised {
    /// To the guests that are seen, and by what is under way.
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let mut promised = Self::default();
        let under_way =
            || inputs.records.growth.ledger.iter().filter(|grown| grown.under_way == UnderWay::Yes);
        // What is being made may be seen already, and counts once.
        let making: BTreeSet<GuestUid> =
            under_way().filter(|grown| grown.amount.guests > 0).map(|grown| grown.guest).collect();
        for seen in inputs.observed.guests.values() {
            let Detail::Known(facts) = &seen.detail else { continue };
            if !matches!(facts.mark, Mark::Of(uid) if making.contains(&uid)) {
                promised.seen(seen, facts);
            }
        }
        for grown in under_way() {
            promised.more_gib = promised.more_gib.saturating_add(grown.amount.disk_gib);
            promised.memory_mib = promised.memory_mib.saturating_add(grown.amount.memory_mib);
        }
        promised
    }

    fn seen(&mut self, seen: &ObservedGuest, facts: &GuestFacts) {
        if seen.run == Running::Running || matches!(facts.mark, Mark::Of(_)) {
            self.memory_mib = self.memory_mib.saturating_add(facts.memory_mib);
        }
        let root = facts.rootfs_storage.as_deref().zip(facts.rootfs_bytes);
        let mounts =
            facts.mounts.values().filter_map(|mount| mount.volume.as_ref()?.storage().zip(mount.bytes));
        for (storage, bytes) in root.into_iter().chain(mounts) {
            self.add(storage, gib(bytes));
        }
    }

    fn add(&mut self, storage: &str, gib: u64) {
        let of = self.disks.entry(storage.to_owned()).or_default();
        *of = of.saturating_add(gib);
    }

    /// Counts what this plan begins.
    pub fn take(&mut self, disks: &[(String, u64)], amount: &Amount) {
        for (storage, gib) in disks {
            self.add(storage, *gib);
        }
        self.memory_mib = self.memory_mib.saturating_add(amount.memory_mib);
    }

    /// Why there is no room for it, if so.
    pub fn lacks(&self, inputs: &Inputs<'_>, disks: &[(String, u64)], amount: &Amount) -> Option<NoRoom> {
        let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
        for (storage, gib) in disks {
            let of = wanted.entry(storage).or_default();
            *of = of.saturating_add(*gib);
        }
        let limits = &inputs.records.growth.limits;
        let of_storage = |(storage, gib): (&str, u64)| self.storage_lacks(inputs, limits, (storage, gib));
        let lacks = wanted.into_iter().find_map(of_storage);
        lacks.or_else(|| {
            (amount.memory_mib > 0).then(|| self.memory_lacks(inputs, limits, amount.memory_mib))?
        })
    }

    fn storage_lacks(
        &self,
        inputs: &Inputs<'_>,
        limits: &GrowthLimits,
        (storage, asked): (&str, u64),
    ) -> Option<NoRoom> {
        let fact = storage.parse::<StorageName>().ok().and_then(|name| inputs.observed.storages.get(&name));
        let (total, available) = match fact {
            Some(StorageFact::Active { total, available, .. }) if *total > 0 => (*total, *available),
            Some(StorageFact::Active { .. } | StorageFact::Inactive | StorageFact::Unknown) | None => {
                let text = format!(
                    "how much room storage {storage} has is not known now: look at it with `pvesm status`"
                );
                return Some((ErrorCode::Unavailable, text));
            }
        };
        let left = available >> 30;
        if asked > left {
            let text = format!(
                "storage {storage} has {left} GiB left, and it asks {asked} GiB: free some of it, or name another target; no \
                 signature changes that"
            );
            return Some((ErrorCode::StorageFull, text));
        }
        let promised = self.disks.get(storage).copied().unwrap_or_default().saturating_add(self.more_gib);
        let percent = limits.disk_percent;
        let most = share(total, percent) >> 30;
        (promised.saturating_add(asked) > most).then(|| {
            let text = format!(
                "storage {storage} has {} GiB, of which disks were promised {promised} GiB, it asks {asked} GiB more, and {most} \
                 GiB ({percent} %) may be promised: operators raise disk_percent in [growth] of the policy, or another target is \
                 named",
                gib(total)
            );
            (ErrorCode::StorageFull, text)
        })
    }

    fn memory_lacks(&self, inputs: &Inputs<'_>, limits: &GrowthLimits, asked: u64) -> Option<NoRoom> {
        let Some(node) = &inputs.observed.node else {
            return Some((
                ErrorCode::Unavailable,
                "how much memory the node has is not known now".to_owned(),
            ));
        };
        let (total, reserve) = (node.memory_bytes >> 20, u64::from(limits.memory_reserve_mib));
        let most = share(total, limits.memory_percent).saturating_sub(reserve);
        let promised = self.memory_mib;
        (promised.saturating_add(asked) > most).then(|| {
            let text = format!(
                "the node has {total} MiB of memory, of which guests were promised {promised} MiB, it asks {asked} MiB more, and \
                 {most} MiB may be promised: make other guests smaller, or operators raise memory_percent or lower \
                 memory_reserve_mib in [growth] of the policy"
            );
            (ErrorCode::MemoryFull, text)
        })
    }
}

fn share(total: u64, percent: u32) -> u64 {
    let share = u128::from(total) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Whole GiB, at least as many.
pub(super) const fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30)
}
