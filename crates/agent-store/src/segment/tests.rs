//! Tests of one audit chain over files and database.

use std::path::Path;

use holdfast_protocol::audit::verify;

use super::*;
use crate::audit_file;
use crate::tests::{open, uid};

/// Lines for `days` days, one a day, from the first of January 2027 on.
async fn with_lines(folder: &Path, days: i64) -> Store {
    let store = open(folder).await;
    for day in 0..days {
        let at = day_of(day);
        store
            .write(Part::Nothing, "write the audit", move |transaction| {
                let detail = format!("day {day}");
                let guest = (day % 2 == 0).then(|| uid(1));
                let line = audit::Line { at, action: "thawed", guest, operation: None, detail: &detail };
                audit::append(transaction, &line)
            })
            .await
            .unwrap();
    }
    store
}

fn day_of(day: i64) -> Timestamp {
    let first: Timestamp = "2027-01-01T12:00:00Z".parse().unwrap();
    first.checked_add(SignedDuration::from_hours(24 * day)).unwrap()
}

async fn file(store: &Store, now: Timestamp) {
    while store.file_audit(now).await.unwrap() == Upkeep::More {}
}

/// An export, as `agentd audit export` writes it.
fn export(folder: &Path) -> String {
    let text = std::cell::RefCell::new(String::new());
    audit_file::each_line(
        folder,
        |extent| {
            let header =
                ExportHeader { schema: ExportSchema::V1, lines: extent.lines, after: extent.after.clone() };
            *text.borrow_mut() += &(serde_json::to_string(&header).unwrap() + "\n");
            Ok::<_, StoreError>(())
        },
        |line| {
            *text.borrow_mut() += &(serde_json::to_string(&line).unwrap() + "\n");
            Ok(())
        },
    )
    .unwrap();
    text.into_inner()
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(folder.join(FOLDER)) else { return Vec::new() };
    let mut names: Vec<String> = found.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn months_that_are_over_for_long_lie_in_files_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_lines(folder.path(), 100).await;
    let before = export(folder.path());
    file(&store, day_of(59)).await;
    assert!(files(folder.path()).is_empty(), "January ended less than a month before the first of March");
    file(&store, day_of(100)).await;
    // The tenth of April: January and February.
    assert_eq!(
        files(folder.path()),
        ["2027-01-000000001-000000031.jsonl", "2027-02-000000032-000000059.jsonl"]
    );
    let in_database = store.audit(u32::MAX).await.unwrap();
    assert_eq!((in_database[0].number, in_database.len()), (60, 41 + 2), "and a line for each file");
    assert_eq!(store.verify_audit().await.unwrap(), 102);
    let after = export(folder.path());
    assert_eq!(verify(&after, Verifier::default()).unwrap().lines, 102);
    let lines = |text: &str| text.lines().skip(1).take(100).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&after), lines(&before), "each line as it was");
    // Each file holds by itself, bound to the one before it.
    let second = std::fs::read_to_string(folder.path().join(FOLDER).join(&files(folder.path())[1])).unwrap();
    let held = verify(&second, Verifier::default()).unwrap();
    assert_eq!((held.missing, held.lines), (31, 59));
    // A guest's own records begin where the database begins, and each keeps its number.
    let page = store.own_audit(uid(1), 0, 10).await.unwrap();
    assert_eq!(page.records[0].line.number, 61);
    assert!(page.records.iter().all(holdfast_protocol::local::audit::AuditRecord::holds));
    drop(store);
    assert_eq!(open(folder.path()).await.verify_audit().await.unwrap(), 102);
}

