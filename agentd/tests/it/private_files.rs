//! Permissions of the database and its files under any umask.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use agentd::port::store::Store;
use jiff::Timestamp;

/// The folder in which the inner run of this program works.
const OPENED_IN: &str = "HOLDFAST_TEST_OPENED_IN";

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// Every file of the folder, with its mode.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut modes: Vec<(String, u32)> = entries
        .filter(|entry| entry.file_name() != "kept")
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    modes.sort();
    modes
}

fn private(names: &[&str]) -> Vec<(String, u32)> {
    names.iter().map(|name| ((*name).to_owned(), 0o600)).collect()
}

const OPEN: [&str; 4] = ["agent.db", "agent.db-shm", "agent.db-wal", "agent.lock"];

#[test]
fn a_first_start_without_a_umask_makes_files_for_the_agent_alone() {
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let line = format!(
        "umask 000; {OPENED_IN}='{}' exec '{}' --exact private_files::the_first_start --ignored --nocapture",
        folder.path().display(),
        program.display()
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "the umask is the process's, and tests run beside each other"
    )]
    let status = Command::new("sh").args(["-c", &line]).status().unwrap();
    assert!(status.success(), "{status}");
    let seen: Vec<(String, u32)> =
        serde_json::from_slice(&std::fs::read(folder.path().join("kept")).unwrap()).unwrap();
    assert_eq!(seen, private(&OPEN));
}

#[tokio::test]
#[ignore = "the inner half of the test above, which runs it without a umask"]
async fn the_first_start() {
    let Ok(folder) = std::env::var(OPENED_IN) else { return };
    let folder = Path::new(&folder);
    let store = Store::open(folder, now()).unwrap();
    store.note_time(now()).await.unwrap();
    let seen = serde_json::to_vec(&modes(folder)).unwrap();
    std::fs::write(folder.join("kept"), seen).unwrap();
}

/// As an earlier agent that was started by hand left it, or as a copy restored it.
#[tokio::test]
async fn a_database_that_others_could_read_is_closed_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.db");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    let store = Store::open(folder.path(), now()).unwrap();
    store.note_time(now()).await.unwrap();
    let seen: Vec<_> = modes(folder.path()).into_iter().filter(|(name, _)| name != "agent.lock").collect();
    assert_eq!(seen, private(&OPEN[..3]));
}
