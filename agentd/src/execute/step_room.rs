//! The step that checks room for one more snapshot.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, StorageName};

use super::context::{Context, Started, StepOutput};
use super::identity::{free_config, vmid};
use super::step_update;
use super::trouble::{StepError, StepRecovery};
use crate::gate::restore_capacity::{self, Filled, Packed};
use crate::model::disks::Content;
use crate::model::limits;
use crate::model::records::{self, TakenBy};
use crate::operation::log::Finding;
use crate::operation::{Operation, Snapshot};
use crate::port::pve::read::StorageStatus;
use crate::port::pve::{CanSnapshot, GuestConfig, VolumeId};

/// The kinds of storage that can snapshot a container's volume.
const CAN: [&str; 5] = ["btrfs", "cephfs", "lvmthin", "rbd", "zfspool"];

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let config = free_config(context).await?;
    let new = match &context.progress.operation {
        Operation::Snapshot(new) => new,
        Operation::UpdateController(update) => {
            // It needs none: the guest's way back is its previous controller. One is for a person, where it can be had.
            let why = match step_update::bulk_volume(&config) {
                Some(why) => Some(why),
                None => lacks_room(context, &update.snapshot, &config).await?,
            };
            let facts = why.into_iter().map(Finding::Condition).collect();
            return Ok(Started::Learnt(StepOutput { facts, note: None }));
        }
        Operation::AdoptGuest(_)
        | Operation::AttachVolume(_)
        | Operation::Backup(_)
        | Operation::Destroy(_)
        | Operation::DiscardCopy(_)
        | Operation::ExpireSnapshot(_)
        | Operation::Grow(_)
        | Operation::ReassignVolume(_)
        | Operation::RebaseGuest(_)
        | Operation::Provision(_)
        | Operation::QuiescedBackup(_)
        | Operation::PruneBackup(_)
        | Operation::Reconfigure(_)
        | Operation::RestoreCopy(_)
        | Operation::RestartGuest(_)
        | Operation::RestoreTest(_)
        | Operation::RollBack(_)
        | Operation::Start(_)
        | Operation::Stop(_)
        | Operation::SwapGuest(_) => return Err(StepError::fault("only a snapshot asks for room")),
    };
    match lacks_room(context, new, &config).await? {
        Some(problem) => Err(StepError { problem, next: StepRecovery::GiveUp }),
        None => Ok(Started::Learnt(StepOutput::nothing())),
    }
}

/// Why no snapshot can be taken, where the guest and its storages answer.
async fn lacks_room(
    context: &Context<'_>,
    new: &Snapshot,
    config: &GuestConfig,
) -> Result<Option<ErrorBody>, StepError> {
    if let Some(full) = beyond_quota(context, new).await? {
        return Ok(Some(full));
    }
    let storages = storages(context, config).await?;
    if context.ports.pve.can_snapshot(vmid(context)?).await? == CanSnapshot::No {
        return Ok(Some(incapable(config, &storages)));
    }
    let full = storages.iter().find_map(|(storage, (volume, status))| {
        let why = too_full(status)?;
        let text = format!(
            "volume {volume} lies on {storage}, which {why}: no snapshot is taken until there is room"
        );
        Some(ErrorBody::new(ErrorCode::StorageFull, text))
    });
    Ok(full)
}

async fn beyond_quota(context: &Context<'_>, new: &Snapshot) -> Result<Option<ErrorBody>, StepError> {
    let own = context.ports.store.snapshots(new.target.uid).await?;
    // A repeat after a crash finds its own.
    let others =
        own.iter().filter(|one| one.taken_by == new.taken_by && one.made_by != context.progress.id).count();
    let most = match new.taken_by {
        TakenBy::Guest | TakenBy::Agent | TakenBy::Job => limits::SNAPSHOTS_PER_GUEST,
        TakenBy::Schedule => limits::SCHEDULED_SNAPSHOTS_PER_GUEST,
    };
    if others < most {
        return Ok(None);
    }
    let text = format!(
        "the guest has {others} snapshots, and no more than {most} are allowed: remove one, or wait until one expires"
    );
    Ok(Some(ErrorBody::new(ErrorCode::Quota, text)))
}

