//! The baseline: a merge-join of two sorted lists.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use agentd::model::observed::{Detail, GuestFacts, ObservedGuest, Protection};
use agentd::model::records::{GuestRecord, Place, VolumeId};
use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::Running;

use crate::world::World;

/// What is observed of one guest, with what was recorded about it.
struct Sight<'a> {
    uid: GuestUid,
    volumes: &'a BTreeSet<VolumeId>,
    seen: &'a ObservedGuest,
    facts: &'a GuestFacts,
}

/// Both sides, sorted by uid before anything is measured.
pub struct Pairing<'a> {
    wanted: Vec<&'a DesiredGuest>,
    sights: Vec<Sight<'a>>,
}

impl<'a> Pairing<'a> {
    pub fn of(world: &'a World) -> Self {
        let mut wanted: Vec<&DesiredGuest> = world.desired.iter().collect();
        wanted.sort_unstable_by_key(|guest| guest.uid);
        let mut sights: Vec<Sight<'_>> =
            world.records.guests.iter().filter_map(|record| sight(world, record)).collect();
        sights.sort_unstable_by_key(|sight| sight.uid);
        Self { wanted, sights }
    }
}

fn sight<'a>(world: &'a World, record: &'a GuestRecord) -> Option<Sight<'a>> {
    let Place::Made { vmid, volumes, .. } = &record.place else { return None };
    let seen = world.observed.guests.get(vmid)?;
    let Detail::Known(facts) = &seen.detail else { return None };
    Some(Sight { uid: record.uid, volumes, seen, facts })
}

/// Guests on one side alone, or with a field that differs.
pub fn differing(pairing: &Pairing<'_>) -> Vec<GuestUid> {
    let mut found = Vec::new();
    let mut wanted = pairing.wanted.iter().peekable();
    let mut sights = pairing.sights.iter().peekable();
    loop {
        let order = match (wanted.peek(), sights.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(guest), Some(sight)) => guest.uid.cmp(&sight.uid),
        };
        let guest = if order.is_le() { wanted.next() } else { None };
        let sight = if order.is_ge() { sights.next() } else { None };
        match (guest, sight) {
            (Some(guest), Some(sight)) if same(guest, sight) => {}
            (Some(guest), _) => found.push(guest.uid),
            (None, Some(sight)) => found.push(sight.uid),
            (None, None) => return found,
        }
    }
}

fn same(guest: &DesiredGuest, sight: &Sight<'_>) -> bool {
    let (size, facts, seen) = (guest.size, sight.facts, sight.seen);
    let run = match guest.run {
        RunState::Running => Running::Running,
        RunState::Stopped => Running::Stopped,
    };
    facts.mark == agentd::model::mark::Mark::Of(guest.uid)
        && sight.volumes == &facts.volumes
        && guest.name.as_str() == seen.name
        && run == seen.run
        && seen.lock.is_none()
        && facts.protection == Protection::On
        && facts.cores == Some(u64::from(size.cores.get()))
        && facts.memory_mib == u64::from(size.memory_mib.get())
        && facts.swap_mib == u64::from(size.swap_mib.get())
        && facts.rootfs_bytes == Some(u64::from(size.rootfs_gib.get()) << 30)
        && facts.address == Some(guest.network.address)
        && guest.volumes.len() == facts.mounts.len()
        && guest.volumes.iter().zip(facts.mounts.values()).all(|(volume, mount)| {
            volume.mount.as_str() == mount.path && mount.bytes == Some(u64::from(volume.size_gib.get()) << 30)
        })
}
