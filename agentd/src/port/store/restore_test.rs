//! What became of backups that were tried. Written with what was seen; deliberately absent: changing or removing any of it.

use std::collections::BTreeMap;

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::local::restore_test::TestVerdict;
use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction};

use super::rows::{from_json, micros, parsed, time, word};
use super::{Store, StoreError, beside, test_access};
use crate::model::limits;
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

/// The latest moment that is believed: what was written by a clock that was ahead of it says nothing of when it was.
fn believed(now: Timestamp) -> i64 {
    micros(now.checked_add(limits::CLOCKS_APART).unwrap_or(Timestamp::MAX))
}

/// Of each guest, and of each storage that held a backup of it, the last test of each verdict; sorted by guest and time.
/// What was written by a clock that was ahead would keep every other test from being the last, and from being run, for as long.
pub(super) fn last(connection: &Connection, now: Timestamp) -> Result<Vec<TestRecord>, StoreError> {
    // With one max() the other columns are those of its row. The storage is what stands before the colon of an archive.
    let rows: Vec<Raw> = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, max(at) FROM restore_test WHERE at <= ?1
             GROUP BY guest, substr(archive, 1, instr(archive, ':')), verdict ORDER BY guest, at"
        ))
        .and_then(|mut select| select.query_map([believed(now)], raw)?.collect())
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

#[cfg(test)]
pub(crate) mod tests {
    use holdfast_protocol::generation::Generation;

    use super::*;
    use crate::port::store::tests::{at, open, uid};

    /// Tests as they were written down: guest, storage, verdict, and when it was seen.
    pub(crate) fn seen(folder: &std::path::Path, tests: &[(u8, &str, &str, Timestamp)]) {
        let connection = Connection::open(folder.join("agent.db")).unwrap();
        for (n, (guest, storage, verdict, at)) in (1_u128..).zip(tests) {
            let (id, archive) = (uuid::Uuid::from_u128(n).to_string(), format!("{storage}:backup/{n}"));
            let sql = format!(
                "INSERT INTO restore_test ({COLUMNS}) VALUES (?1, ?2, ?3, ?1, ?4, 'as the story wants it', 0, 0, ?5)"
            );
            let guest = uid(*guest).to_string();
            connection.execute(&sql, (id, guest, archive, verdict, micros(*at))).unwrap();
        }
    }

    fn words(tests: &[TestRecord]) -> Vec<(GuestUid, &str, TestVerdict, Timestamp)> {
        tests
            .iter()
            .map(|test| (test.guest, test.archive.storage().unwrap(), test.verdict, test.at))
            .collect()
    }

    #[tokio::test]
    async fn the_plan_gets_the_last_of_each_verdict_of_each_guest_and_storage() {
        use TestVerdict::{BootedOnly, Failed, Proved};
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let tests = [
            (2, "pbs1", "failed", at(5)),
            (1, "pbs1", "proved", at(1)),
            (1, "backup2", "proved", at(2)),
            (1, "backup2", "failed", at(4)),
            (1, "backup2", "proved", at(3)),
            (1, "backup2", "booted_only", at(6)),
        ];
        seen(folder.path(), &tests);
        let records = store.records(Generation::new(1), at(9)).await.unwrap();
        let expected = [
            (uid(1), "pbs1", Proved, at(1)),
            (uid(1), "backup2", Proved, at(3)),
            (uid(1), "backup2", Failed, at(4)),
            (uid(1), "backup2", BootedOnly, at(6)),
            (uid(2), "pbs1", Failed, at(5)),
        ];
        assert_eq!(words(&records.tests), expected);
    }

    /// Neither do they stop the tests, nor hide the proof that there is.
    #[tokio::test]
    async fn tests_of_a_time_to_come_are_not_the_last_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        let ahead = at(400 * 86_400);
        let tests = [
            (1, "backup2", "booted_only", at(1)),
            (1, "backup2", "booted_only", ahead),
            (1, "backup2", "proved", at(2)),
            (1, "backup2", "proved", ahead),
        ];
        seen(folder.path(), &tests);
        let connection = Connection::open(folder.path().join("agent.db")).unwrap();
        let taken_by = uuid::Uuid::from_u128(7).to_string();
        connection.execute("UPDATE restore_test SET backup = ?1", [&taken_by]).unwrap();
        let records = store.records(Generation::new(1), at(9)).await.unwrap();
        let times: Vec<Timestamp> = records.tests.iter().map(|test| test.at).collect();
        assert_eq!(
            (times, records.proofs.into_values().collect::<Vec<_>>()),
            (vec![at(1), at(2)], vec![at(2)])
        );
        assert_eq!(store.last_proof(uid(1), at(9)).await.unwrap(), Some(at(2)));

        // A backup that was proved by such a clock alone is kept like any other that was proved.
        connection.execute("DELETE FROM restore_test WHERE at < ?1", [micros(ahead)]).unwrap();
        let records = store.records(Generation::new(1), at(9)).await.unwrap();
        assert!(records.tests.is_empty());
        assert_eq!(records.proofs.into_values().collect::<Vec<_>>(), [ahead]);
        assert_eq!(store.last_proof(uid(1), at(9)).await.unwrap(), None);
    }
}