/// Each storage with a mounted volume, with one such volume for the message.
async fn storages(
    context: &Context<'_>,
    config: &GuestConfig,
) -> Result<BTreeMap<StorageName, (VolumeId, StorageStatus)>, StepError> {
    let mut found = BTreeMap::new();
    for volume in mounted(config) {
        let storage: StorageName = volume
            .storage()
            .parse()
            .map_err(|_| StepError::fault(format!("volume {volume} names no storage")))?;
        if let Entry::Vacant(place) = found.entry(storage) {
            let status = context.ports.pve.storage_status(place.key()).await?;
            place.insert((volume.clone(), status));
        }
    }
    Ok(found)
}

fn mounted(config: &GuestConfig) -> impl Iterator<Item = &VolumeId> {
    config.rootfs.iter().chain(config.mounts.values()).filter_map(|disk| disk.volume())
}

fn incapable(config: &GuestConfig, storages: &BTreeMap<StorageName, (VolumeId, StorageStatus)>) -> ErrorBody {
    let cannot = |volume: &&VolumeId| {
        let kind = storages.iter().find(|(name, _)| name.as_str() == volume.storage());
        kind.is_none_or(|(_, (_, status))| !CAN.contains(&status.kind.as_str()))
    };
    let named: Vec<&str> = mounted(config).filter(cannot).map(VolumeId::as_str).collect();
    let which = if named.is_empty() { "a volume of it".to_owned() } else { named.join(", ") };
    let text = format!("the guest cannot be snapshotted: {which} lies on a storage without snapshots");
    ErrorBody::new(ErrorCode::Unsupported, text)
}

/// Why a storage has no room for disks that are restored from this archive.
pub(super) async fn lacks(
    context: &Context<'_>,
    storage: &StorageName,
    restored: Restored<'_>,
) -> Result<Option<String>, StepError> {
    let status = context.ports.pve.storage_status(storage).await?;
    if !status.active {
        return Ok(Some("does not answer".to_owned()));
    }
    let backups = context.ports.store.outstanding(restored.guest, context.ports.clock.now()).await?.backups;
    let record = backups.iter().find(|backup| backup.archive == *restored.archive);
    let packed = match restored.content {
        Content::Held => record.map(|backup| Packed { name: backup.archive.as_str(), bytes: backup.bytes }),
        Content::Empty => Some(Packed { name: restored.archive.as_str(), bytes: 0 }),
    };
    let filled = Filled { kind: &status.kind, used: status.used, total: status.total };
    Ok(restore_capacity::lacks(filled, restored.disks, packed, restored.most_percent))
}

/// What is to be restored.
pub(super) struct Restored<'a> {
    /// Of which guest.
    pub guest: GuestUid,
    /// From which archive.
    pub archive: &'a records::VolumeId,
    /// The size of its disks.
    pub disks: u64,
    /// Whether the archive holds anything of them.
    pub content: Content,
    /// How full the storage may be with it.
    pub most_percent: u64,
}

pub(super) fn too_full(status: &StorageStatus) -> Option<String> {
    if !status.active || status.total == 0 {
        return Some("does not answer".to_owned());
    }
    let percent = u128::from(status.used) * 100 / u128::from(status.total);
    (percent >= u128::from(limits::SNAPSHOT_FILL_MAX_PERCENT))
        .then(|| format!("is {percent} % full (from {} % on is too full)", limits::SNAPSHOT_FILL_MAX_PERCENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(used: u64, total: u64) -> StorageStatus {
        StorageStatus {
            storage: "tank".parse().unwrap(),
            kind: "btrfs".to_owned(),
            content: vec!["rootdir".to_owned()],
            active: true,
            enabled: true,
            available: total - used,
            total,
            used,
        }
    }

    #[test]
    fn a_storage_is_too_full_from_the_level_on() {
        assert_eq!(too_full(&status(84, 100)), None);
        assert_eq!(too_full(&status(85, 100)).unwrap(), "is 85 % full (from 85 % on is too full)");
        assert_eq!(
            too_full(&status(u64::MAX, u64::MAX)).unwrap(),
            "is 100 % full (from 85 % on is too full)"
        );
        assert!(too_full(&status(0, 0)).is_some(), "zero sizes mean nothing");
        assert!(too_full(&StorageStatus { active: false, ..status(1, 100) }).is_some());
    }
}
