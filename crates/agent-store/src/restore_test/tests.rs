//! Tests of which results the plan gets, and which are deleted.

use holdfast_protocol::generation::Generation;

use super::*;
use crate::tests::{at, open, uid};

fn words(tests: &[TestRecord]) -> Vec<(GuestUid, &str, TestVerdict, Timestamp)> {
    tests.iter().map(|test| (test.guest, test.archive.storage().unwrap(), test.verdict, test.at)).collect()
}

#[tokio::test]
async fn the_plan_gets_the_last_of_each_verdict_and_as_many_as_a_trend_takes() {
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
    insert_for_tests(folder.path(), &tests).unwrap();
    let records = store.records(Generation::new(1), at(9)).await.unwrap();
    let expected = [
        (uid(1), "pbs1", Proved, at(1)),
        (uid(1), "backup2", Proved, at(2)),
        (uid(1), "backup2", Proved, at(3)),
        (uid(1), "backup2", Failed, at(4)),
        (uid(1), "backup2", BootedOnly, at(6)),
        (uid(2), "pbs1", Failed, at(5)),
    ];
    assert_eq!(words(&records.tests), expected);
    assert_eq!(records.tests[1].took, Took::default(), "nothing was measured before");

    Connection::open(folder.path().join("agent.db"))
        .and_then(|connection| connection.execute("DELETE FROM restore_test", []))
        .unwrap();
    let verdict = |n: i64| if n % 2 == 0 { "proved" } else { "not_run" };
    let tests: Vec<_> = (1..=20).map(|n| (1, "backup2", verdict(n), at(n))).collect();
    insert_for_tests(folder.path(), &tests).unwrap();
    let records = store.records(Generation::new(1), at(99)).await.unwrap();
    let times: Vec<_> = records.tests.iter().map(|test| test.at).collect();
    let trend = (4..=20).step_by(2).flat_map(|n| [at(n)].into_iter().chain((n == 18).then(|| at(19))));
    assert_eq!(times, trend.collect::<Vec<_>>(), "nine that came back, and one that could not be run");
}

/// Takes those away that one more of this guest would.
fn one_more(folder: &std::path::Path, now: Timestamp) -> Vec<(String, String, i64)> {
    let mut connection = Connection::open(folder.join("agent.db")).unwrap();
    let transaction = connection.transaction().unwrap();
    forget(&transaction, uid(1), now).unwrap();
    transaction.commit().unwrap();
    let sql =
        "SELECT verdict, substr(archive, 1, instr(archive, ':') - 1), (at - ?1) / 1000000 FROM restore_test
               WHERE guest = ?2 ORDER BY at";
    let mut select = connection.prepare(sql).unwrap();
    let rows = select
        .query_map((micros(at(0)), uid(1).to_string()), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn times(rows: &[(String, String, i64)], verdict: &str, storage: &str) -> Vec<i64> {
    let of = |row: &&(String, String, i64)| row.0 == verdict && row.1 == storage;
    rows.iter().filter(of).map(|row| row.2).collect()
}

/// The records have these backups.
fn backups(folder: &std::path::Path, tests: &[u128]) {
    let connection = Connection::open(folder.join("agent.db")).unwrap();
    for n in tests {
        let sql = "INSERT INTO backup (volid, guest, vmid, storage, bytes, taken_at, operation, why)
                   VALUES (?1, ?2, 300, 'backup2', 7, 0, ?3, 'schedule')";
        let by = uuid::Uuid::from_u128(*n).to_string();
        connection.execute(sql, (format!("backup2:backup/{n}"), uid(1).to_string(), by)).unwrap();
    }
}

#[tokio::test]
async fn tests_are_let_go_of_when_enough_newer_ones_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).await);
    let mut tests = vec![
        (1, "pbs1", "failed", at(1)),
        (1, "backup2", "booted_only", at(2)),
        (2, "backup2", "not_run", at(3)),
    ];
    tests.extend((101..=140).map(|n| (1, "backup2", "proved", at(n))));
    tests.extend((201..=240).map(|n| (1, "backup2", "not_run", at(n))));
    insert_for_tests(folder.path(), &tests).unwrap();
    let kept = one_more(folder.path(), at(1_000));
    assert_eq!(times(&kept, "failed", "pbs1"), [1], "the last of its kind stays, however old");
    assert_eq!(times(&kept, "booted_only", "backup2"), [2]);
    assert_eq!(times(&kept, "proved", "backup2"), (115..=140).collect::<Vec<_>>());
    assert_eq!(times(&kept, "not_run", "backup2"), (215..=240).collect::<Vec<_>>());
    assert_eq!(one_more(folder.path(), at(1_000)), kept, "and no more than that");
    let connection = Connection::open(folder.path().join("agent.db")).unwrap();
    let others = "SELECT count(*) FROM restore_test WHERE guest = ?1";
    let others: i64 = connection.query_row(others, [uid(2).to_string()], |row| row.get(0)).unwrap();
    assert_eq!(others, 1, "another guest's are its own");
}

