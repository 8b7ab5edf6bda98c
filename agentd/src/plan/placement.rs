//! Where a guest's disks may be made: what is hot only where it is fast, what is bulk only where there is room for it.
//!
//! Root disks and hot volumes are written all the time. The class of a storage is the one that an operator signed for when
//! the target of that name was attached; a storage that is no target of the manifest was named by root in the settings, and
//! root's word counts. The same rule holds for new guests, for volumes that come later and for lost guests that are made
//! again: one of which a volume has no place is not made. Disks that are there stay where they are. Not held to it: a lost guest
//! whose backup was taken before its disks were written down with it. All that its archive names comes back on the storage of
//! root disks, bulk or not, and that is told (`disks`).

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, DesiredVolume, VolumeKind};
use holdfast_protocol::id::StorageName;
use holdfast_protocol::storage::StorageClass;

use crate::model::policy::Policy;
use crate::model::record::Records;
use crate::operation::AttachVolume;

/// What forbids a disk, and what a person does about it.
pub(super) type Misplaced = (ErrorCode, String);

/// Whether all disks of a guest can be made here.
pub(super) fn whole(policy: &Policy, records: &Records, guest: &DesiredGuest) -> Result<(), Misplaced> {
    fast(records, &policy.storage)?;
    guest.volumes.iter().try_for_each(|volume| match self::volume(policy, records, volume) {
        Ok(_) => Ok(()),
        Err((code, why)) => Err((code, format!("volume {} has no place: {why}", volume.name))),
    })
}

/// Where a volume is made.
pub(super) fn volume<'a>(
    policy: &'a Policy,
    records: &Records,
    volume: &DesiredVolume,
) -> Result<&'a StorageName, Misplaced> {
    let storage = AttachVolume::storage(&volume.kind, &policy.storage, policy.bulk_storage.as_ref());
    let Some(storage) = storage else {
        let text = "it is bulk, and this box has no bulk_storage: add one to the settings";
        return Err((ErrorCode::Unavailable, text.to_owned()));
    };
    match volume.kind {
        VolumeKind::Hot => fast(records, storage).map(|()| storage),
        VolumeKind::Bulk(_) => Ok(storage),
    }
}

fn fast(records: &Records, storage: &StorageName) -> Result<(), Misplaced> {
    let is = |name: &str| name == storage.as_str();
    let target = records.storage.iter().find(|target| is(target.approval.name.as_str()));
    if target.is_none_or(|target| target.approval.class == StorageClass::Fast) {
        return Ok(());
    }
    let text = format!(
        "storage {storage} was attached as slow, and root disks and hot volumes live on fast storage only: name another \
         `storage` in agent.toml, or make the volume bulk"
    );
    Err((ErrorCode::Forbidden, text))
}
