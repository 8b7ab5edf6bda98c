//! Status of stacks and windows in `run/holdfast/stacks.json`.
//!
//! `guestd status` shows it and the hello reports its health. It is in memory: what must survive a restart is in the
//! marker.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::{OperationId, SnapshotName, StackName};
use holdfast_protocol::json::chain;
use holdfast_protocol::local::hello::UnwellStack;
use holdfast_protocol::local::window::{DownStack, Label, STACKS_MAX};
use holdfast_protocol::report::Health;
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::file::{self, Eyes};
use crate::metrics_file::{self, GuestFacts, StackFacts};
use crate::paths::Paths;
use crate::watch::assessment::State;

const BYTES_MAX: usize = 128 * 1024;

/// How many stopped containers are remembered.
const STOPPED_MAX: usize = 64;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-stacks/v1")]
    V1,
}

/// What is to be known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusFile {
    schema: Schema,
    /// Why what was stopped could not be brought back to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why `stacks.toml` cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_problem: Option<String>,
    /// What was done about a marker that could not be read, as long as its copy exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker_problem: Option<String>,
    /// Stopped by us, and not running again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<DownStack>,
    /// The window that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenWindow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastWindow>,
    /// How the stacks are that should run, as they were seen last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack_status: Vec<StackStatus>,
    /// Containers that were stopped by hand, each with when it was started: Docker forgets it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// How it was when packages changed last. That is not the guest's current health: it is not checked again after a
    /// repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<PackageCheck>,
    /// The result of a `guestd try` that was continued after its command had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_try: Option<Note>,
    /// What the last restore test of this scratch guest reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_test: Option<String>,
}

/// A stack that should run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackStatus {
    pub stack: StackName,
    pub state: State,
    /// The reason as text, where it is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub since: Timestamp,
    /// How often it was started since it was last well for long.
    pub restarts: u32,
}

/// A window that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenWindow {
    pub id: OperationId,
    pub since: Timestamp,
    pub phase: String,
}

/// What is said of packages that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageCheck {
    pub at: Timestamp,
    /// What was taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotName>,
    pub message: String,
}

/// What is said of something that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub at: Timestamp,
    pub message: String,
}

/// A window that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastWindow {
    pub id: OperationId,
    pub ended_at: Timestamp,
    /// Why it ended.
    pub why: String,
    /// The stacks that were stopped for it.
    pub stacks: Vec<StackName>,
    /// How long, in milliseconds.
    pub stopped_ms: u64,
    /// What the agent says that its backup holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn path(paths: &Paths) -> PathBuf {
    paths.run_dir().join("stacks.json")
}

impl StatusFile {
    /// How well it is.
    pub fn health(&self) -> Health {
        let problems = [&self.problem, &self.file_problem, &self.marker_problem];
        let well = self.down.is_empty() && problems.iter().all(|problem| problem.is_none());
        if well { Health::Well } else { Health::Unwell }
    }

    /// Stacks that should run and are not well, for the agent.
    pub fn unwell(&self) -> Vec<UnwellStack> {
        let unwell = |one: &StackStatus| {
            Some(UnwellStack {
                stack: one.stack.clone(),
                state: one.state.unwell()?,
                why: one.why.clone()?,
                since: one.since,
                restarts: one.restarts,
            })
        };
        self.stack_status.iter().filter_map(unwell).take(STACKS_MAX).collect()
    }

    /// For the metrics.
    fn facts(&self) -> GuestFacts<'_> {
        let facts = |one| {
            let StackStatus { stack, state, restarts, .. }: &StackStatus = one;
            StackFacts { stack, unwell: state.unwell(), restarts: *restarts }
        };
        let stacks = self.stack_status.iter().map(facts);
        GuestFacts {
            health: self.health(),
            down: self.down.len(),
            open: self.open.iter().count(),
            stacks: stacks.collect(),
            last: self.last.as_ref().map(|last| (last.ended_at, last.stopped_ms)),
        }
    }

    /// Records that a container was stopped by hand.
    pub fn keep_stopped(&mut self, run: String) {
        self.stopped.push(run);
        self.stopped.drain(..self.stopped.len().saturating_sub(STOPPED_MAX));
    }
}

