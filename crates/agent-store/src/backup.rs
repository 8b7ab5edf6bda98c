//! Backups that our operations took and found.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_protocol::id::{GuestUid, KeyFingerprint, OperationId, StorageName};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::columns::{from_json, json, micros, parsed, time, vmid, word};
use super::{Part, Store, StoreError, audit, window};
use agent_core::model::disks::Disks;
use agent_core::model::hardware::HardwareAddress;
use agent_core::model::records::{BackupRecord, BackupWhy, HeldMounts, VolumeId};
use agent_core::operation::PruneBackup;
use agent_core::operation::progress::OperationState;
use agent_core::operation::window::without;

const COLUMNS: &str = "volid, guest, vmid, storage, bytes, taken_at, operation, why, tier, point, sealed, missing_since, label, \
     mounts, hardware, disks, took_ms";

struct Raw {
    texts: [String; 5],
    numbers: [i64; 3],
    tier: Option<String>,
    point: Option<i64>,
    sealed: Option<String>,
    missing_since: Option<i64>,
    label: Option<String>,
    mounts: Option<String>,
    hardware: Option<String>,
    disks: Option<String>,
    took_ms: Option<i64>,
}

fn raw(row: &Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(3)?, row.get(6)?, row.get(7)?],
        numbers: [row.get(2)?, row.get(4)?, row.get(5)?],
        tier: row.get(8)?,
        point: row.get(9)?,
        sealed: row.get(10)?,
        missing_since: row.get(11)?,
        label: row.get(12)?,
        mounts: row.get(13)?,
        hardware: row.get(14)?,
        disks: row.get(15)?,
        took_ms: row.get(16)?,
    })
}

impl Raw {
    fn record(self) -> Result<BackupRecord, StoreError> {
        let [archive, guest, storage, operation, why] = self.texts;
        let [number, bytes, taken_at] = self.numbers;
        Ok(BackupRecord {
            archive: VolumeId::new(archive),
            guest: parsed("a guest's uid", &guest)?,
            vmid: vmid(number)?,
            storage: parsed("a storage", &storage)?,
            bytes: u64::try_from(bytes).map_err(StoreError::unreadable("a size"))?,
            taken_at: time(taken_at)?,
            taken_by: parsed("an operation", &operation)?,
            why: from_json("why a backup was taken", &format!("\"{why}\""))?,
            tier: self.tier.map(|tier| from_json("a tier", &format!("\"{tier}\""))).transpose()?,
            point: self.point.map(time).transpose()?,
            sealed: self.sealed.map(|key| parsed("a key's fingerprint", &key)).transpose()?,
            missing_since: self.missing_since.map(time).transpose()?,
            label: self.label.map(|label| from_json("a backup's label", &label)).transpose()?,
            mounts: self.mounts.map(|mounts| from_json("a backup's mounts", &mounts)).transpose()?,
            hardware: self.hardware.map(|text| parsed("a hardware address", &text)).transpose()?,
            disks: self.disks.map(|disks| from_json("a guest's disks", &disks)).transpose()?,
            // A clock that was set back meanwhile makes it negative.
            took: self.took_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis),
        })
    }
}

/// How a storage's list differs from our records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// It exists after all, or its encryption differs.
    Again {
        archive: VolumeId,
        /// The key it is encrypted with.
        sealed: Option<KeyFingerprint>,
    },
    /// It is not there.
    Not(VolumeId),
}

/// A backup as it was listed when it was found.
pub(super) struct ListedBackup<'a> {
    pub archive: &'a VolumeId,
    pub bytes: u64,
    pub at: Timestamp,
    pub sealed: Option<&'a KeyFingerprint>,
    pub mounts: Option<&'a HeldMounts>,
    pub hardware: Option<HardwareAddress>,
    pub disks: Option<&'a Disks>,
}

/// One was found.
pub(super) fn found(
    transaction: &Transaction<'_>,
    progress: &OperationState,
    found: &ListedBackup<'_>,
) -> Result<(), StoreError> {
    let ListedBackup { archive, bytes, at, sealed, mounts, hardware, disks } = *found;
    let due = progress.operation.due();
    let why = progress.operation.backup().map_or(BackupWhy::First, |backup| backup.why);
    // The window decides the label, by the stacks that were stopped; its row and the backup's row are written in one
    // transaction.
    let label = match window::find(transaction, progress.id)? {
        Some(window) => window.label(),
        None => without(why),
    };
    let storage = archive.as_str().split(':').next().unwrap_or_default();
    let storage: StorageName = parsed("a storage", storage)?;
    let number = progress.vmid().ok_or_else(|| StoreError::Unreadable {
        what: "a backup's guest",
        source: "the operation has no VMID".into(),
    })?;
    transaction
        .execute(
            &format!(
                "INSERT OR REPLACE INTO backup ({COLUMNS})
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, ?12, ?13, ?14, ?15, NULL)"
            ),
            (
                archive.as_str(),
                progress.operation.uid().to_string(),
                number.number(),
                storage.as_str(),
                i64::try_from(bytes).map_err(StoreError::unreadable("a size"))?,
                micros(at),
                progress.id.to_string(),
                word("why a backup was taken", &why)?,
                due.map(|due| word("a tier", &due.tier)).transpose()?,
                due.map(|due| micros(due.point)),
                sealed.map(KeyFingerprint::as_str),
                json("a backup's label", &label)?,
                mounts.map(|mounts| json("a backup's mounts", mounts)).transpose()?,
                hardware.map(|address| address.to_string()),
                disks.map(|disks| json("a guest's disks", disks)).transpose()?,
            ),
        )
        .map_err(StoreError::sqlite("note a backup"))?;
    Ok(())
}

