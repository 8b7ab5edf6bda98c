//! Imports that are killed in the middle, into both engines.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{EXPORT, IMPORT, blocking, copy_of_keys, filled, migrated, printed, run, uses};
use crate::postgres_server::session_at;
use crate::process::hubd;

/// When an import is killed: at the first line of its progress that begins so.
const MOMENTS: [&str; 3] = ["rows of hosts", "rows of usage", "all rows are written"];

/// Kills an import at its moment. Whether it had done its work by then is for the caller to look at.
async fn killed(dir: &Path, file: &Path, moment: &str) {
    let mut command = hubd();
    command.args(IMPORT).arg(file).arg("--dir").arg(dir).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut import = command.spawn().unwrap();
    let mut lines = BufReader::new(import.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("the import comes that far");
        if line.starts_with(moment) {
            break;
        }
    }
    import.kill().await.unwrap();
}

/// Rows of some tables at a server, once the session of the killed one has ended there.
fn rows_at(server: &hubd::postgres::Server) -> Vec<i64> {
    blocking(|| {
        let mut session = session_at(server);
        let sessions = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        while session.query_one(sessions, &[]).unwrap().get::<_, i64>(0) > 0 {
            std::thread::yield_now();
        }
        let count = |table| {
            session.query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get::<_, i64>(0)
        };
        ["operators", "hosts", "reports", "usage"].map(count).to_vec()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_is_killed_leaves_nothing_or_all_and_the_next_one_takes_the_rest() {
    let temp = tempfile::tempdir().unwrap();
    let (one, of_sqlite) = (temp.path().join("one"), temp.path().join("of-sqlite"));
    filled(&one).await;
    let exported = printed(&EXPORT, &one, &of_sqlite).await;
    let of_postgres = temp.path().join("of-postgres");
    let mut in_the_middle = [0, 0];

    // Into PostgreSQL: a transaction that is not committed.
    for (number, moment) in MOMENTS.iter().enumerate() {
        let (dir, server) = (temp.path().join(format!("server{number}")), migrated());
        copy_of_keys(&one, &dir);
        uses(&dir, &server);
        killed(&dir, &of_sqlite, moment).await;
        let again = run(&IMPORT, &dir, &of_sqlite);
        if rows_at(&server) == [0; 4] {
            in_the_middle[0] += 1;
            again.await.unwrap();
        } else {
            // The busy machine let it end first, and then it is whole.
            assert!(again.await.unwrap_err().contains("not empty"));
        }
        let back = temp.path().join(format!("back{number}"));
        assert_eq!(printed(&EXPORT, &dir, &back).await.sha256, exported.sha256, "killed at `{moment}`");
        std::fs::rename(back, &of_postgres).unwrap();
    }

    // Into SQLite: a file that does not have the name of a database yet.
    for (number, moment) in MOMENTS.iter().enumerate() {
        let dir = temp.path().join(format!("folder{number}"));
        copy_of_keys(&one, &dir);
        killed(&dir, &of_postgres, moment).await;
        let again = run(&IMPORT, &dir, &of_postgres);
        if dir.join("hub.db").exists() {
            assert!(again.await.unwrap_err().contains("is there already"));
        } else {
            in_the_middle[1] += 1;
            let said = run(&EXPORT, &dir, &temp.path().join("none")).await.unwrap_err();
            assert!(said.contains("is not a hub's folder"), "what is left is no database: {said}");
            again.await.unwrap();
        }
        assert!(!dir.join("hub.db.import").exists(), "what was left is gone");
        let back = temp.path().join(format!("last{number}"));
        assert_eq!(printed(&EXPORT, &dir, &back).await.sha256, exported.sha256, "killed at `{moment}`");
    }
    assert!(in_the_middle.iter().all(|times| *times > 0), "{in_the_middle:?}");
}
