//! The task that compares storages' lists with our records.
//!
//! In: the records, the observed guests, and one list from each storage that holds backups. Out: which storages
//! answered, what Proxmox refuses to delete, and in the records since when a backup is not listed any more. Absence is
//! concluded only from a list that answered. The guest must also be in our pool under the number that the backup
//! carries, before the list and after it; otherwise our token is not shown its backups. Deliberately absent: removing
//! anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::{GuestUid, StorageName, Vmid};
use holdfast_protocol::json::chain;
use jiff::Timestamp;

use crate::execute::Ports;
use crate::model::observed::{BackupListing, Observed, Sight};
use crate::model::records::{BackupRecord, GuestRecord, Records, VolumeId};
use crate::plan::schedule::promised;
use crate::port::pve::read::StoredVolume;
use crate::port::pve::{ContentKind, Role};
use crate::port::store::StoreError;
use crate::port::store::backup::Listed;

/// One call for each storage: a list of some thousand archives is a second of Proxmox's time on a slow disk.
const EVERY: Duration = Duration::from_secs(300);

/// A storage that did not answer is queried again sooner.
const DARK_EVERY: Duration = Duration::from_secs(60);

/// What is remembered of the lists.
#[derive(Default)]
pub(super) struct BackupInventory(BTreeMap<StorageName, (Duration, BackupListing)>);

impl BackupInventory {
    /// Reads the lists that are due, records what is missing or back, and returns all that is known.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn look(
        &mut self,
        ports: &Ports,
        records: &Records,
        observed: &Observed,
        now: Timestamp,
    ) -> Result<BTreeMap<StorageName, BackupListing>, StoreError> {
        let wanted = wanted(records);
        self.0.retain(|storage, _| wanted.contains(storage));
        let forward = ports.clock.monotonic();
        for storage in wanted {
            if self.0.get(&storage).is_some_and(|(at, listing)| forward.saturating_sub(*at) < rest(listing)) {
                continue;
            }
            let list = ports.pve.storage_content(Role::Operate, &storage, ContentKind::Backup, None).await;
            let listing = match list {
                Ok(list) => {
                    let listed = held_against(&list, &storage, records, observed);
                    let listed = still_shown(ports, listed).await;
                    if !listed.is_empty() && ports.store.refusal().is_none() {
                        ports.store.note_listed(listed, now).await?;
                    }
                    let protected = list.iter().filter(|row| row.protected);
                    let verified =
                        list.iter().filter_map(|row| Some((VolumeId::new(&row.volid), row.verification?)));
                    BackupListing::Listed {
                        protected: protected.map(|row| VolumeId::new(&row.volid)).collect(),
                        verified: verified.collect(),
                        pruned_by: None,
                    }
                }
                Err(error) => BackupListing::Dark(chain(&error)),
            };
            self.0.insert(storage, (forward, listing));
        }
        let pruners = Arc::clone(&ports.pruners.borrow());
        let reported = |storage: &StorageName, listing: &BackupListing| match listing {
            BackupListing::Listed { protected, verified, .. } => BackupListing::Listed {
                protected: protected.clone(),
                verified: verified.clone(),
                pruned_by: pruners.get(storage).copied(),
            },
            BackupListing::Dark(why) => BackupListing::Dark(why.clone()),
        };
        Ok(self
            .0
            .iter()
            .map(|(storage, (_, listing))| (storage.clone(), reported(storage, listing)))
            .collect())
    }
}

const fn rest(listing: &BackupListing) -> Duration {
    match listing {
        BackupListing::Listed { .. } => EVERY,
        BackupListing::Dark(_) => DARK_EVERY,
    }
}

/// Storages where backups are stored, or should be. Without a promise no storage is listed for it.
fn wanted(records: &Records) -> BTreeSet<StorageName> {
    let targets =
        records.protections.values().flat_map(|promise| promised(promise)).filter_map(|tier| tier.target);
    targets.chain(records.backups.iter().map(|backup| &backup.storage)).cloned().collect()
}

/// What the records say otherwise than the list.
fn held_against(
    list: &[StoredVolume],
    storage: &StorageName,
    records: &Records,
    observed: &Observed,
) -> Vec<(Vmid, Listed)> {
    let rows: BTreeMap<&str, &StoredVolume> = list.iter().map(|row| (row.volid.as_str(), row)).collect();
    let busy: BTreeSet<GuestUid> = records.open.iter().map(|open| open.guest).collect();
    let differs = |backup: &&BackupRecord| backup.storage == *storage && !busy.contains(&backup.guest);
    let judged = records.backups.iter().filter(differs).filter_map(|backup| {
        match (rows.get(backup.archive.as_str()), backup.missing_since) {
            (Some(row), missing) if missing.is_some() || row.sealed != backup.sealed => {
                let (archive, sealed) = (backup.archive.clone(), row.sealed.clone());
                Some((backup.vmid, Listed::Again { archive, sealed }))
            }
            (None, None) if shown(backup, records, observed) => {
                Some((backup.vmid, Listed::Not(backup.archive.clone())))
            }
            _ => None,
        }
    });
    judged.collect()
}

/// Drops what nothing follows from. The backups of a guest that was destroyed between its observation and the list are
/// missing in the list, and the guest is made again from them. A guest that can still be read was there when the list
/// was made.
async fn still_shown(ports: &Ports, listed: Vec<(Vmid, Listed)>) -> Vec<Listed> {
    let absent = listed.iter().filter(|(_, listed)| matches!(listed, Listed::Not(_)));
    let guests: BTreeSet<Vmid> = absent.map(|(vmid, _)| *vmid).collect();
    let mut there = BTreeSet::new();
    for vmid in guests {
        if ports.pve.guest_config(vmid).await.is_ok() {
            there.insert(vmid);
        }
    }
    let follows =
        |(vmid, listed): &(Vmid, Listed)| matches!(listed, Listed::Again { .. }) || there.contains(vmid);
    listed.into_iter().filter(follows).map(|(_, listed)| listed).collect()
}

/// Whether the list would show a backup if it were there.
fn shown(backup: &BackupRecord, records: &Records, observed: &Observed) -> bool {
    let place = records.guests.binary_search_by_key(&backup.guest, |record| record.uid);
    let record: Option<&GuestRecord> = place.ok().and_then(|place| records.guests.get(place));
    observed.sight == Sight::Proved
        && observed.guests.contains_key(&backup.vmid)
        && record.is_some_and(|record| record.place.vmid() == Some(backup.vmid))
}
