//! The storage on which a guest's disks are made.
//!
//! Root disks and hot volumes are written all the time, so they are on fast storage only; bulk volumes are where there
//! is room for them. A target is used for what an operator signed for: its role and its class. A storage that is no
//! target of the manifest was named by root in the settings, and root's choice counts. The same rule holds for new
//! guests, for volumes that come later, for copies of guests and for lost guests that are made again. A guest of which
//! a volume has no place is not made. Disks that exist stay where they are; a document that names another target for
//! one gets a report that says so. One case is not held to the rule: a lost guest whose backup was taken before its
//! disks were written down with it. All that its archive names comes back on the storage of root disks, bulk or not,
//! and that is reported (`disks`).

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, DesiredVolume, VolumeKind};
use holdfast_protocol::id::{GuestUid, MountPath, StorageName, TargetName};
use holdfast_protocol::storage::{StorageClass, StorageRole, TargetState};

use super::{Inputs, fill_level};
use crate::model::observed::{GuestFacts, StorageFact};
use crate::model::policy::Policy;
use crate::model::records::Records;
use crate::model::storage::TargetRecord;
use crate::operation::AttachVolume;

/// What forbids a disk, and what a person does about it.
pub(super) type Misplaced = (ErrorCode, String);

/// Where a guest's disks are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Its root disk.
    pub root: StorageName,
    /// Its volumes, in the order of the document.
    pub volumes: Vec<StorageName>,
}

