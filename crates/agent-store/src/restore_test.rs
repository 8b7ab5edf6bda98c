//! Results of restore tests, never changed.
//!
//! A test a week for years, and one an hour while there is no room for it, would fill the table. So a write deletes
//! results that have enough newer ones with the same verdict for the same storage. While the records have a backup, its
//! last result of each verdict is never deleted: the last proof keeps the backup from being pruned.

use std::collections::BTreeMap;

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::Took;
use holdfast_protocol::restore_certificate::Check;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::columns::{from_json, json, micros, parsed, time, word};
use super::{Store, StoreError, copies, test_access, window};
use agent_core::model::limits;
use agent_core::model::records::{TestRecord, VolumeId};
use agent_core::operation::RestoreTest;
use agent_core::operation::log::Status;
use agent_core::operation::progress::OperationState;
use agent_core::operation::restore_test::{blame, checks, took};

const COLUMNS: &str =
    "operation, guest, archive, backup, verdict, why, taken_at, began_at, at, bytes, restore_s, up_s";

struct Raw {
    texts: [String; 6],
    times: [i64; 3],
    measured: [Option<i64>; 3],
}

fn raw(row: &Row<'_>) -> Result<Raw, rusqlite::Error> {
    Ok(Raw {
        texts: [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?],
        times: [row.get(6)?, row.get(7)?, row.get(8)?],
        measured: [row.get(9)?, row.get(10)?, row.get(11)?],
    })
}

impl Raw {
    fn record(self) -> Result<TestRecord, StoreError> {
        let [operation, guest, archive, backup, verdict, why] = self.texts;
        let [taken_at, began_at, at] = self.times;
        // None of them is written where it is less than nothing.
        let [bytes, restore_s, up_s] =
            self.measured.map(|number| number.and_then(|number| u64::try_from(number).ok()));
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
            bytes,
            took: Took { restore_s, up_s },
        })
    }
}

/// A result was found. The first one counts: later steps only clean up.
pub(super) fn seen(
    transaction: &Transaction<'_>,
    test: &RestoreTest,
    by: &OperationState,
    (verdict, why): (TestVerdict, &str),
    at: Timestamp,
) -> Result<(), StoreError> {
    let took = took::of(by, at);
    let seconds = |seconds: Option<u64>| seconds.and_then(|seconds| i64::try_from(seconds).ok());
    let checks = match verdict {
        TestVerdict::Proved => passed(transaction, test, by.id)?,
        TestVerdict::BootedOnly | TestVerdict::Failed | TestVerdict::NotRun => None,
    };
    transaction
        .execute(
            &format!(
                "INSERT OR IGNORE INTO restore_test ({COLUMNS}, checks)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
            ),
            rusqlite::params![
                by.id.to_string(),
                test.guest.to_string(),
                test.backup.archive.as_str(),
                test.backup.taken_by.to_string(),
                word("a verdict", &verdict)?,
                why,
                micros(test.backup.taken_at),
                micros(by.opened_at),
                micros(at),
                bytes(transaction, test)?,
                seconds(took.restore_s),
                seconds(took.up_s),
                checks,
            ],
        )
        .map_err(StoreError::sqlite("note what a test showed"))?;
    forget(transaction, test.guest, at)
}

/// What was checked, as the scratch guest reported it.
fn passed(
    transaction: &Transaction<'_>,
    test: &RestoreTest,
    by: OperationId,
) -> Result<Option<String>, StoreError> {
    let Some(report) = test_access::speech(transaction, by)?.report else { return Ok(None) };
    let window = window::find(transaction, test.backup.taken_by)?;
    let reported = window.as_ref().and_then(|window| window.quiesced_stacks());
    let reported = reported.map_or(&[][..], |stacks| &stacks.canaries);
    json("what a test checked", &checks::passed(&report, reported)).map(Some)
}

/// For each guest its newest proved test of which the checks are known. A test that a fast clock dated ahead is left out.
pub(super) fn newest_proved(
    connection: &Connection,
    now: Timestamp,
) -> Result<Vec<(TestRecord, Vec<Check>)>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, checks FROM (
             SELECT *, row_number() OVER (PARTITION BY guest ORDER BY at DESC, operation) AS place
             FROM restore_test WHERE verdict = 'proved' AND checks IS NOT NULL AND at <= ?1)
         WHERE place = 1 ORDER BY at, guest"
    );
    let rows: Vec<(Raw, String)> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| {
            select.query_map([believed(now)], |row| Ok((raw(row)?, row.get("checks")?)))?.collect()
        })
        .map_err(StoreError::sqlite("read the newest proved tests"))?;
    rows.into_iter()
        .map(|(raw, checks)| Ok((raw.record()?, from_json("what a test checked", &checks)?)))
        .collect()
}

/// The size of the backup in the records.
fn bytes(transaction: &Transaction<'_>, test: &RestoreTest) -> Result<Option<i64>, StoreError> {
    transaction
        .prepare_cached("SELECT bytes FROM backup WHERE operation = ?1")
        .and_then(|mut select| {
            select.query_row([test.backup.taken_by.to_string()], |row| row.get(0)).optional()
        })
        .map_err(StoreError::sqlite("read a backup's size"))
}

