//! What became of backups that were tried. Written with what was seen; deliberately absent: changing or removing any of it.

use std::collections::BTreeMap;

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::restore_test::TestVerdict;
use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction};

use super::rows::{from_json, micros, parsed, time, word};
use super::{Store, StoreError, beside, test_access};
use crate::model::record::{TestRecord, VolumeId};
use crate::operation::RestoreTest;
use crate::operation::log::Status;
use crate::operation::progress::Progress;
use crate::operation::restore_test::blame;

const COLUMNS: &str = "operation, guest, archive, backup, verdict, why, taken_at, began_at, at";

struct Raw {
    texts: [String; 6],
    times: [i64; 3],
}

fn raw(row: &Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?],
        times: [row.get(6)?, row.get(7)?, row.get(8)?],
    })
}

impl Raw {
    fn record(self) -> Result<TestRecord, StoreError> {
        let [operation, guest, archive, backup, verdict, why] = self.texts;
        let [taken_at, began_at, at] = self.times;
        Ok(TestRecord {
            operation: parsed("an operation", &operation)?,
            guest: parsed("a guest's uid", &guest)?,
            archive: VolumeId::new(archive),
            backup: parsed("an operation", &backup)?,
            taken_at: time(taken_at)?,
            verdict: from_json("a verdict", &format!("\"{verdict}\""))?,
            why,
            began_at: time(began_at)?,
            at: time(at)?,
        })
    }
}

/// Something was seen. The first word counts: what comes after it only clears away.
pub(super) fn seen(
    transaction: &Transaction<'_>,
    test: &RestoreTest,
    by: &Progress,
    (verdict, why): (TestVerdict, &str),
    at: Timestamp,
) -> Result<(), StoreError> {
    transaction
        .execute(
            &format!(
                "INSERT OR IGNORE INTO restore_test ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
            ),
            (
                by.id.to_string(),
                test.guest.to_string(),
                test.backup.archive.as_str(),
                test.backup.taken_by.to_string(),
                word("a verdict", &verdict)?,
                why,
                micros(test.backup.taken_at),
                micros(by.opened_at),
                micros(at),
            ),
        )
        .map_err(StoreError::sqlite("note what a test showed"))?;
    Ok(())
}

/// It ended. A test that was taken back says why by the step that failed. One that is parked may still go on.
pub(super) fn ended(
    transaction: &Transaction<'_>,
    test: &RestoreTest,
    by: &Progress,
    at: Timestamp,
) -> Result<(), StoreError> {
    if by.status() == Status::Parked {
        return Ok(());
    }
    if by.tested().is_none() {
        let broken = by.broken_at();
        let verdict =
            broken.map_or(TestVerdict::NotRun, |(step, problem)| blame::verdict(step, problem.code));
        let why = broken.map(|(_, problem)| problem).or_else(|| by.cause());
        let why = why.map_or("it was ended before it saw anything", |problem| problem.message.as_str());
        seen(transaction, test, by, (verdict, why), at)?;
    }
    test_access::gone(transaction, by.id)?;
    beside::gone(transaction, by.id)
}

fn select(
    connection: &Connection,
    rest: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<TestRecord>, StoreError> {
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM restore_test {rest}"))
        .and_then(|mut select| select.query_map(params, raw)?.collect())
        .map_err(StoreError::sqlite("read the tests"))?;
    rows.into_iter().map(Raw::record).collect()
}

/// Of each guest the last test and the last that proved a backup, sorted by guest and time.
pub(super) fn last(connection: &Connection) -> Result<Vec<TestRecord>, StoreError> {
    let rest = "AS one WHERE at = (SELECT max(at) FROM restore_test AS other WHERE other.guest = one.guest)
                OR at = (SELECT max(at) FROM restore_test AS other
                         WHERE other.guest = one.guest AND other.verdict = 'proved')
                ORDER BY guest, at";
    select(connection, rest, ())
}

/// When each backup was last proved, by the operation that took it.
pub(super) fn proofs(connection: &Connection) -> Result<BTreeMap<OperationId, Timestamp>, StoreError> {
    let rows: Vec<(String, i64)> = connection
        .prepare_cached("SELECT backup, max(at) FROM restore_test WHERE verdict = 'proved' GROUP BY backup")
        .and_then(|mut select| select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(StoreError::sqlite("read what was proved"))?;
    rows.into_iter().map(|(backup, at)| Ok((parsed("an operation", &backup)?, time(at)?))).collect()
}

impl Store {
    /// A guest's last tests, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn restore_tests(&self, guest: GuestUid, limit: u32) -> Result<Vec<TestRecord>, StoreError> {
        self.read(move |connection| {
            select(
                connection,
                "WHERE guest = ?1 ORDER BY at DESC, operation LIMIT ?2",
                (guest.to_string(), limit),
            )
        })
        .await
    }
}