/// A requested backup can be deleted by a signed job, whatever the promise says.
#[tokio::test]
async fn backups_are_known_where_no_guest_has_a_promise() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    backups(folder.path(), &[1]);
    let records = store.records(Generation::new(1), at(1_000)).await.unwrap();
    assert!(records.protections.is_empty());
    assert!(records.backups.iter().any(|backup| backup.guest == uid(1)));
}

/// A proof makes a backup the newest proved one, which is never pruned. The last result about it decides whether a lost
/// guest is restored from it. A test that could not be run says nothing about the backup.
#[tokio::test]
async fn the_last_words_about_a_backup_stay_as_long_as_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut tests = vec![
        (1, "backup2", "proved", at(1)),
        (1, "backup2", "failed", at(2)),
        (1, "backup2", "not_run", at(3)),
        (1, "backup2", "proved", at(4)),
    ];
    for verdict in ["proved", "failed", "not_run"] {
        tests.extend((101..=130).map(|n| (1, "backup2", verdict, at(n))));
    }
    insert_for_tests(folder.path(), &tests).unwrap();
    backups(folder.path(), &[1, 2, 3, 4]);
    let kept = one_more(folder.path(), at(1_000));
    let newest = |first: &[i64]| first.iter().copied().chain(105..=130).collect::<Vec<_>>();
    assert_eq!(times(&kept, "proved", "backup2"), newest(&[1, 4]));
    assert_eq!(times(&kept, "failed", "backup2"), newest(&[2]));
    assert_eq!(times(&kept, "not_run", "backup2"), newest(&[]));
    let proofs = store.records(Generation::new(1), at(1_000)).await.unwrap().proofs;
    let proof = |n| proofs.get(&OperationId::new(uuid::Uuid::from_u128(n))).copied();
    assert_eq!((proof(1), proof(4)), (Some(at(1)), Some(at(4))));

    // Once the backup is gone, the next write deletes them.
    let connection = Connection::open(folder.path().join("agent.db")).unwrap();
    connection.execute("DELETE FROM backup", []).unwrap();
    let kept = one_more(folder.path(), at(1_000));
    assert_eq!(times(&kept, "proved", "backup2"), newest(&[]));
    assert_eq!(times(&kept, "failed", "backup2"), newest(&[]));
}

/// A fast clock wrote a month of tests dated ahead. Tests of the right clock do not count as older than those.
#[tokio::test]
async fn what_a_clock_that_was_ahead_wrote_drives_nothing_away() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).await);
    let mut tests = vec![(1, "backup2", "proved", at(1)), (1, "backup2", "proved", at(2))];
    tests.extend((1..=30).map(|n| (1, "backup2", "proved", at(86_400 * n + 10_000))));
    insert_for_tests(folder.path(), &tests).unwrap();
    let kept = times(&one_more(folder.path(), at(10)), "proved", "backup2");
    assert_eq!((kept.len(), &kept[..2]), (26, &[1, 2][..]), "{kept:?}");
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
    insert_for_tests(folder.path(), &tests).unwrap();
    let connection = Connection::open(folder.path().join("agent.db")).unwrap();
    let taken_by = uuid::Uuid::from_u128(7).to_string();
    connection.execute("UPDATE restore_test SET backup = ?1", [&taken_by]).unwrap();
    let records = store.records(Generation::new(1), at(9)).await.unwrap();
    let times: Vec<Timestamp> = records.tests.iter().map(|test| test.at).collect();
    assert_eq!((times, records.proofs.into_values().collect::<Vec<_>>()), (vec![at(1), at(2)], vec![at(2)]));
    assert_eq!(store.last_proof(uid(1), at(9)).await.unwrap(), Some(at(2)));

    // A backup that was proved only under such a clock is kept like any other proved one.
    connection.execute("DELETE FROM restore_test WHERE at < ?1", [micros(ahead)]).unwrap();
    // The store does not see what another connection writes, until the next minute.
    let records = store.records(Generation::new(1), at(99)).await.unwrap();
    assert!(records.tests.is_empty());
    assert_eq!(records.proofs.into_values().collect::<Vec<_>>(), [ahead]);
    assert_eq!(store.last_proof(uid(1), at(9)).await.unwrap(), None);
}
