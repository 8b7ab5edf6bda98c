//! Tests of `agentd rescue` as a program.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "the program is run as a person runs it")]

use std::path::Path;
use std::process::{Command, Output};

use agentd::port::clock::{Clock as _, RealClock};
use agentd::port::store::Store;
use serde_json::Value;

fn rescue(state: &Path, more: &[&str]) -> Output {
    let state = state.to_str().unwrap();
    let all = ["rescue", "--state", state].iter().chain(more).copied().collect::<Vec<_>>();
    Command::new(env!("CARGO_BIN_EXE_agentd")).args(all).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn as_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A copy of the files of an agent that runs, taken as a person takes it.
fn copy_of(running: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["agent.db", "agent.db-wal"] {
        std::fs::copy(running.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

#[tokio::test]
async fn a_copy_is_shown_exported_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), RealClock::start().now()).unwrap();
    let copy = copy_of(folder.path());
    let shown = rescue(copy.path(), &[]);
    let page = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{page}{}", text(&shown.stderr));
    for part in [
        "does not run",
        "from a copy with its last writes",
        "NOT SAFE",
        "do not delete or edit agent.db",
        "no operation is open",
    ] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
    let into = copy.path().join("export");
    let exported = rescue(copy.path(), &["--export", into.to_str().unwrap(), "--output", "json"]);
    assert_eq!(
        (exported.status.code(), as_json(&exported)["schema"].as_str()),
        (Some(0), Some("holdfast.rescue/v1"))
    );
    let names: std::collections::BTreeSet<String> = std::fs::read_dir(&into)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["audit.jsonl", "journal.jsonl", "state.json"]);
    // A second time the folder is there already, and nothing in it is written over.
    assert_eq!(rescue(copy.path(), &["--export", into.to_str().unwrap()]).status.code(), Some(73));
    assert!(!copy.path().join("agent.db-shm").exists() && !copy.path().join("agent.lock").exists());
    // The agent itself is still there.
    let next_to_it = rescue(folder.path(), &["--output", "json"]);
    assert_eq!(next_to_it.status.code(), Some(0));
    assert_eq!(
        (&as_json(&next_to_it)["agent"], &as_json(&next_to_it)["opened"]),
        (&"running".into(), &"shared".into())
    );
    drop(store);
}

#[test]
fn what_cannot_be_read_has_an_exit_code_and_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let missing = rescue(folder.path(), &[]);
    assert_eq!(missing.status.code(), Some(66));
    assert!(text(&missing.stderr).contains("--state"), "{}", text(&missing.stderr));
    std::fs::write(folder.path().join("agent.db"), vec![7; 16_384]).unwrap();
    let damaged = rescue(folder.path(), &[]);
    assert_eq!(damaged.status.code(), Some(74));
    assert!(
        text(&damaged.stderr).contains("cannot be read as a database at all"),
        "{}",
        text(&damaged.stderr)
    );
}
