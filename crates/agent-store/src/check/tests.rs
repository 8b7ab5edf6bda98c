//! Tests that a large file delays no start and its damage shows.

use std::io::{Seek as _, SeekFrom, Write as _};

use super::*;
use crate::Refusal;
use crate::tests::open;

/// A file larger than a start checks, with one destroyed page of another table near its end.
async fn large(folder: &Path, damaged: Damaged) {
    drop(open(folder).await);
    let raw = Connection::open(folder.join("agent.db")).unwrap();
    let bytes = i64::try_from(limits::CHECKED_AT_START_BYTES).unwrap();
    raw.execute_batch("CREATE TABLE ballast (number INTEGER PRIMARY KEY, text BLOB) STRICT").unwrap();
    for _ in 0..40 {
        raw.execute("INSERT INTO ballast (text) VALUES (randomblob(?1))", [bytes / 32]).unwrap();
    }
    raw.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let pages: i64 = raw.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let root: i64 = raw
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'ballast'", [], |row| row.get(0))
        .unwrap();
    drop(raw);
    assert!(pages * 4_096 > bytes);
    if damaged == Damaged::Yes {
        let mut file = std::fs::File::options().write(true).open(folder.join("agent.db")).unwrap();
        file.seek(SeekFrom::Start(u64::try_from(root - 1).unwrap() * 4_096)).unwrap();
        file.write_all(&[0x55; 4_096]).unwrap();
        file.sync_all().unwrap();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Damaged {
    Yes,
    No,
}

#[tokio::test]
async fn a_small_file_is_checked_before_the_start_and_a_large_one_after_it() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(open(folder.path()).await.check().await.unwrap(), CheckState::Before);
    large(folder.path(), Damaged::No).await;
    let store = open(folder.path()).await;
    assert_eq!(store.check().await.unwrap(), CheckState::Sound);
    assert_eq!(store.refusal(), None);
}

#[tokio::test]
async fn damage_found_while_running_stops_writing_and_is_quarantined_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    large(folder.path(), Damaged::Yes).await;
    let store = open(folder.path()).await;
    assert_eq!(store.refusal(), None, "the start did not look at every page");
    assert_eq!(store.check().await.unwrap(), CheckState::Damaged);
    assert!(matches!(store.refusal(), Some(Refusal::Broken { .. })));
    drop(store);
    let store = open(folder.path()).await;
    assert!(matches!(store.refusal(), Some(Refusal::Damaged { .. })), "{:?}", store.refusal());
    assert!(!folder.path().join("agent.suspect").exists());
}

#[tokio::test]
async fn a_file_that_was_put_right_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    large(folder.path(), Damaged::No).await;
    std::fs::write(folder.path().join("agent.suspect"), "a page was wrong").unwrap();
    let store = open(folder.path()).await;
    assert_eq!(store.refusal(), None);
    assert!(!folder.path().join("agent.suspect").exists());
}
