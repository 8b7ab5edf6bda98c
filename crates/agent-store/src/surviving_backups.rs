//! Backups of guests that are gone.
//!
//! Input: guests. Output: their rows unchanged, the newest first. Deliberately absent: which of them can be used
//! (`plan/survivor`).

use std::collections::BTreeMap;

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::restore_test::TestVerdict;
use rusqlite::Connection;

use super::columns::from_json;
use super::{Store, StoreError, backup};
use agent_core::model::limits;
use agent_core::model::observed::Remains;
use agent_core::model::records::BackupRecord;

/// The verdict of the last test of a backup. A test that could not be run has none.
fn tested(connection: &Connection, taken_by: OperationId) -> Result<Option<TestVerdict>, StoreError> {
    let rows: Vec<String> = connection
        .prepare_cached(
            "SELECT verdict FROM restore_test WHERE backup = ?1 AND verdict <> 'not_run' ORDER BY at DESC LIMIT 1",
        )
        .and_then(|mut select| select.query_map([taken_by.to_string()], |row| row.get(0))?.collect())
        .map_err(StoreError::sqlite("read what tests saw"))?;
    rows.first().map(|verdict| from_json("a verdict", &format!("\"{verdict}\""))).transpose()
}

fn of(connection: &Connection, guest: GuestUid) -> Result<Vec<Remains>, StoreError> {
    let with = |backup: BackupRecord| Ok(Remains { tested: tested(connection, backup.taken_by)?, backup });
    backup::newest(connection, guest, limits::REMAINS_MAX)?.into_iter().map(with).collect()
}

impl Store {
    /// The backups that remain of each of these guests, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn remains(
        &self,
        guests: Vec<GuestUid>,
    ) -> Result<BTreeMap<GuestUid, Vec<Remains>>, StoreError> {
        self.read(move |connection| {
            guests.into_iter().map(|guest| Ok((guest, of(connection, guest)?))).collect()
        })
        .await
    }
}
