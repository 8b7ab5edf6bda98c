//! Backups that our operations took and found. Deliberately absent: their removal, which is the retention's work.

use holdfast_protocol::id::{GuestUid, OperationId, StorageName};
use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction};

use super::rows::{from_json, micros, parsed, time, vmid, word};
use super::{Store, StoreError};
use crate::model::record::{BackupRecord, BackupWhy, VolumeId};
use crate::operation::Operation;
use crate::operation::progress::Progress;

const COLUMNS: &str = "volid, guest, vmid, storage, bytes, taken_at, operation, why";

struct Raw {
    texts: [String; 5],
    numbers: [i64; 3],
}

fn raw(row: &Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(3)?, row.get(6)?, row.get(7)?],
        numbers: [row.get(2)?, row.get(4)?, row.get(5)?],
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
        })
    }
}

/// One was found.
pub(super) fn found(
    transaction: &Transaction<'_>,
    progress: &Progress,
    archive: &VolumeId,
    bytes: u64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let why = match &progress.operation {
        Operation::Backup(backup) => backup.why,
        _ => BackupWhy::First,
    };
    let storage = archive.as_str().split(':').next().unwrap_or_default();
    let storage: StorageName = parsed("a storage", storage)?;
    let number = progress.vmid().ok_or_else(|| StoreError::Unreadable {
        what: "a backup's guest",
        source: "the operation has no VMID".into(),
    })?;
    transaction
        .execute(
            &format!("INSERT OR REPLACE INTO backup ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
            (
                archive.as_str(),
                progress.operation.uid().to_string(),
                number.number(),
                storage.as_str(),
                i64::try_from(bytes).map_err(StoreError::unreadable("a size"))?,
                micros(at),
                progress.id.to_string(),
                word("why a backup was taken", &why)?,
            ),
        )
        .map_err(StoreError::sqlite("note a backup"))?;
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

impl Store {
    /// A guest's last backups, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn backups(&self, guest: GuestUid, limit: u32) -> Result<Vec<BackupRecord>, StoreError> {
        self.read(move |connection| {
            let rest = "WHERE guest = ?1 ORDER BY taken_at DESC, volid LIMIT ?2";
            select(connection, rest, (guest.to_string(), limit))
        })
        .await
    }

    /// The backup that an operation took.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn backup_of(&self, operation: OperationId) -> Result<Option<BackupRecord>, StoreError> {
        self.read(move |connection| {
            Ok(select(connection, "WHERE operation = ?1", [operation.to_string()])?.into_iter().next())
        })
        .await
    }
}
