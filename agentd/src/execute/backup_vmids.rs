//! VMIDs with backups, on any storage that can be read.
//!
//! In: the node's storages and their lists, read with the token that reads every archive there. Out: for each VMID with
//! backups one storage that has some, and the storages that could not be read. A guest that got such a VMID would write
//! into the group of another guest. A prune by group there would then remove the last backups of that other guest
//! (`docs/adr/0053`). Deliberately absent: whose backups they are, which no list says.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{StorageName, Vmid};
use holdfast_protocol::json::chain;
use holdfast_protocol::storage::{StorageRole, TargetState};

use super::Ports;
use super::trouble::StepError;
use crate::port::pve::read::StorageStatus;
use crate::port::pve::{ContentKind, PveError, Role};

/// What the lists say.
#[derive(Debug, Default)]
pub(super) struct BackupVmids {
    /// VMIDs with backups, each with a storage that has some.
    pub under: BTreeMap<Vmid, StorageName>,
    /// Storages that are not read now, each with the reason.
    pub unread: BTreeMap<StorageName, String>,
    servers: BTreeSet<StorageName>,
}

impl BackupVmids {
    /// Backup servers that operators attached and that cannot be read now, each with the reason. Other hosts write
    /// there, too.
    pub fn unread_servers(&self) -> impl Iterator<Item = (&StorageName, &str)> {
        let of_server = self.unread.iter().filter(|(storage, _)| self.servers.contains(*storage));
        of_server.map(|(storage, why)| (storage, why.as_str()))
    }
}

/// Reads the lists. A storage that does not answer is part of the answer.
///
/// # Errors
/// When Proxmox does not name its storages.
pub(super) async fn read(ports: &Ports) -> Result<BackupVmids, StepError> {
    let mut found = BackupVmids { servers: servers(ports).await?, ..BackupVmids::default() };
    let all = ports.pve.storages().await?;
    let holds = |storage: &&StorageStatus| storage.content.iter().any(|kind| kind == "backup");
    let listed: BTreeSet<&StorageName> = all.iter().map(|storage| &storage.storage).collect();
    for server in found.servers.iter().filter(|server| !listed.contains(server)) {
        found.unread.insert(server.clone(), "Proxmox does not list it".to_owned());
    }
    for status in all.iter().filter(holds) {
        let storage = &status.storage;
        if !status.active || !status.enabled {
            found.unread.insert(storage.clone(), "Proxmox says that it is not there".to_owned());
            continue;
        }
        match ports.pve.storage_content(Role::Allocate, storage, ContentKind::Backup, None).await {
            Ok(list) => {
                for vmid in list.iter().filter_map(|row| row.vmid) {
                    found.under.entry(vmid).or_insert_with(|| storage.clone());
                }
            }
            // Storage of another owner, to which root never granted us access.
            Err(PveError::Permission { .. }) if !found.servers.contains(storage) => {}
            Err(error) => {
                found.unread.insert(storage.clone(), chain(&error));
            }
        }
    }
    Ok(found)
}

async fn servers(ports: &Ports) -> Result<BTreeSet<StorageName>, StepError> {
    let targets = ports.store.storage_targets().await?;
    let used = targets.iter().filter(|target| {
        target.status == TargetState::Attached && target.approval.role == StorageRole::OffsiteBackup
    });
    Ok(used.filter_map(|target| target.approval.name.as_str().parse().ok()).collect())
}