/// Where all disks of a guest are made here.
pub(super) fn whole(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Result<Placement, Misplaced> {
    let root = self::root(inputs, guest)?;
    let volumes = guest.volumes.iter().map(|volume| match self::volume(inputs, volume) {
        Ok(storage) => Ok(storage),
        Err((code, why)) => Err((code, format!("volume {} has no place: {why}", volume.name))),
    });
    Ok(Placement { root, volumes: volumes.collect::<Result<_, _>>()? })
}

/// Where the disks of a copy of a guest are made, its volumes by their paths. One that the document names is made where
/// it would be made if it were new. Any other comes back on its storage where that is still one for guests, else on the
/// one of root disks.
pub(super) fn of_copy(
    inputs: &Inputs<'_>,
    uid: GuestUid,
    facts: &GuestFacts,
) -> Result<(StorageName, BTreeMap<MountPath, StorageName>), Misplaced> {
    let guest = inputs.desired.iter().find(|guest| guest.uid == uid);
    let (root, named) = match guest {
        Some(guest) => {
            let placed = whole(inputs, guest)?;
            let paths = guest.volumes.iter().map(|volume| volume.mount.clone());
            (placed.root, paths.zip(placed.volumes).collect())
        }
        None => (inputs.policy.storage.clone(), BTreeMap::new()),
    };
    let there = facts.mounts.values().filter_map(|mount| {
        let lies = mount.volume.as_ref()?.storage()?.parse().ok()?;
        Some((mount.path.parse().ok()?, known(inputs.policy, &lies).clone()))
    });
    let mut volumes: BTreeMap<MountPath, StorageName> = there.collect();
    volumes.extend(named);
    Ok((root, volumes))
}

/// Where its root disk is made.
pub(super) fn root(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Result<StorageName, Misplaced> {
    let chosen = chosen(inputs, StorageRole::Primary, guest.storage.as_ref())?;
    let storage = chosen.unwrap_or_else(|| inputs.policy.storage.clone());
    fast(inputs.records, &storage)?;
    has_room(inputs, &storage).map(|()| storage)
}

/// Where a volume is made.
pub(super) fn volume(inputs: &Inputs<'_>, volume: &DesiredVolume) -> Result<StorageName, Misplaced> {
    let policy = inputs.policy;
    let of_root =
        || AttachVolume::storage(&volume.kind, &policy.storage, policy.bulk_storage.as_ref()).cloned();
    let chosen = chosen(inputs, volume.kind.role(), volume.storage.as_ref())?;
    let Some(storage) = chosen.or_else(of_root) else {
        let text = "it is bulk, and this box has no place for that: attach a target with role bulk-data, or add bulk_storage \
                    to the settings";
        return Err((ErrorCode::Unavailable, text.to_owned()));
    };
    match volume.kind {
        VolumeKind::Hot => fast(inputs.records, &storage)?,
        VolumeKind::Bulk(_) => {}
    }
    has_room(inputs, &storage).map(|()| storage)
}

fn has_room(inputs: &Inputs<'_>, storage: &StorageName) -> Result<(), Misplaced> {
    fill_level::lacks(inputs.observed, storage).map_or(Ok(()), |why| Err((ErrorCode::StorageFull, why)))
}

/// The target that is named, or else the default of the role that is in use; none, where root's settings count.
fn chosen(
    inputs: &Inputs<'_>,
    role: StorageRole,
    named: Option<&TargetName>,
) -> Result<Option<StorageName>, Misplaced> {
    let in_use = |name: &TargetName| {
        let attached =
            |target: &&TargetRecord| target.status == TargetState::Attached && target.approval.name == *name;
        inputs.records.storage.iter().find(attached).filter(|target| target.approval.role == role)
    };
    let Some(name) = named else {
        let default = inputs.manifest.iter().filter(|target| target.default && target.role == role);
        let default = default.filter_map(|target| in_use(&target.name)).next().and_then(storage);
        return default.map(|storage| granted(inputs, storage)).transpose();
    };
    let Some(storage) = in_use(name).and_then(storage) else {
        let text = format!(
            "target {name} is not in use on this box with role {role}: an operator signs `attach_storage` for it"
        );
        return Err((ErrorCode::StorageGone, text));
    };
    if inputs.observed.storages.get(&storage) == Some(&StorageFact::Inactive) {
        let text =
            format!("Proxmox says that storage {storage} is not active: look at it with `pvesm status`");
        return Err((ErrorCode::StorageGone, text));
    }
    granted(inputs, storage).map(Some)
}

/// Root says on which storages the agent's tokens may make disks.
fn granted(inputs: &Inputs<'_>, storage: StorageName) -> Result<StorageName, Misplaced> {
    if inputs.policy.holds_disks(&storage) {
        return Ok(storage);
    }
    let text = format!(
        "the agent may make no disks on storage {storage}: run `agentd setup` again with --guest-storage {storage}, or let the \
         document name another target"
    );
    Err((ErrorCode::Forbidden, text))
}

/// Its entry in Proxmox has its name.
fn storage(target: &TargetRecord) -> Option<StorageName> {
    target.approval.name.as_str().parse().ok()
}

fn fast(records: &Records, storage: &StorageName) -> Result<(), Misplaced> {
    let is = |name: &str| name == storage.as_str();
    let target = records.storage.iter().find(|target| is(target.approval.name.as_str()));
    if target.is_none_or(|target| target.approval.class == StorageClass::Fast) {
        return Ok(());
    }
    let text = format!(
        "storage {storage} was attached as slow, and root disks and hot volumes live on fast storage only: name another \
         target, or another `storage` in agent.toml, or make the volume bulk"
    );
    Err((ErrorCode::Forbidden, text))
}

/// Disks that are there and lie elsewhere than on the target that the document names for them.
pub(super) fn elsewhere(guest: &DesiredGuest, facts: &GuestFacts) -> Vec<String> {
    let moved = |what: &dyn Fn() -> String, named: Option<&TargetName>, lies: Option<&str>| {
        let (named, lies) = (named?, lies?);
        (named.as_str() != lies).then(|| {
            let what = what();
            format!(
                "{what} lies on {lies}, and the document names {named}: nothing moves it; put {lies} back into the document"
            )
        })
    };
    // Mostly no target is named.
    let named = guest.volumes.iter().filter(|volume| volume.storage.is_some());
    let volumes = named.filter_map(|volume| {
        let mount = facts.mounts.values().find(|mount| mount.path == volume.mount.as_str())?;
        let lies = mount.volume.as_ref().and_then(|id| id.storage());
        moved(&|| format!("volume {}", volume.name), volume.storage.as_ref(), lies)
    });
    let root = moved(&|| "its root disk".to_owned(), guest.storage.as_ref(), facts.rootfs_storage.as_deref());
    root.into_iter().chain(volumes).collect()
}

/// Where it was, if guests' disks are made there still.
pub(super) fn known<'a>(policy: &'a Policy, then: &'a StorageName) -> &'a StorageName {
    if policy.bulk_storage.as_ref() == Some(then) { then } else { &policy.storage }
}
