//! Snapshots and backups as a guest sees them.

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::work::KeptBackup;
use rusqlite::Connection;

use super::columns::{from_json, parsed, time};
use super::{Store, StoreError, journal_read, snapshot};
use agent_core::model::records::{BackupRecord, SnapshotRecord, TakenBy};
use agent_core::model::request::RequestRecord;
use agent_core::operation::progress::OperationState;

/// One guest's backups: kept, under way, and requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnBackups {
    /// Found after they were taken, by operation, oldest first.
    pub kept: Vec<(OperationId, KeptBackup)>,
    /// The open operation on the guest, whatever it does.
    pub open: Option<OperationState>,
    /// Requests that wait, whatever they ask for.
    pub waiting: Vec<RequestRecord>,
}

/// A backup as it is shown.
pub(super) fn kept(record: &BackupRecord) -> KeptBackup {
    KeptBackup {
        taken_at: record.taken_at,
        bytes: record.bytes,
        storage: record.storage.to_string(),
        label: record.label.clone(),
    }
}

/// The existing snapshots that their guest requested, oldest first.
pub(super) fn snapshots(connection: &Connection, guest: GuestUid) -> Result<Vec<SnapshotRecord>, StoreError> {
    let mut own = snapshot::of(connection, guest)?;
    own.retain(|snapshot| snapshot.taken_by == TakenBy::Guest);
    own.sort_by(|one, other| (one.taken_at, &one.name).cmp(&(other.taken_at, &other.name)));
    Ok(own)
}

fn backups(connection: &Connection, guest: GuestUid) -> Result<Vec<(OperationId, KeptBackup)>, StoreError> {
    let rows: Vec<(String, i64, i64, String, Option<String>)> = connection
        .prepare_cached(
            "SELECT operation, taken_at, bytes, storage, label FROM backup WHERE guest = ?1 ORDER BY taken_at, volid",
        )
        .and_then(|mut select| {
            let rows = select.query_map([guest.to_string()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })?;
            rows.collect()
        })
        .map_err(StoreError::sqlite("read the backups"))?;
    rows.into_iter()
        .map(|(operation, taken_at, bytes, storage, label)| {
            let bytes = u64::try_from(bytes).map_err(StoreError::unreadable("a backup's size"))?;
            let label = label.map(|label| from_json("a backup's label", &label)).transpose()?;
            let kept = KeptBackup { taken_at: time(taken_at)?, bytes, storage, label };
            Ok((parsed("an operation", &operation)?, kept))
        })
        .collect()
}

impl Store {
    /// The existing snapshots of a guest that it requested, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn snapshots_asked_by(&self, guest: GuestUid) -> Result<Vec<SnapshotRecord>, StoreError> {
        self.read(move |connection| snapshots(connection, guest)).await
    }

    /// The backups of a guest, in one read.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn own_backups(&self, guest: GuestUid) -> Result<OwnBackups, StoreError> {
        self.read(move |connection| {
            let waiting = super::request::queued(connection)?.into_iter();
            let waiting = waiting.filter(|request| request.guest == guest);
            let (mut kept, open) = (backups(connection, guest)?, journal_read::open_on(connection, guest)?);
            // A label that may still improve is not shown.
            let unsettled = |id: OperationId| open.as_ref().is_some_and(|progress| progress.id == id);
            kept.iter_mut().filter(|(id, _)| unsettled(*id)).for_each(|(_, kept)| kept.label = None);
            Ok(OwnBackups {
                kept,
                open,
                waiting: waiting.map(|request| RequestRecord { request, end: None }).collect(),
            })
        })
        .await
    }
}
