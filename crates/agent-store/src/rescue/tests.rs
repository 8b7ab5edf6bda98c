//! Tests of records that are read without an agent.

use std::os::unix::fs::PermissionsExt as _;

use holdfast_protocol::operation::OperationStatus;
use rusqlite::Connection;

use super::*;

use crate::tests::{at, new_operation, open, provision, uid};
use agent_core::operation::log::Event;
use agent_core::plan::recovery::Recover;

fn rescued(folder: &Path) -> RescueState {
    read(&RescueFile::open(folder).unwrap(), folder, at(9))
}

/// The files of a folder with their bytes and times of change.
fn files(folder: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| {
            let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap(), changed)
        })
        .collect();
    files.sort();
    files
}

/// Records with an operation in its first step, left by a killed agent: with its log of last writes, and without its lock.
async fn killed() -> tempfile::TempDir {
    let (alive, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(alive.path()).await;
    let state = store.open_operation(new_operation(1, provision(1))).await.unwrap();
    let state = store.append(&state, Event::Begun, at(1)).await.unwrap();
    store.append(&state, Event::Intended { step: 0 }, at(2)).await.unwrap();
    for name in ["agent.db", "agent.db-wal", "agent.lock"] {
        std::fs::copy(alive.path().join(name), left.path().join(name)).unwrap();
    }
    left
}

#[tokio::test]
async fn a_killed_agent_leaves_an_operation_and_nothing_is_written() {
    let left = killed().await;
    let before = files(left.path());
    let state = rescued(left.path());
    assert_eq!((state.agent, state.opened), (AgentProcess::Stopped, OpenedAs::Copy));
    let [operation] = state.open.rows.as_slice() else { panic!("{:?}", state.open) };
    let view = operation.view.as_ref().unwrap();
    assert_eq!((operation.kind.as_str(), view.status), ("provision", OperationStatus::Running));
    assert!(matches!(operation.recover, Some(Recover::Probe { .. })), "{:?}", operation.recover);
    let [guest] = state.guests.rows.as_slice() else { panic!("{:?}", state.guests) };
    assert_eq!(
        (guest.name.as_str(), guest.place.as_str(), guest.access.as_str()),
        ("web-1", "making", "open")
    );
    assert_eq!((state.file.version, state.file.findings.rows.len()), (Some(state.file.known_version), 0));
    let audit = &state.audit;
    assert!(audit.lines > 0 && audit.verified_to == audit.lines && audit.broken.is_none(), "{audit:?}");
    assert_eq!((state.file.opened_at, audit.last_line_at.is_some()), (Some(at(0)), true));
    assert_eq!(files(left.path()), before, "nothing in the folder was touched");
}

#[tokio::test]
async fn records_of_an_agent_that_stopped_are_read_as_they_lie_there() {
    let folder = killed().await;
    let raw = Connection::open(folder.path().join("agent.db")).unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    // The last connection takes the log away as it closes.
    drop(raw);
    assert!(!folder.path().join("agent.db-wal").exists());
    let before = files(folder.path());
    let state = rescued(folder.path());
    assert_eq!((state.agent, state.opened), (AgentProcess::Stopped, OpenedAs::Whole));
    assert_eq!((state.open.rows.len(), state.parked.rows.len()), (1, 0));
    assert_eq!(files(folder.path()), before);
}

#[tokio::test]
async fn a_running_agent_is_noticed_and_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.open_operation(new_operation(1, provision(1))).await.unwrap();
    let state = rescued(folder.path());
    assert_eq!((state.agent, state.opened), (AgentProcess::Running, OpenedAs::Shared));
    assert_eq!(state.open.rows.len(), 1);
    // It goes on writing meanwhile.
    let file = RescueFile::open(folder.path()).unwrap();
    let earlier = read(&file, folder.path(), at(9)).audit.lines;
    store.open_operation(new_operation(2, provision(2))).await.ok();
    store.append(&store.open_operations().await.unwrap()[0], Event::Begun, at(1)).await.unwrap();
    assert_eq!(read(&file, folder.path(), at(9)).audit.lines, earlier, "one moment");
}

/// As on a disk that takes no writes: the folder takes none, with the log of last writes in it.
#[tokio::test]
async fn a_folder_that_takes_no_writes_is_read_with_its_last_writes() {
    let left = killed().await;
    let set = |mode| std::fs::set_permissions(left.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o500);
    let state = rescued(left.path());
    set(0o700);
    assert_eq!((state.opened, state.open.rows.len()), (OpenedAs::Copy, 1));
    // A path that a URI would read otherwise.
    let odd = left.path().join("a?b#c%41 d");
    std::fs::create_dir(&odd).unwrap();
    std::fs::copy(left.path().join("agent.db"), odd.join("agent.db")).unwrap();
    assert_eq!(RescueFile::open(&odd).unwrap().opened(), OpenedAs::Whole);
}

