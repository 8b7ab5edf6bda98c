//! Backups and scheduled snapshots that the retention lets go.
//!
//! What comes in: the guest's backups as the records have them, one tier of its promise, which of them were proved, and
//! the time. What goes out: for each backup what its removal would be, as the gate names it. What does not protect does
//! not push out what does: a backup that is missing, not encrypted as promised, or of a time to come is neither counted
//! nor removed. And what somebody asked for does not push out what the schedule took: a guest that was taken over could
//! ask until nothing is left of the time before. It is removed itself as if it were the schedule's. The last one that
//! counts stays whatever a retention says, and so does the newest that holds a volume of which later ones have nothing.
//! Pure, and called twice: when a removal is planned, and again before it is sent.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{KeyFingerprint, OperationId, StorageName};
use holdfast_protocol::protection::{DatedBackup, Fate, Proof, Retention, SnapshotTier, Tier, Zone, prune};
use jiff::Timestamp;

use super::Prune;
use crate::model::limits;
use crate::model::records::{BackupRecord, BackupWhy, HeldMounts, SnapshotRecord, VolumeId};

/// The part of a tier's promise that says which backups are kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptTier<'a> {
    pub tier: Tier,
    /// Where its backups go.
    pub target: &'a StorageName,
    /// The key they must be encrypted with.
    pub key: Option<&'a KeyFingerprint>,
    /// Which are kept.
    pub retention: &'a Retention,
    /// By whose days and weeks.
    pub zone: &'a Zone,
}

impl KeptTier<'_> {
    /// Whether a backup is one of this tier that protects, as far as the records know.
    #[must_use]
    pub fn counts(&self, backup: &BackupRecord) -> bool {
        backup.missing_since.is_none()
            && backup.is_of(self.tier, self.target)
            && self.key.is_none_or(|key| backup.sealed.as_ref() == Some(key))
    }
}

/// When a backup was taken, by the clock that schedules go by where that is known.
#[must_use]
pub fn taken_at(backup: &BackupRecord) -> Timestamp {
    backup.point.unwrap_or(backup.taken_at)
}

/// What the removal of each of a guest's backups would be; none for those that are not this tier's or do not count.
/// Those that somebody protects in Proxmox are kept in addition to what the retention keeps and take no place in it, as
/// Proxmox does.
#[must_use]
pub fn judge<'b>(
    backups: &'b [BackupRecord],
    tier: &KeptTier<'_>,
    proofs: &BTreeMap<OperationId, Timestamp>,
    protected: &BTreeSet<VolumeId>,
    now: Timestamp,
) -> Vec<Option<Prune>> {
    let latest = now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX);
    let counts = |backup: &BackupRecord| {
        tier.counts(backup) && taken_at(backup) <= latest && !protected.contains(&backup.archive)
    };
    let proof = |backup: &BackupRecord| {
        if proofs.contains_key(&backup.taken_by) { Proof::Proved } else { Proof::None }
    };
    let fates = |of: &[&'b BackupRecord]| -> BTreeMap<&'b VolumeId, Fate> {
        let taken: Vec<DatedBackup> =
            of.iter().map(|backup| DatedBackup { at: taken_at(backup), proof: proof(backup) }).collect();
        let fates = prune(&taken, tier.retention, tier.zone);
        of.iter().map(|backup| &backup.archive).zip(fates).collect()
    };
    let newest = |of: &[&'b BackupRecord]| {
        of.iter().max_by_key(|backup| taken_at(backup)).map(|backup| &backup.archive)
    };
    let all: Vec<&BackupRecord> = backups.iter().filter(|backup| counts(backup)).collect();
    let by_itself: Vec<&BackupRecord> =
        all.iter().copied().filter(|backup| backup.why != BackupWhy::Asked).collect();
    // Mostly there are no requested backups.
    let together = if all.len() == by_itself.len() { BTreeMap::new() } else { fates(&all) };
    let alone = fates(&by_itself);
    let (last, last_by_itself) = (newest(&all), newest(&by_itself));
    let holders = only_holders(&all);
    let effect = |backup: &BackupRecord| {
        let fates = if backup.why == BackupWhy::Asked { &together } else { &alone };
        Some(match fates.get(&backup.archive)? {
            _ if last == Some(&backup.archive) => Prune::Last,
            Fate::Kept("newest proved") => Prune::NewestProved,
            Fate::Goes if holders.contains(&backup.archive) => Prune::OnlyHolder,
            Fate::Goes if last_by_itself != Some(&backup.archive) => Prune::OutsidePolicy,
            Fate::Kept(_) | Fate::Goes => Prune::Kept,
        })
    };
    backups.iter().map(effect).collect()
}

/// Of each mount of which the newest backup has nothing, the newest backup that holds it. What the newest leaves out by
/// a promise is backed up to another target.
fn only_holders<'b>(all: &[&'b BackupRecord]) -> BTreeSet<&'b VolumeId> {
    let mut from_newest = all.to_vec();
    from_newest.sort_by_key(|backup| std::cmp::Reverse(taken_at(backup)));
    let known = from_newest.first().and_then(|newest| newest.mounts.as_ref());
    let Some(HeldMounts { holds, left_out }) = known else { return BTreeSet::new() };
    let mut held: BTreeSet<&str> = holds.iter().chain(left_out).map(String::as_str).collect();
    let mut holders = BTreeSet::new();
    for backup in from_newest {
        for path in backup.mounts.iter().flat_map(|mounts| &mounts.holds) {
            if held.insert(path) {
                holders.insert(&backup.archive);
            }
        }
    }
    holders
}

/// The snapshots of a guest that its schedule took and that may go, the oldest first. The newest stays whatever a retention
/// says; where a signature took the tier away, none of it is kept.
#[must_use]
pub fn snapshots<'a>(
    all: &'a [SnapshotRecord],
    tier: Option<&SnapshotTier>,
    now: Timestamp,
) -> Vec<&'a SnapshotRecord> {
    let latest = now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX);
    let of_point = |one: &'a SnapshotRecord| Some((one.point.filter(|point| *point <= latest)?, one));
    let mut counted: Vec<(Timestamp, &SnapshotRecord)> = all.iter().filter_map(of_point).collect();
    counted.sort_by_key(|(point, _)| *point);
    let fates = match tier {
        Some(tier) => {
            let taken =
                counted.iter().map(|(at, _)| DatedBackup { at: *at, proof: Proof::None }).collect::<Vec<_>>();
            let mut fates = prune(&taken, &tier.retention, &tier.schedule.zone);
            fates.pop();
            fates
        }
        None => vec![Fate::Goes; counted.len()],
    };
    let goes = counted.iter().zip(fates).filter(|(_, fate)| *fate == Fate::Goes);
    goes.map(|((_, one), _)| *one).collect()
}

#[cfg(test)]
mod tests;
