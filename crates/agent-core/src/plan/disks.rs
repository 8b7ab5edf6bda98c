//! Where the disks of a lost guest are made again.
//!
//! What comes in: the disks that it had when its backup was taken, the document, what is promised of its volumes, and
//! the storages of this host. What goes out: each disk written out, with the report on it. None is written out where
//! the disks were not written down: then Proxmox makes all that the archive names on the one storage that the call
//! names.
//!
//! A volume that the document names is made where it would be made if it were new (`placement`). Any other comes back
//! on its storage where that is still one for guests, else on the one of root disks. None is smaller than it was.
//! Backups include what this backup holds and what is promised; of volumes that the document does not name, those that
//! were included before.

use std::collections::BTreeSet;

use holdfast_protocol::desired::{DesiredGuest, DesiredVolume, VolumeKind};
use holdfast_protocol::id::Vmid;
use holdfast_protocol::protection::Protection;

use super::{Inputs, bulk, placement};
use crate::model::disks::{Content, Disks, MountDisk, RootDisk};
use crate::model::observed::BackupFlag;
use crate::model::policy::Policy;
use crate::model::records::{BackupRecord, VolumeId};

/// Its disks as they are made again, if they were written down with the backup.
pub(super) fn again(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    backup: &BackupRecord,
) -> Result<Option<Disks>, placement::Misplaced> {
    let Some(then) = &backup.disks else { return Ok(None) };
    let rootfs = RootDisk {
        storage: placement::root(inputs, guest)?,
        size: then.rootfs.size.max(guest.size.rootfs_gib),
    };
    let mounts = then.mounts.iter().map(|mount| self::mount(inputs, guest, mount));
    Ok(Some(Disks { rootfs, mounts: mounts.collect::<Result<_, _>>()? }))
}

fn mount(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    then: &MountDisk,
) -> Result<MountDisk, placement::Misplaced> {
    let Some(volume) = guest.volumes.iter().find(|volume| volume.mount == then.path) else {
        let storage = placement::known(inputs.policy, &then.storage).clone();
        return Ok(MountDisk { storage, ..then.clone() });
    };
    let promise = inputs.records.protections.get(&guest.uid).map(AsRef::as_ref);
    Ok(MountDisk {
        storage: placement::volume(inputs, volume)?,
        size: then.size.max(volume.size_gib),
        backup: flag(then.content, volume, promise),
        ..then.clone()
    })
}

/// What the backup holds was in the guest's backups, and no restore takes it out of them.
fn flag(content: Content, volume: &DesiredVolume, promise: Option<&Protection>) -> BackupFlag {
    match content {
        Content::Held => BackupFlag::On,
        Content::Empty => BackupFlag::of(bulk::in_force(volume, promise)),
    }
}

/// What is said of where they are made, and of those that come back empty.
pub(super) fn reported(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    (backup, disks): (&BackupRecord, Option<&Disks>),
    former: (Vmid, &BTreeSet<VolumeId>),
) -> String {
    let placed = match disks {
        Some(disks) => elsewhere(disks),
        None => on_one(inputs.policy, guest),
    };
    placed.unwrap_or_default() + &empty(guest, (backup, disks), former).unwrap_or_default()
}

fn elsewhere(disks: &Disks) -> Option<String> {
    let others = disks.mounts.iter().filter(|mount| mount.storage != disks.rootfs.storage);
    let others: Vec<String> = others.map(|mount| format!("{} on {}", mount.path, mount.storage)).collect();
    let root = &disks.rootfs.storage;
    (!others.is_empty()).then(|| format!("; its disks are made on {root}, but {}", others.join(", ")))
}

/// A backup that records nothing of the disks: the sizes of what it holds are not known.
fn on_one(policy: &Policy, guest: &DesiredGuest) -> Option<String> {
    let elsewhere = policy.bulk_storage.as_ref().is_some_and(|bulk| *bulk != policy.storage);
    let is_bulk = |volume: &&DesiredVolume| matches!(volume.kind, VolumeKind::Bulk(_));
    let bulk: Vec<&str> = guest.volumes.iter().filter(is_bulk).map(|volume| volume.mount.as_str()).collect();
    (elsewhere && !bulk.is_empty()).then(|| {
        format!(
            "; nobody wrote down which disks it had when this backup was taken: all of them are made on {}, {} as well, and \
             stay there until root moves them",
            policy.storage,
            bulk.join(", ")
        )
    })
}

/// Which of its volumes come back empty, where it is known what the backup holds, and what root does should an old one
/// have outlived its guest. No token of ours may see or use a volume of a number that no guest has (`docs/adr/0041`).
fn empty(
    guest: &DesiredGuest,
    (backup, disks): (&BackupRecord, Option<&Disks>),
    (vmid, volumes): (Vmid, &BTreeSet<VolumeId>),
) -> Option<String> {
    // What it holds was not written down. Its own list of disks says so, which is read once it is restored
    // (`execute/step_read_back`).
    let mounts = backup.mounts.as_ref()?;
    let is_empty = |volume: &&DesiredVolume| mounts.holds.iter().all(|path| path != volume.mount.as_str());
    let named = guest.volumes.iter().filter(is_empty).map(|volume| volume.mount.as_str());
    let made = disks.iter().flat_map(|disks| &disks.mounts);
    let made = made.filter(|mount| mount.content == Content::Empty).map(|mount| mount.path.as_str());
    let paths: Vec<&str> = named.chain(made).collect::<BTreeSet<_>>().into_iter().collect();
    if paths.is_empty() {
        return None;
    }
    let storages: BTreeSet<&str> = volumes.iter().filter_map(|volume| volume.storage()).collect();
    let looks: Vec<String> =
        storages.iter().map(|storage| format!("`pvesm list {storage} --vmid {vmid}`")).collect();
    let (paths, looks) = (paths.join(", "), looks.join(", "));
    Some(format!(
        "; empty when it is back, since this backup does not hold them: {paths}; should an old volume of it still be there, root finds \
         it with {looks} and puts it in the new one's place with `pct set`"
    ))
}