#[tokio::test]
async fn a_newer_file_is_read_as_far_as_its_columns_are_known() {
    let left = killed().await;
    let raw = Connection::open(left.path().join("agent.db")).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    raw.execute_batch(
        "ALTER TABLE restore_test RENAME COLUMN verdict TO outcome; UPDATE operation SET version = 99",
    )
    .unwrap();
    drop(raw);
    let state = rescued(left.path());
    assert_eq!(state.file.version, Some(99));
    assert_eq!(state.guests.rows.len(), 1);
    assert!(state.tests.incomplete.unwrap().contains("no such column"));
    let operation = &state.open.rows[0];
    assert!(
        operation.view.is_none() && operation.unreadable.as_ref().unwrap().contains("version 99"),
        "{operation:?}"
    );
}

/// One page of the audit is damaged: what lies elsewhere is read, and the audit up to there.
#[tokio::test]
async fn a_damaged_page_hides_its_own_table_alone() {
    let left = killed().await;
    let path = left.path().join("agent.db");
    let raw = Connection::open(&path).unwrap();
    // More lines than one page holds, of which the chain covers none: they are not of the agent.
    raw.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
         INSERT INTO audit (number, at, action, detail, chain) SELECT i, 0, 'forged', printf('%.400c', 'x'), x'00' FROM n",
    )
    .unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let pages: i64 = raw.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let (size, pages) = (4_096, usize::try_from(pages).unwrap());
    drop(raw);
    let mut bytes = std::fs::read(&path).unwrap();
    // One of the last pages: leaves of the audit, which grew last.
    let begin = (pages - 6) * size;
    bytes[begin..begin + size].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let state = rescued(left.path());
    assert!(!state.file.findings.rows.is_empty(), "{:?}", state.file.findings);
    assert_eq!((state.open.rows.len(), state.guests.rows.len()), (1, 1));
    let audit = &state.audit;
    assert!(audit.incomplete.is_some() && audit.lines > audit.verified_to, "{audit:?}");
    assert!(audit.broken.as_ref().unwrap().contains("line 3"), "{audit:?}");
    assert_eq!(audit.verified_to, 2);
}

#[test]
fn what_is_no_database_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |folder: &Path| RescueFile::open(folder).unwrap_err();
    assert!(matches!(refused(folder.path()), RescueOpenError::NoFile { .. }));
    std::fs::write(folder.path().join("agent.db"), vec![7; 8192]).unwrap();
    assert!(matches!(refused(folder.path()), RescueOpenError::NotADatabase { .. }));
    std::fs::remove_file(folder.path().join("agent.db")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("agent.db")).unwrap();
    assert!(matches!(refused(folder.path()), RescueOpenError::NoFile { .. }));
}

#[tokio::test]
async fn audit_and_journal_are_exported_without_specifications_or_secrets() {
    let left = killed().await;
    let raw = Connection::open(left.path().join("agent.db")).unwrap();
    raw.execute("UPDATE guest SET token_hash = x'deadbeef' WHERE uid = ?1", [uid(1).to_string()]).unwrap();
    drop(raw);
    let file = RescueFile::open(left.path()).unwrap();
    let state = read(&file, left.path(), at(9));
    let (mut audit, mut journal) = (Vec::new(), Vec::new());
    chain::export_audit((file.connection(), left.path()), &state.audit, &mut audit).unwrap();
    assert_eq!(chain::export_journal(file.connection(), &mut journal).unwrap(), None);
    let audit = String::from_utf8(audit).unwrap();
    let lines: Vec<&str> = audit.lines().collect();
    assert_eq!(lines.len() as u64, state.audit.lines + 1);
    let mut verifier = holdfast_protocol::audit::Verifier::default();
    for line in &lines[1..] {
        verifier.line(&serde_json::from_str(line).unwrap()).unwrap();
    }
    let journal = String::from_utf8(journal).unwrap();
    let rows: Vec<serde_json::Value> =
        journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3, "{journal}");
    assert_eq!((&rows[0]["kind"], &rows[2]["number"]), (&"provision".into(), &2.into()));
    let all = format!("{audit}{journal}{}", serde_json::to_string(&state).unwrap());
    for secret in ["deadbeef", "token_hash", "cores", "\"spec\""] {
        assert!(!all.contains(secret), "{secret}");
    }
}