#[tokio::test]
async fn a_file_that_was_changed_or_is_missing_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_lines(folder.path(), 100).await;
    file(&store, day_of(100)).await;
    let path = folder.path().join(FOLDER).join(&files(folder.path())[0]);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("day 7\"", "day 8\"")).unwrap();
    let broken = verify(&export(folder.path()), Verifier::default());
    assert!(matches!(broken, Err(holdfast_protocol::audit::ChainError::Broken { number: 8 })), "{broken:?}");
    std::fs::write(&path, text.lines().take(9).map(|line| line.to_owned() + "\n").collect::<String>())
        .unwrap();
    let nothing = |_: &audit_file::Extent| Ok::<_, StoreError>(());
    assert!(audit_file::each_line(folder.path(), nothing, |_| Ok(())).is_err(), "its end is missing");
    std::fs::remove_file(&path).unwrap();
    assert!(audit_file::each_line(folder.path(), nothing, |_| Ok(())).is_err());
}

#[tokio::test]
async fn the_oldest_files_go_when_root_has_set_it_and_what_is_left_says_where_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_lines(folder.path(), 100).await;
    file(&store, day_of(100)).await;
    let remove = async |now| while store.remove_audit(12, now).await.unwrap() == Upkeep::More {};
    remove(day_of(365)).await;
    assert_eq!(files(folder.path()).len(), 2, "January's last line is not a year old");
    remove(day_of(365 + 31)).await;
    assert_eq!(files(folder.path()), ["2027-02-000000032-000000059.jsonl"]);
    let held = verify(&export(folder.path()), Verifier::default()).unwrap();
    assert_eq!((held.missing, held.lines), (31, 103), "and a line that says so");
    remove(day_of(2_000)).await;
    let held = verify(&export(folder.path()), Verifier::default()).unwrap();
    assert_eq!((files(folder.path()).len(), held.missing, held.lines), (0, 59, 104));
    assert_eq!(store.verify_audit().await.unwrap(), 104);
}

/// Killed behind the file and before the database, and behind the removal of a file.
#[tokio::test]
async fn a_kill_between_file_and_database_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_lines(folder.path(), 100).await;
    let moment = day_of(100);
    let place = folder.path().to_owned();
    let killed = store.write(Part::Nothing, "file the audit", move |transaction| {
        seal(transaction, &place, moment)?;
        Err::<(), _>(StoreError::Closed)
    });
    killed.await.unwrap_err();
    assert_eq!(files(folder.path()).len(), 1);
    assert_eq!(verify(&export(folder.path()), Verifier::default()).unwrap().lines, 100);
    file(&store, moment).await;
    assert_eq!(verify(&export(folder.path()), Verifier::default()).unwrap().lines, 102);
    let (place, moment) = (folder.path().to_owned(), day_of(900));
    let killed = store.write(Part::Nothing, "remove", move |transaction| {
        remove(transaction, &place, (12, moment))?;
        Err::<(), _>(StoreError::Closed)
    });
    killed.await.unwrap_err();
    assert_eq!(files(folder.path()).len(), 1);
    while store.remove_audit(12, moment).await.unwrap() == Upkeep::More {}
    assert_eq!(verify(&export(folder.path()), Verifier::default()).unwrap().missing, 59);
}

/// A month with more lines than a file takes, and a line dated ahead by a fast clock.
#[tokio::test]
async fn files_are_bounded_and_a_wrong_clock_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_lines(folder.path(), 3).await;
    let many = limits::AUDIT_SEGMENT_LINES;
    store
        .write(Part::Nothing, "write the audit", move |transaction| {
            (0..many + 9).try_for_each(|n| {
                let at = if n == 5 { day_of(5_000) } else { day_of(3) };
                let line = audit::Line { at, action: "thawed", guest: None, operation: None, detail: "x" };
                audit::append(transaction, &line)
            })
        })
        .await
        .unwrap();
    file(&store, day_of(100)).await;
    assert_eq!(files(folder.path()).len(), 2, "{:?}", files(folder.path()));
    assert_eq!(store.audit(u32::MAX).await.unwrap().len(), 2, "the newest line stays: each file has its own");
    assert_eq!(verify(&export(folder.path()), Verifier::default()).unwrap().lines, 3 + 9 + 2 + many as u64);
}
