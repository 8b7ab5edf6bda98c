//! Bulk volumes: which backups hold them, and which leave them out.
//!
//! What comes in: what is promised of a guest's volumes, its tiers, and its backups by our records. What goes out: the
//! mounts that a backup to some storage leaves out, and what to report where a volume's promise is not kept. A volume
//! that is to be backed up to a target is in the backups of the tier for that target, and in no others. So schedule,
//! retention, key and tests are that tier's (`docs/adr/0031`). Deliberately absent: backups of a volume alone, which
//! Proxmox does not take.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{BulkBackup, DesiredGuest, DesiredVolume, VolumeKind};
use holdfast_protocol::id::{GuestUid, MountPath, StorageName};
use holdfast_protocol::protection::{KeptVolume, Protection};
use holdfast_protocol::report::Condition;

use super::Inputs;
use super::schedule::facts::{Promised, ScheduleFacts, is_good};
use super::schedule::tier::OutstandingPoint;
use crate::gate::retention::taken_at;
use crate::model::observed::{BackupFlag, Detail, MountFacts, ObservedGuest};
use crate::model::records::HeldMounts;

/// What is to be said of a guest's bulk volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bulk {
    /// Promises that are not kept.
    pub missing: Vec<String>,
    /// Volumes that are not backed up, as was decided, with the reason.
    pub decided: Vec<String>,
}

impl Bulk {
    /// As conditions of the guest.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Condition> {
        self.missing.iter().map(|text| Condition { code: ErrorCode::Unavailable, message: text.clone() })
    }
}

/// What a backup of a guest to a storage leaves out. Where the document does not say where a volume is mounted, it is
/// taken along.
pub(super) fn leaves_out(inputs: &Inputs<'_>, uid: GuestUid, storage: &StorageName) -> Vec<MountPath> {
    let promise = inputs.records.protections.get(&uid).map(|promise| promise.as_ref());
    let guest = inputs.desired.iter().find(|guest| guest.uid == uid);
    guest.map(|guest| elsewhere(&guest.volumes, promise, storage)).unwrap_or_default()
}

/// The mounts of those volumes whose data is for another target: by the promise, or by the document where the promise
/// does not name them.
#[must_use]
pub fn elsewhere(
    volumes: &[DesiredVolume],
    promise: Option<&Protection>,
    storage: &StorageName,
) -> Vec<MountPath> {
    let goes_elsewhere = |volume: &&DesiredVolume| {
        let kind = in_force(volume, promise);
        matches!(kind, VolumeKind::Bulk(BulkBackup::BackupTo(target)) if target != storage)
    };
    volumes.iter().filter(goes_elsewhere).map(|volume| volume.mount.clone()).collect()
}

/// What a volume is: by the promise, and where that names it not, by the document.
pub(super) fn in_force<'a>(volume: &'a DesiredVolume, promise: Option<&'a Protection>) -> &'a VolumeKind {
    let kept = promise.and_then(|promise| promise.volumes.iter().find(|kept| kept.name == volume.name));
    kept.map_or(&volume.kind, |kept| &kept.kind)
}

/// Judges what is promised of a guest's bulk volumes.
pub(super) fn judge(
    (promise, tiers): (&Protection, &[(Promised<'_>, OutstandingPoint)]),
    known: &ScheduleFacts<'_>,
    (wanted, seen): (Option<&DesiredGuest>, Option<&ObservedGuest>),
) -> Bulk {
    let mut bulk = Bulk::default();
    for KeptVolume { name, kind } in &promise.volumes {
        let target = match kind {
            VolumeKind::Hot => continue,
            VolumeKind::Bulk(BulkBackup::None(why)) => {
                bulk.decided.push(format!("volume {name} is not backed up: {}", why.as_str()));
                continue;
            }
            VolumeKind::Bulk(BulkBackup::BackupTo(target)) => target,
        };
        let to = tiers.iter().map(|(promised, _)| promised).find(|one| one.target == Some(target));
        let mount = wanted.and_then(|guest| guest.volumes.iter().find(|volume| volume.name == *name));
        let why = match (to, mount) {
            (None, _) => Some(format!(
                "volume {name} is to be backed up to {target}, where no tier of its policy goes"
            )),
            (Some(_), None) => Some(format!(
                "volume {name} is not in the document any more, so nobody can tell which backup holds it"
            )),
            (Some(tier), Some(volume)) => lacks(tier, known, &volume.mount, seen)
                .map(|why| format!("volume {name} is to be backed up to {target}, and {why}")),
        };
        bulk.missing.extend(why);
    }
    bulk
}

/// Why no backup of the tier holds what is mounted there.
fn lacks(
    tier: &Promised<'_>,
    known: &ScheduleFacts<'_>,
    mount: &MountPath,
    seen: Option<&ObservedGuest>,
) -> Option<String> {
    let here = |facts: &&MountFacts| facts.path == mount.as_str();
    let facts = seen.and_then(|seen| match &seen.detail {
        Detail::Known(facts) => Some(facts),
        Detail::Unknown(_) => None,
    });
    let off = |facts: &MountFacts| facts.backup == BackupFlag::Off;
    if facts.is_some_and(|facts| facts.mounts.values().find(here).is_some_and(off)) {
        return Some(format!(
            "Proxmox leaves what is mounted at {mount} out of every backup: stop the guest, set backup=1 on that mount, start it"
        ));
    }
    let good = known.backups.iter().filter(|backup| is_good(backup, tier));
    let newest = good.max_by_key(|backup| taken_at(backup)).and_then(|backup| backup.mounts.as_ref());
    let holds = |held: &HeldMounts| held.holds.iter().any(|path| path == mount.as_str());
    (!newest.is_some_and(holds)).then(|| format!("its newest {} backup does not hold it", tier.tier))
}
