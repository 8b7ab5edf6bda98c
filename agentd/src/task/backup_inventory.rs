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
use jiff::{SignedDuration, Timestamp};

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

/// A storage that did not answer, and one with something open, are queried again sooner.
const SOON: Duration = Duration::from_secs(60);

/// How long an archive that went missing is looked for sooner. What was moved by mistake is back by then, and what was
/// deleted does not come back.
const MISSING_SOON: SignedDuration = SignedDuration::from_hours(1);

/// What is remembered of the lists.
#[derive(Default)]
pub(super) struct BackupInventory(BTreeMap<StorageName, KeptListing>);

/// A list, and when it was asked for.
struct KeptListing {
    at: Duration,
    listing: BackupListing,
    open: Differences,
}

/// Whether the records say what the list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Differences {
    Noted,
    /// An operation held the guest, or nothing could be written.
    Open,
}

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
            let missing = records.backups.iter().filter(|backup| backup.storage == storage);
            let missing = missing.filter_map(|backup| backup.missing_since).max();
            let rests = |kept: &KeptListing| forward.saturating_sub(kept.at) < rest(kept, missing, now);
            if self.0.get(&storage).is_some_and(rests) {
                continue;
            }
            let mut open = Differences::Noted;
            let list = ports.pve.storage_content(Role::Operate, &storage, ContentKind::Backup, None).await;
            let listing = match list {
                Ok(list) => {
                    let (listed, differences) = held_against(&list, &storage, records, observed);
                    let listed = still_shown(ports, listed).await;
                    open = differences;
                    if ports.store.refusal().is_some() {
                        open = if listed.is_empty() { open } else { Differences::Open };
                    } else if !listed.is_empty() {
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
            self.0.insert(storage, KeptListing { at: forward, listing, open });
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
        Ok(self.0.iter().map(|(storage, kept)| (storage.clone(), reported(storage, &kept.listing))).collect())
    }
}

/// How long a list is good for. `missing` is when an archive of the storage went missing last.
fn rest(kept: &KeptListing, missing: Option<Timestamp>, now: Timestamp) -> Duration {
    let is_new = missing.is_some_and(|since| now.duration_since(since) < MISSING_SOON);
    match (&kept.listing, kept.open) {
        (BackupListing::Listed { .. }, Differences::Noted) if !is_new => EVERY,
        (BackupListing::Listed { .. } | BackupListing::Dark(_), _) => SOON,
    }
}

/// Storages where backups are stored, or should be. Without a promise no storage is listed for it.
fn wanted(records: &Records) -> BTreeSet<StorageName> {
    let targets =
        records.protections.values().flat_map(|promise| promised(promise)).filter_map(|tier| tier.target);
    targets.chain(records.backups.iter().map(|backup| &backup.storage)).cloned().collect()
}

/// What the records say otherwise than the list, without the guests that an operation holds: it may be changing just that.
fn held_against(
    list: &[StoredVolume],
    storage: &StorageName,
    records: &Records,
    observed: &Observed,
) -> (Vec<(Vmid, Listed)>, Differences) {
    let rows: BTreeMap<&str, &StoredVolume> = list.iter().map(|row| (row.volid.as_str(), row)).collect();
    let busy: BTreeSet<GuestUid> = records.open.iter().map(|open| open.guest).collect();
    let mut differences = Differences::Noted;
    let mut judged = Vec::new();
    for backup in records.backups.iter().filter(|backup| backup.storage == *storage) {
        let listed = match (rows.get(backup.archive.as_str()), backup.missing_since) {
            (Some(row), missing) if missing.is_some() || row.sealed != backup.sealed => {
                Listed::Again { archive: backup.archive.clone(), sealed: row.sealed.clone() }
            }
            (None, None) if shown(backup, records, observed) => Listed::Not(backup.archive.clone()),
            _ => continue,
        };
        if busy.contains(&backup.guest) {
            differences = Differences::Open;
        } else {
            judged.push((backup.vmid, listed));
        }
    }
    (judged, differences)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_list_with_something_open_is_read_again_sooner() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9);
        let ago = |minutes| now.checked_sub(SignedDuration::from_mins(minutes)).ok();
        let answered = || BackupListing::Listed {
            protected: BTreeSet::new(),
            verified: BTreeMap::new(),
            pruned_by: None,
        };
        let dark = || BackupListing::Dark("no answer".to_owned());
        for (listing, open, missing, expected) in [
            (answered(), Differences::Noted, None, EVERY),
            (answered(), Differences::Open, None, SOON),
            (answered(), Differences::Noted, ago(0), SOON),
            (answered(), Differences::Noted, ago(59), SOON),
            // It does not come back: the target is listed no more often than others.
            (answered(), Differences::Noted, ago(60), EVERY),
            (dark(), Differences::Noted, None, SOON),
        ] {
            let kept = KeptListing { at: Duration::ZERO, listing, open };
            assert_eq!(rest(&kept, missing, now), expected, "{open:?}, {missing:?}");
        }
    }
}