/// The operation that took one is done. One that takes a backup beside its work says nothing of its duration.
pub(super) fn done(
    transaction: &Transaction<'_>,
    after: &OperationState,
    serial: i64,
) -> Result<(), StoreError> {
    if after.operation.backup().is_none() {
        return Ok(());
    }
    transaction
        .execute(
            "UPDATE backup SET took_ms = (SELECT (ended_at - opened_at) / 1000 FROM operation WHERE serial = ?2)
             WHERE operation = ?1",
            (after.id.to_string(), serial),
        )
        .map_err(StoreError::sqlite("note how long a backup took"))?;
    Ok(())
}

fn select(
    connection: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<BackupRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM backup {rest}"))
        .and_then(|mut select| select.query_map(params, raw)?.collect())
        .map_err(StoreError::sqlite("read the backups"))?;
    rows.into_iter().map(Raw::record).collect()
}

/// A guest's last ones, the newest first.
pub(super) fn newest(
    connection: &Connection,
    guest: GuestUid,
    limit: u32,
) -> Result<Vec<BackupRecord>, StoreError> {
    let rest = "WHERE guest = ?1 ORDER BY taken_at DESC, volid LIMIT ?2";
    select(connection, rest, (guest.to_string(), limit))
}

/// All of them as they were last read, and the count of changes at which they were.
#[derive(Default)]
pub(super) struct BackupCache(Mutex<(i64, Arc<Vec<BackupRecord>>)>);

impl BackupCache {
    /// All of them, sorted by guest and time. They are many and change seldom: read again only when they changed.
    pub(super) fn all(&self, connection: &Connection) -> Result<Arc<Vec<BackupRecord>>, StoreError> {
        let changes: i64 = connection
            .prepare_cached("SELECT coalesce(max(value), 0) FROM counter WHERE key = 'backups'")
            .and_then(|mut select| select.query_row([], |row| row.get(0)))
            .map_err(StoreError::sqlite("count the changes of backups"))?;
        let mut kept = self.0.lock().map_err(|_| StoreError::Closed)?;
        if kept.0 != changes {
            *kept = (changes, Arc::new(select(connection, "ORDER BY guest, taken_at, volid", ())?));
        }
        Ok(Arc::clone(&kept.1))
    }
}

/// The backup that an operation took.
pub(super) fn of(
    connection: &Connection,
    operation: OperationId,
) -> Result<Option<BackupRecord>, StoreError> {
    Ok(select(connection, "WHERE operation = ?1", [operation.to_string()])?.into_iter().next())
}

/// One guest's, oldest first.
pub(super) fn of_guest(connection: &Connection, guest: GuestUid) -> Result<Vec<BackupRecord>, StoreError> {
    select(connection, "WHERE guest = ?1 ORDER BY taken_at, volid", [guest.to_string()])
}

/// One was removed. Another one under its name stays on record.
pub(super) fn gone(transaction: &Transaction<'_>, spec: &PruneBackup) -> Result<(), StoreError> {
    transaction
        .execute(
            "DELETE FROM backup WHERE volid = ?1 AND operation = ?2",
            (spec.archive.as_str(), spec.taken_by.to_string()),
        )
        .map_err(StoreError::sqlite("forget a backup"))?;
    Ok(())
}

fn note(transaction: &Transaction<'_>, listed: &Listed, at: Timestamp) -> Result<(), StoreError> {
    let failed = StoreError::sqlite("note what a storage lists");
    let (archive, action) = match listed {
        Listed::Again { archive, sealed } => {
            let sealed = sealed.as_ref().map(KeyFingerprint::as_str);
            transaction
                .execute(
                    "UPDATE backup SET missing_since = NULL, sealed = ?2 WHERE volid = ?1",
                    (archive.as_str(), sealed),
                )
                .map_err(failed)?;
            (archive, "backup_listed")
        }
        Listed::Not(archive) => {
            transaction
                .execute(
                    "UPDATE backup SET missing_since = ?2 WHERE volid = ?1 AND missing_since IS NULL",
                    (archive.as_str(), micros(at)),
                )
                .map_err(failed)?;
            (archive, "backup_missing")
        }
    };
    let guest: Option<String> = transaction
        .query_row("SELECT guest FROM backup WHERE volid = ?1", [archive.as_str()], |row| row.get(0))
        .optional()
        .map_err(StoreError::sqlite("find a backup"))?;
    let Some(guest) = guest else { return Ok(()) };
    let guest = Some(parsed("a guest's uid", &guest)?);
    audit::append(transaction, &audit::Line { at, action, guest, operation: None, detail: archive.as_str() })
}

impl Store {
    /// Notes the backups for which a storage's list differs from our records.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn note_listed(&self, listed: Vec<Listed>, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Guests, "note what a storage lists", move |transaction| {
            listed.iter().try_for_each(|one| note(transaction, one, at))
        })
        .await
    }

    /// A guest's last backups, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn backups(&self, guest: GuestUid, limit: u32) -> Result<Vec<BackupRecord>, StoreError> {
        self.read(move |connection| newest(connection, guest, limit)).await
    }

    /// The backup that an operation took.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn backup_of(&self, operation: OperationId) -> Result<Option<BackupRecord>, StoreError> {
        self.read(move |connection| of(connection, operation)).await
    }
}
