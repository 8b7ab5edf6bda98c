//! Controllers of guests: whose turn it is to exchange its own, who fetched the bytes, and which ones did not come up here.
//!
//! Whose turn it is stands in the journal and nowhere else. That a guest began to fetch is on disk before the first byte is
//! sent: without it no guest is rolled back. A build that did not come up is not tried again on this host, until an operator
//! signs for these bytes once more (`release`).

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::desired::Turn;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::rows::{micros, parsed, time};
use super::{Part, Store, StoreError, audit, journal};
use crate::model::policy::Sha256Hex;
use crate::model::record::BadController;
use crate::operation::log::Status;
use crate::operation::step::Step;
use crate::operation::update_controller::Fetched;
use crate::operation::{Operation, UpdateController};

/// Those that did not come up.
pub(super) fn bad(connection: &Connection) -> Result<Vec<BadController>, StoreError> {
    let rows: Vec<([String; 4], i64)> = connection
        .prepare_cached("SELECT sha256, version, guest, why, at FROM bad_controller ORDER BY sha256")
        .and_then(|mut select| {
            let texts = |row: &Row<'_>| {
                Ok::<_, rusqlite::Error>([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            };
            select.query_map([], |row| Ok::<_, rusqlite::Error>((texts(row)?, row.get(4)?)))?.collect()
        })
        .map_err(StoreError::sqlite("read which controllers did not come up"))?;
    rows.into_iter()
        .map(|([sha256, version, guest, why], at)| {
            Ok(BadController {
                sha256: sha256.try_into().map_err(StoreError::unreadable("a digest"))?,
                version: version.try_into().map_err(StoreError::unreadable("a version"))?,
                guest: parsed("a guest", &guest)?,
                why,
                at: time(at)?,
            })
        })
        .collect()
}

/// One did not come up. The first word about it stays.
pub(super) fn is_bad(
    transaction: &Transaction<'_>,
    update: &UpdateController,
    by: OperationId,
    why: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let uid = update.target().uid;
    let (version, sha256) = (update.version.as_str(), update.sha256.as_str());
    transaction
        .execute(
            "INSERT OR IGNORE INTO bad_controller (sha256, version, guest, operation, why, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (sha256, version, uid.to_string(), by.to_string(), why, micros(at)),
        )
        .map_err(StoreError::sqlite("note that a controller did not come up"))?;
    let detail = format!("controller {version}, sha256 {sha256}: {why}");
    let line =
        audit::Line { at, action: "controller_bad", guest: Some(uid), operation: Some(by), detail: &detail };
    audit::append(transaction, &line)
}

/// An operator signed for these bytes once more.
pub(super) fn forgiven(transaction: &Transaction<'_>, sha256: &Sha256Hex) -> Result<(), StoreError> {
    transaction
        .execute("DELETE FROM bad_controller WHERE sha256 = ?1", [sha256.as_str()])
        .map_err(StoreError::sqlite("give a controller another chance"))?;
    Ok(())
}

fn turn(connection: &Connection, guest: GuestUid, sha256: &Sha256Hex) -> Result<Turn, StoreError> {
    let Some(progress) = journal::open_on(connection, guest)? else { return Ok(Turn::Waits) };
    let Operation::UpdateController(update) = &progress.operation else { return Ok(Turn::Waits) };
    let awaited = match progress.status() {
        Status::During(at) => progress.step(at) == Some(Step::AwaitController),
        _ => false,
    };
    Ok(if awaited && update.sha256 == *sha256 { Turn::Now(progress.id) } else { Turn::Waits })
}

fn fetched(connection: &Connection, operation: OperationId) -> Result<Fetched, StoreError> {
    let found: Option<i64> = connection
        .prepare_cached("SELECT at FROM controller_fetched WHERE operation = ?1")
        .and_then(|mut select| select.query_row([operation.to_string()], |row| row.get(0)).optional())
        .map_err(StoreError::sqlite("read who fetched a controller"))?;
    Ok(found.map_or(Fetched::No, |_| Fetched::Yes))
}

impl Store {
    /// Whether it is this guest's turn to run these bytes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn turn_of(&self, guest: GuestUid, sha256: Sha256Hex) -> Result<Turn, StoreError> {
        self.read(move |connection| turn(connection, guest, &sha256)).await
    }

    /// Whether the guest of this update began to fetch the bytes.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn fetched(&self, operation: OperationId) -> Result<Fetched, StoreError> {
        self.read(move |connection| fetched(connection, operation)).await
    }

    /// Notes that it begins to. When this returns, it is on disk.
    ///
    /// # Errors
    /// [`StoreError`]; then no byte may be sent.
    pub async fn note_fetched(&self, operation: OperationId, at: Timestamp) -> Result<(), StoreError> {
        self.write(Part::Operations, "note who fetched a controller", move |transaction| {
            transaction
                .execute(
                    "INSERT OR IGNORE INTO controller_fetched (operation, at) VALUES (?1, ?2)",
                    (operation.to_string(), micros(at)),
                )
                .map_err(StoreError::sqlite("note who fetched a controller"))?;
            Ok::<_, StoreError>(())
        })
        .await
    }
}
