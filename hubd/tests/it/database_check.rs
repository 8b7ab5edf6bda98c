//! A damaged page, found by the check of the database.

use std::os::unix::fs::FileExt as _;

use alerts::Rules;
use hubd::domain::alerting::AlertContext;
use hubd::sqlite::Sqlite;
use jiff::Timestamp;

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let context = || AlertContext::new(Rules::default().resolve(&[]).unwrap(), Timestamp::UNIX_EPOCH);
    let (store, writer) = Sqlite::open(&path, context()).unwrap();
    assert_eq!(store.check_database().await.unwrap(), Vec::<String>::new());
    drop(store);
    writer.join().unwrap();
    // A reader that closed last left its pages in the log.
    let merge = "PRAGMA wal_checkpoint(TRUNCATE)";
    rusqlite::Connection::open(&path).unwrap().query_row(merge, [], |_| Ok(())).unwrap();
    // The last page is the beginning of a table that nothing reads at a start.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&[0xa5; 4096], length - 4096).unwrap();
    let (store, writer) = Sqlite::open(&path, context()).unwrap();
    let faults = store.check_database().await.unwrap();
    assert!(!faults.is_empty() && faults.len() <= 3, "{faults:?}");
    drop(store);
    writer.join().unwrap();
}