/// Deletes a guest's tests that have enough newer ones. A test that a fast clock dated ahead does not count as newer
/// than one with a plausible time.
fn forget(transaction: &Transaction<'_>, guest: GuestUid, now: Timestamp) -> Result<(), StoreError> {
    transaction
        .prepare_cached(
            "DELETE FROM restore_test WHERE operation IN (
                 SELECT operation FROM (
                     SELECT operation, backup, verdict,
                         row_number() OVER (PARTITION BY substr(archive, 1, instr(archive, ':')), verdict
                             ORDER BY at > ?2, at DESC, operation) AS of_storage,
                         row_number() OVER (PARTITION BY backup, verdict
                             ORDER BY at > ?2, at DESC, operation) AS of_backup
                     FROM restore_test WHERE guest = ?1)
                 WHERE of_storage > ?3 AND (of_backup > 1 OR verdict = 'not_run'
                     OR backup NOT IN (SELECT operation FROM backup WHERE guest = ?1)))",
        )
        .and_then(|mut delete| delete.execute((guest.to_string(), believed(now), limits::TESTS_PER_VERDICT)))
        .map_err(StoreError::sqlite("forget old tests"))?;
    Ok(())
}

/// The test's operation ended. For an undone test the failed step gives the reason. A parked one may still go on.
pub(super) fn ended(
    transaction: &Transaction<'_>,
    test: &RestoreTest,
    by: &OperationState,
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
    copies::gone(transaction, by.id)
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

/// The latest plausible moment: a record dated after it was written under a fast clock, so its time means nothing.
fn believed(now: Timestamp) -> i64 {
    micros(now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX))
}

/// For each guest and each storage that held a backup of it: the last test of each verdict, and as many successful ones
/// as a trend needs. Sorted by guest and time. A test that a fast clock dated ahead is left out. Otherwise no other
/// test would count as the last one, or be run, until that time.
pub(super) fn last(connection: &Connection, now: Timestamp) -> Result<Vec<TestRecord>, StoreError> {
    // The storage is the part of an archive's name before the colon.
    let sql = format!(
        "SELECT {COLUMNS} FROM (
             SELECT *, row_number() OVER (PARTITION BY guest, substr(archive, 1, instr(archive, ':')), verdict
                 ORDER BY at DESC, operation) AS place
             FROM restore_test WHERE at <= ?1)
         WHERE place <= CASE WHEN verdict IN ('proved', 'booted_only') THEN ?2 ELSE 1 END ORDER BY guest, at"
    );
    let rows: Vec<Raw> = connection
        .prepare_cached(&sql)
        .and_then(|mut select| select.query_map((believed(now), limits::TREND_TESTS + 1), raw)?.collect())
        .map_err(StoreError::sqlite("read the last tests"))?;
    rows.into_iter().map(Raw::record).collect()
}

/// When each backup was last proved, by the operation that took it. One that only a clock that was ahead speaks of is among
/// them: it is no proof by which a guest is protected, and it is kept like any other.
pub(super) fn proofs(
    connection: &Connection,
    now: Timestamp,
) -> Result<BTreeMap<OperationId, Timestamp>, StoreError> {
    let rows: Vec<(String, i64)> = connection
        .prepare_cached(
            "SELECT backup, coalesce(max(CASE WHEN at <= ?1 THEN at END), min(at)) FROM restore_test
             WHERE verdict = 'proved' GROUP BY backup",
        )
        .and_then(|mut select| {
            select.query_map([believed(now)], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
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

    /// When a backup of a guest was last proved, as far as that is believed now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn last_proof(&self, guest: GuestUid, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let last: Option<i64> = self
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT max(at) FROM restore_test WHERE guest = ?1 AND verdict = 'proved' AND at <= ?2",
                    )
                    .and_then(|mut select| {
                        select.query_row((guest.to_string(), believed(now)), |row| row.get(0))
                    })
                    .map_err(StoreError::sqlite("read the last proof"))
            })
            .await?;
        last.map(time).transpose()
    }
}

/// Inserts tests as a story wants them: the guest's number, storage, verdict, and when it was seen.
///
/// # Errors
/// SQLite's.
#[cfg(any(test, feature = "testing"))]
pub fn insert_for_tests(
    folder: &std::path::Path,
    tests: &[(u8, &str, &str, Timestamp)],
) -> rusqlite::Result<()> {
    let connection = Connection::open(folder.join("agent.db"))?;
    for (n, (guest, storage, verdict, at)) in (1_u128..).zip(tests) {
        let (id, archive) = (uuid::Uuid::from_u128(n).to_string(), format!("{storage}:backup/{n}"));
        let sql = format!(
            "INSERT INTO restore_test ({COLUMNS}) VALUES (?1, ?2, ?3, ?1, ?4, 'as the story wants it', 0, 0, ?5, NULL, NULL, NULL)"
        );
        let guest = uuid::Uuid::from_u128(u128::from(*guest)).to_string();
        connection.execute(&sql, (id, guest, archive, verdict, micros(*at)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
