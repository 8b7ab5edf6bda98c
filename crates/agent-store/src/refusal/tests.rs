//! Tests of a database that cannot grow.

use holdfast_protocol::generation::Generation;

use super::*;
use crate::journal::OpenOperationError;
use crate::start_failures::Forgiven;
use crate::tests::{at, new_operation, open, provision, uid};
use crate::{Store, StoreError};

async fn pages_at_most(store: &Store, pages: u32) {
    let set = move |connection: &mut rusqlite::Connection| {
        connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get::<_, i64>(0))
            .map_err(StoreError::sqlite("bound a test's database"))
    };
    store.run(set).await.unwrap();
}

/// Writes until it is refused.
async fn fill(store: &Store) -> StoreError {
    for _ in 0..10_000 {
        let by = Forgiven::By("x".repeat(2_000));
        if let Err(error) = store.forgive_starts(vec![uid(1)], by, at(1)).await {
            return error;
        }
    }
    panic!("it is never full");
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_answers_and_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let changes = store.changes();
    pages_at_most(&store, 1).await;
    assert!(matches!(fill(&store).await, StoreError::Sqlite { .. }), "SQLite's own words first");
    let refusal = store.refusal().unwrap();
    assert_eq!(refusal.code(), ErrorCode::DiskFull);
    assert!(refusal.to_string().contains(&folder.path().display().to_string()), "{refusal}");
    assert_eq!(changes.borrow().health, 1, "who tells it on is woken");

    let refused = store.open_operation(new_operation(1, provision(1))).await.unwrap_err();
    let OpenOperationError::Store(StoreError::Refusing(why)) = refused else { panic!("{refused}") };
    assert_eq!(why, refusal, "and then the reason");
    assert!(store.guest(uid(1)).await.unwrap().is_none(), "a refusal changes nothing");
    store.verify_audit().await.unwrap();
    assert!(store.records(Generation::new(1), at(2)).await.unwrap().open.is_empty(), "reading goes on");
    store.try_room().await;
    assert_eq!(store.refusal().unwrap().code(), ErrorCode::DiskFull, "still full");

    pages_at_most(&store, 1_000_000).await;
    store.try_room().await;
    assert_eq!((store.refusal(), changes.borrow().health), (None, 2));
    store.open_operation(new_operation(1, provision(1))).await.unwrap();
    store.verify_audit().await.unwrap();
    drop(store);
    assert_eq!(open(folder.path()).await.open_operations().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_failed_sync_is_final_until_a_new_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let failure = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
    let failed: Result<(), StoreError> = store
        .write(super::super::Part::Nothing, "sync", move |_| {
            Err(rusqlite::Error::SqliteFailure(failure, None)).map_err(StoreError::sqlite("sync"))
        })
        .await;
    assert!(failed.is_err());
    let refusal = store.refusal().unwrap();
    assert_eq!(refusal.code(), ErrorCode::RecordsBroken);
    assert!(refusal.to_string().contains("systemctl restart agentd"), "{refusal}");
    store.try_room().await;
    assert_eq!(store.refusal().unwrap(), refusal, "room mends no broken disk, and nothing is tried");
    assert!(matches!(fill(&store).await, StoreError::Refusing(_)), "at the first write");
    drop(store);
    assert_eq!(open(folder.path()).await.refusal(), None);
}

#[tokio::test]
async fn after_damage_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agent.db"), vec![7; 8192]).unwrap();
    for _ in 0..2 {
        let store = open(folder.path()).await;
        let refusal = store.refusal().unwrap();
        assert_eq!(refusal.code(), ErrorCode::RecordsDamaged);
        assert!(refusal.to_string().contains("agent.db.damaged-"), "{refusal}");
        assert!(matches!(fill(&store).await, StoreError::Refusing(why) if why == refusal));
        store.try_room().await;
        assert_eq!(store.refusal(), Some(refusal));
        assert_eq!(store.verify_audit().await.unwrap(), 0);
    }
    // Checks the texts of the refusals.
    for name in ["agent.db", "agent.db-wal", "agent.db-shm"] {
        let _may_be_gone = std::fs::remove_file(folder.path().join(name));
    }
    assert_eq!(open(folder.path()).await.refusal(), None);
}

#[test]
fn which_errors_are_the_disks() {
    let of = |code: i32| {
        let failure = rusqlite::ffi::Error::new(code);
        fault(&rusqlite::Error::SqliteFailure(failure, None))
    };
    use rusqlite::ffi;
    assert_eq!(of(ffi::SQLITE_FULL), Some(Fault::Full));
    assert_eq!(of(ffi::SQLITE_IOERR_SHMSIZE), Some(Fault::Full));
    for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_READONLY, ffi::SQLITE_CORRUPT]
    {
        assert!(matches!(of(code), Some(Fault::Broken(_))), "{code}");
    }
    for code in [ffi::SQLITE_CONSTRAINT, ffi::SQLITE_BUSY, ffi::SQLITE_ERROR] {
        assert_eq!(of(code), None, "{code}");
    }
}
