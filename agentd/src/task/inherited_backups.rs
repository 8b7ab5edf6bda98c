//! The search on off-site storages for backups of a lost host's guests.
//!
//! In: guests that were proved gone, what operators approved, and the lists of storages. Out: backup records, for
//! guests of the lost host that have none. A backup is accepted when a storage lists it as a container's under a VMID
//! that the guest had there, whole, and encrypted with exactly the key that operators signed for. A list is no record
//! of ours. The true owner of a backup shows once it is restored, by the mark in it (`docs/adr/0034`). Deliberately
//! absent: choosing one (`plan/survivor`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_protocol::id::{GuestUid, KeyFingerprint, OperationId, StorageName, Vmid};
use holdfast_protocol::json::chain;
use holdfast_protocol::storage::{StorageRole, TargetState};
use jiff::Timestamp;
use uuid::Uuid;

use crate::execute::Ports;
use crate::model::limits;
use crate::model::observed::Remains;
use crate::model::records::{BackupRecord, BackupWhy, Records, VolumeId};
use crate::plan::offsite::key;
use crate::port::pve::read::StoredVolume;
use crate::port::pve::{ContentKind, Role};
use crate::port::store::StoreError;

/// A storage that listed nothing of use is queried again after this: its entry may just have been given its key.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// A backup server shows this as the size of a backup that is still being taken.
const UNFINISHED: u64 = 1;

/// When each storage was last queried.
#[derive(Default)]
pub(super) struct Finder(BTreeMap<StorageName, Duration>);

impl Finder {
    /// What remains of these guests, after a search when nothing is known of a guest of a lost host.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn remains(
        &mut self,
        ports: &Ports,
        records: &Records,
        lost: Vec<GuestUid>,
    ) -> Result<BTreeMap<GuestUid, Vec<Remains>>, StoreError> {
        let remains = ports.store.remains(lost.clone()).await?;
        let bare = bare(records, &remains);
        if bare.is_empty() || ports.store.refusal().is_some() {
            return Ok(remains);
        }
        let mut found = Vec::new();
        for (storage, key) in off_site(records) {
            let now = ports.clock.monotonic();
            if self.0.get(&storage).is_some_and(|at| now.saturating_sub(*at) < ASK_EVERY) {
                continue;
            }
            self.0.insert(storage.clone(), now);
            // Their guests are in no pool here: `allocate` reads everything that is stored there (`docs/adr/0034`).
            match ports.pve.storage_content(Role::Allocate, &storage, ContentKind::Backup, None).await {
                Ok(list) => found.extend(theirs(&list, (&storage, &key), &bare)),
                Err(error) => {
                    tracing::warn!(%storage, error = chain(&error), "no list of the lost box's backups");
                }
            }
        }
        if found.is_empty() {
            return Ok(remains);
        }
        ports.store.note_left_backups(found, ports.clock.now()).await?;
        ports.store.remains(lost).await
    }
}

/// Guests of a lost host without known backups, by every VMID that they had there: what was taken before a swap or a
/// return is stored under an earlier one.
fn bare(records: &Records, remains: &BTreeMap<GuestUid, Vec<Remains>>) -> BTreeMap<Vmid, GuestUid> {
    let Some(left) = &records.left else { return BTreeMap::new() };
    let away = records.guests.iter().filter(|record| left.is_away(record));
    let nothing = away.filter(|record| remains.get(&record.uid).is_some_and(Vec::is_empty));
    let last = nothing.filter_map(|record| Some((record.uid, record.place.vmid()?)));
    let all = last.flat_map(|(uid, last)| {
        let every = std::iter::once(last).chain(records.former_vmids(uid, Some(last)));
        every.map(move |vmid| (vmid, uid))
    });
    all.collect()
}

/// The off-site targets in use, each with the key that was signed for.
fn off_site(records: &Records) -> BTreeSet<(StorageName, KeyFingerprint)> {
    let used = records.storage.iter().filter(|target| {
        target.status == TargetState::Attached && target.approval.role == StorageRole::OffsiteBackup
    });
    used.filter_map(|target| {
        Some((target.approval.name.as_str().parse().ok()?, key(&target.approval)?.clone()))
    })
    .collect()
}

fn theirs(
    list: &[StoredVolume],
    (storage, key): (&StorageName, &KeyFingerprint),
    guests: &BTreeMap<Vmid, GuestUid>,
) -> Vec<BackupRecord> {
    let whole = |row: &&StoredVolume| {
        row.format == "pbs-ct" && row.size > UNFINISHED && row.sealed.as_ref() == Some(key)
    };
    let record = |row: &StoredVolume| {
        let vmid = row.vmid?;
        let taken_at = Timestamp::from_second(i64::try_from(row.made_epoch_s?).ok()?).ok()?;
        Some(BackupRecord {
            archive: VolumeId::new(&row.volid),
            guest: *guests.get(&vmid)?,
            vmid,
            storage: storage.clone(),
            bytes: row.size,
            taken_at,
            // Made by an operation of the lost host, whose journal is lost: what is proved of one backup is proved of
            // no other.
            taken_by: OperationId::new(Uuid::now_v7()),
            why: BackupWhy::Schedule,
            tier: None,
            point: None,
            sealed: row.sealed.clone(),
            missing_since: None,
            took: None,
            label: None,
            mounts: None,
            hardware: None,
            disks: None,
        })
    };
    let mut all: Vec<BackupRecord> = list.iter().filter(whole).filter_map(record).collect();
    all.sort_by_key(|backup| (backup.guest, std::cmp::Reverse(backup.taken_at)));
    let most = usize::try_from(limits::REMAINS_MAX).unwrap_or(usize::MAX);
    all.chunk_by(|one, next| one.guest == next.guest).flat_map(|own| own.iter().take(most)).cloned().collect()
}