/// Reads it; nothing when there is nothing, or nothing that can be read.
pub fn load(paths: &Paths) -> StatusFile {
    let bytes = file::read(&path(paths), BYTES_MAX, Eyes::All).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Several guestd processes write here: the controller, and a person's commands.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Waits a moment for the lock to write. The status is only shown to people, so a missing lock delays nothing: the
/// write goes on without it.
fn lock(paths: &Paths) -> Option<File> {
    let path = paths.run_dir().join("stacks.lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
    for _ in 0..LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(file),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            Err(_) => return None,
        }
    }
    None
}

/// Changes it. A folder that cannot be written to keeps nothing from being done.
pub fn update(paths: &Paths, change: impl FnOnce(&mut StatusFile)) {
    let _lock = lock(paths);
    let before = load(paths);
    let mut after = before.clone();
    change(&mut after);
    if after == before {
        return;
    }
    let stored = serde_json::to_vec_pretty(&after)
        .map_err(|error| chain(&error))
        .and_then(|bytes| file::replace(&path(paths), &bytes, Eyes::All).map_err(|error| chain(&error)));
    if let Err(error) = stored {
        tracing::warn!(error, "cannot write the stack status for `guestd status`");
    }
    metrics_file::write(paths, &after.facts());
}

/// Records the phase of an open window.
pub fn open(paths: &Paths, id: OperationId, phase: &str) {
    update(paths, |status| match &mut status.open {
        Some(open) if open.id == id => phase.clone_into(&mut open.phase),
        open => *open = Some(OpenWindow { id, since: clock::now(), phase: phase.to_owned() }),
    });
}

/// What the backup of the last window holds is known now.
pub fn label(paths: &Paths, id: OperationId, label: &Label) {
    update(paths, |status| {
        if let Some(last) = status.last.as_mut().filter(|last| last.id == id) {
            last.label = Some(label.clone());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_updates_are_both_stored() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        file::make_folder(&paths.run_dir(), Eyes::All).unwrap();
        let down = |number: usize| DownStack {
            stack: format!("s{number}").parse().unwrap(),
            why: "says the test".to_owned(),
        };
        std::thread::scope(|scope| {
            for half in 0..2 {
                let paths = &paths;
                scope.spawn(move || {
                    for number in 0..10 {
                        update(paths, |status| status.down.push(down(2 * number + half)));
                    }
                });
            }
        });
        assert_eq!(load(&paths).down.len(), 20);
    }

    #[test]
    fn the_file_is_written_with_the_status() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        file::make_folder(&paths.run_dir(), Eyes::All).unwrap();
        update(&paths, |status| {
            status.stack_status = serde_json::from_str(
                r#"[{"stack":"db","state":"unhealthy","why":"no answer","since":"2026-11-21T03:00:00Z","restarts":3}]"#,
            )
            .unwrap();
            status.last = serde_json::from_str(
                r#"{"id":"018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55","ended_at":"2026-11-21T03:00:00Z","why":"done",
                    "stacks":["db"],"stopped_ms":1500}"#,
            )
            .unwrap();
        });
        let page = std::fs::read_to_string(paths.run_dir().join("holdfast.prom")).unwrap();
        for line in [
            "holdfast_guestd_healthy 1",
            "holdfast_guestd_window_open 0",
            "holdfast_guestd_stack_healthy{stack=\"db\"} 0",
            "holdfast_guestd_stack_restarts{stack=\"db\"} 3",
            "holdfast_guestd_window_stopped_seconds 1.500",
            "holdfast_guestd_window_end_timestamp_seconds 1795230000",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }
}
