//! Snapshots that our operations made.

use holdfast_protocol::id::{GuestUid, OperationId, SnapshotName};
use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction};

use super::columns::{from_json, micros, parsed, time, vmid, word};
use super::{Store, StoreError};
use agent_core::model::records::SnapshotRecord;
use agent_core::operation::Snapshot;

const COLUMNS: &str = "guest, name, vmid, operation, taken_by, taken_at, expires_at, point";

struct Raw {
    texts: [String; 4],
    numbers: [i64; 2],
    /// When it may be deleted, and the point that it was taken for.
    stays: [Option<i64>; 2],
}

fn raw(row: &Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?],
        numbers: [row.get(2)?, row.get(5)?],
        stays: [row.get(6)?, row.get(7)?],
    })
}

impl Raw {
    fn record(self) -> Result<SnapshotRecord, StoreError> {
        let [guest, name, operation, taken_by] = self.texts;
        let [number, taken_at] = self.numbers;
        let [expires_at, point] = self.stays;
        Ok(SnapshotRecord {
            guest: parsed("a guest's uid", &guest)?,
            name: parsed("a snapshot's name", &name)?,
            vmid: vmid(number)?,
            made_by: parsed("an operation", &operation)?,
            taken_by: from_json("who asked for a snapshot", &format!("\"{taken_by}\""))?,
            taken_at: time(taken_at)?,
            expires_at: expires_at.map(time).transpose()?,
            point: point.map(time).transpose()?,
        })
    }
}

fn select(
    connection: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<SnapshotRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM snapshot {rest}"))
        .and_then(|mut select| select.query_map(params, raw)?.collect())
        .map_err(StoreError::sqlite("read the snapshots"))?;
    rows.into_iter().map(Raw::record).collect()
}

/// All of them, sorted by guest and time of expiry, those without one last.
pub(super) fn all(connection: &Connection) -> Result<Vec<SnapshotRecord>, StoreError> {
    select(connection, "ORDER BY guest, expires_at IS NULL, expires_at, point, name", ())
}

/// One guest's, those that expire first at the head.
pub(super) fn of(connection: &Connection, guest: GuestUid) -> Result<Vec<SnapshotRecord>, StoreError> {
    select(
        connection,
        "WHERE guest = ?1 ORDER BY expires_at IS NULL, expires_at, point, name",
        [guest.to_string()],
    )
}

/// One was taken. One of the same name that we knew is gone, else this one could not have been made.
pub(super) fn taken(
    transaction: &Transaction<'_>,
    spec: &Snapshot,
    by: OperationId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let taken_by = word("who asked for a snapshot", &spec.taken_by)?;
    transaction
        .execute(
            &format!("INSERT OR REPLACE INTO snapshot ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
            (
                spec.target.uid.to_string(),
                spec.name.as_str(),
                spec.target.vmid.number(),
                by.to_string(),
                taken_by,
                micros(at),
                spec.expires_at.map(micros),
                spec.due.as_ref().map(|due| micros(due.point)),
            ),
        )
        .map_err(StoreError::sqlite("note a snapshot"))?;
    Ok(())
}

/// The one that this operation took is gone.
pub(super) fn gone(transaction: &Transaction<'_>, made_by: OperationId) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM snapshot WHERE operation = ?1", [made_by.to_string()])
        .map_err(StoreError::sqlite("forget a snapshot"))?;
    Ok(())
}

/// They went with their guest.
pub(super) fn gone_with(transaction: &Transaction<'_>, guest: GuestUid) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM snapshot WHERE guest = ?1", [guest.to_string()])
        .map_err(StoreError::sqlite("forget a guest's snapshots"))?;
    Ok(())
}

impl Store {
    /// A guest's snapshots, those that expire first at the head.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn snapshots(&self, guest: GuestUid) -> Result<Vec<SnapshotRecord>, StoreError> {
        self.read(move |connection| of(connection, guest)).await
    }

    /// One of them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn snapshot(
        &self,
        guest: GuestUid,
        name: SnapshotName,
    ) -> Result<Option<SnapshotRecord>, StoreError> {
        self.read(move |connection| {
            let found =
                select(connection, "WHERE guest = ?1 AND name = ?2", (guest.to_string(), name.as_str()))?;
            Ok(found.into_iter().next())
        })
        .await
    }
}
