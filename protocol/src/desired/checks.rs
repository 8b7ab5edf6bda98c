//! Checks of a desired document that need no knowledge of the host.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::{
    BackupPolicy, DesiredDocument, DesiredError, DesiredGuest, GuestName, GuestUid, ManifestMistake,
    POLICIES_MAX, PolicyName, StorageRole, StorageTarget, TARGETS_MAX, TargetName, Unique, VOLUMES_MAX, Vmid,
    storage,
};

/// No alarm before three polls were missed.
pub(super) fn alarm(document: &DesiredDocument) -> Result<(), DesiredError> {
    let poll_s = document.poll_interval_s.get();
    match document.alarm_after_s.map(|alarm| alarm.get()) {
        Some(alarm_s) if alarm_s < poll_s * 3 => Err(DesiredError::HastyAlarm { alarm_s, poll_s }),
        Some(_) | None => Ok(()),
    }
}

/// The names of the policies, each of which protects something.
pub(super) fn policies(policies: &[BackupPolicy]) -> Result<BTreeSet<&PolicyName>, DesiredError> {
    if policies.len() > POLICIES_MAX {
        let (what, count, max) = ("backup policies", policies.len(), POLICIES_MAX);
        return Err(DesiredError::TooMany { what, count, max });
    }
    let mut names = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        if !names.insert(&policy.name) {
            let (path, value) = (format!("policies[{index}].name"), policy.name.to_string());
            return Err(DesiredError::Twice { path, what: Unique::Policy, value });
        }
        if policy.tiers.is_empty() {
            return Err(DesiredError::EmptyPolicy { path: format!("policies[{index}].tiers") });
        }
    }
    Ok(names)
}

/// Targets of which each is one place of its own, and fit for what it is for.
pub(super) fn manifest(targets: &[StorageTarget]) -> Result<(), DesiredError> {
    if targets.len() > TARGETS_MAX {
        let (what, count, max) = ("storage targets", targets.len(), TARGETS_MAX);
        return Err(DesiredError::TooMany { what, count, max });
    }
    match storage::mistake(targets) {
        None => Ok(()),
        Some((at, ManifestMistake::Twice(field, value))) => {
            Err(DesiredError::Twice { path: format!("storage[{at}].{field}"), what: Unique::Target, value })
        }
        Some((at, ManifestMistake::Unfit(field, rule))) => {
            Err(DesiredError::UnfitTarget { path: format!("storage[{at}].{field}"), rule })
        }
    }
}

/// No policy sends backups to a target that is not schedulable. A promise in force on a host stays until a signed job
/// changes it.
pub(super) fn schedulable(policies: &[BackupPolicy], manifest: &[StorageTarget]) -> Result<(), DesiredError> {
    for (index, policy) in policies.iter().enumerate() {
        let local = policy.tiers.local.as_ref().map(|tier| ("local.target", &tier.target));
        let off_site =
            policy.tiers.off_site.as_ref().map(|tier| ("off_site.backup.target", &tier.backup.target));
        for (field, target) in local.into_iter().chain(off_site) {
            let shut = |one: &StorageTarget| one.name.as_str() == target.as_str() && !one.schedulable;
            if manifest.iter().any(shut) {
                let path = format!("policies[{index}].tiers.{field}");
                return Err(DesiredError::UnfitTarget {
                    path,
                    rule: "the manifest says that this target is not schedulable",
                });
            }
        }
    }
    Ok(())
}

/// The targets that a guest names for its disks are in the manifest, for that use.
pub(super) fn named_targets(
    index: usize,
    guest: &DesiredGuest,
    manifest: &[StorageTarget],
) -> Result<(), DesiredError> {
    let fits = |name: &TargetName, role: StorageRole| {
        manifest.iter().any(|target| target.name == *name && target.role == role)
    };
    let volumes = guest.volumes.iter().enumerate().map(|(at, volume)| {
        (format!("guests[{index}].volumes[{at}].storage"), volume.storage.as_ref(), volume.kind.role())
    });
    let root = (format!("guests[{index}].storage"), guest.storage.as_ref(), StorageRole::Primary);
    for (path, name, role) in std::iter::once(root).chain(volumes) {
        if name.is_some_and(|name| !fits(name, role)) {
            let rule = match role {
                StorageRole::BulkData => "the manifest has no target of that name with role bulk-data",
                StorageRole::Primary | StorageRole::LocalBackup | StorageRole::OffsiteBackup => {
                    "the manifest has no target of that name with role primary"
                }
            };
            return Err(DesiredError::UnfitTarget { path, rule });
        }
    }
    Ok(())
}

/// What was seen of what must be unique.
#[derive(Default)]
pub(super) struct UniqueNames<'a> {
    uids: BTreeSet<GuestUid>,
    names: BTreeSet<&'a GuestName>,
    vmids: BTreeSet<Vmid>,
    addresses: BTreeSet<Ipv4Addr>,
}

impl<'a> UniqueNames<'a> {
    pub(super) fn guest(&mut self, index: usize, guest: &'a DesiredGuest) -> Result<(), DesiredError> {
        let twice = |field: &str, what, value: String| DesiredError::Twice {
            path: format!("guests[{index}].{field}"),
            what,
            value,
        };
        if !self.uids.insert(guest.uid) {
            return Err(twice("uid", Unique::Guest, guest.uid.to_string()));
        }
        if !self.names.insert(&guest.name) {
            return Err(twice("name", Unique::Name, guest.name.to_string()));
        }
        if let Some(vmid) = guest.vmid.filter(|vmid| !self.vmids.insert(*vmid)) {
            return Err(twice("vmid", Unique::Vmid, vmid.to_string()));
        }
        let address = guest.network.address.address();
        if !self.addresses.insert(address) {
            return Err(twice("network.address", Unique::Address, address.to_string()));
        }
        if let Some(gateway) =
            guest.network.gateway.filter(|gateway| !guest.network.address.reaches(*gateway))
        {
            return Err(DesiredError::Unreachable {
                path: format!("guests[{index}].network.gateway"),
                gateway,
            });
        }
        volumes(index, guest)
    }
}

pub(super) fn volumes(index: usize, guest: &DesiredGuest) -> Result<(), DesiredError> {
    if guest.volumes.len() > VOLUMES_MAX {
        return Err(DesiredError::TooMany {
            what: "volumes of one guest",
            count: guest.volumes.len(),
            max: VOLUMES_MAX,
        });
    }
    let (mut names, mut mounts) = (BTreeSet::new(), BTreeSet::new());
    for (at, volume) in guest.volumes.iter().enumerate() {
        let path = |field| format!("guests[{index}].volumes[{at}].{field}");
        if !names.insert(&volume.name) {
            let value = volume.name.to_string();
            return Err(DesiredError::Twice { path: path("name"), what: Unique::Volume, value });
        }
        if !mounts.insert(&volume.mount) {
            let value = volume.mount.to_string();
            return Err(DesiredError::Twice { path: path("mount"), what: Unique::Volume, value });
        }
    }
    Ok(())
}
