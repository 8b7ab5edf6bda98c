//! `run/holdfast/stacks.json`: what is to be known of stacks and windows, for `guestd status`, and how well that is, for
//! the hello. It lies in memory: what must last stands in the marker.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::id::{OperationId, SnapshotName, StackName};
use holdfast_protocol::local::hello::UnwellStack;
use holdfast_protocol::local::window::{DownStack, Label, STACKS_MAX};
use holdfast_protocol::report::Health;
use holdfast_protocol::strict::chain;
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::file::{self, Eyes};
use crate::place::Place;
use crate::watch::State;

const BYTES_MAX: usize = 128 * 1024;

/// So many stopped containers are remembered.
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
pub struct Told {
    schema: Schema,
    /// Why what was stopped could not be brought back to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why `stacks.toml` cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_problem: Option<String>,
    /// What was done about a marker that could not be read, as long as it lies aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_aside: Option<String>,
    /// Stopped by us, and not running again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down: Vec<DownStack>,
    /// The window that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// The last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    /// How the stacks are that should run, as they were seen last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<Watched>,
    /// Containers that somebody stopped, each with when it was started: Docker forgets it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// How it was when packages changed last. That is no health of the guest's: nobody looks again when a person mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Packages>,
    /// What became of a trial that its own command did not see the end of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Said>,
    /// What the last restore test of this scratch guest reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_test: Option<String>,
}

/// A stack that should run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watched {
    pub stack: StackName,
    pub state: State,
    /// In words, where it is not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub since: Timestamp,
    /// How often it was started since it was last well for long.
    pub restarts: u32,
}

/// A window that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    pub id: OperationId,
    pub since: Timestamp,
    /// In words.
    pub stands: String,
}

/// What is said of packages that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    pub at: Timestamp,
    /// What was taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotName>,
    /// In words.
    pub said: String,
}

/// What is said of something that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub at: Timestamp,
    /// In words.
    pub said: String,
}

/// A window that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Last {
    pub id: OperationId,
    pub ended_at: Timestamp,
    /// Why it ended.
    pub why: String,
    /// What stood still for it.
    pub stacks: Vec<StackName>,
    /// How long, in milliseconds.
    pub still_ms: u64,
    /// What the agent says that its backup holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn path(place: &Place) -> PathBuf {
    place.run_dir().join("stacks.json")
}

impl Told {
    /// How well it is.
    pub fn health(&self) -> Health {
        let problems = [&self.problem, &self.file_problem, &self.put_aside];
        let well = self.down.is_empty() && problems.iter().all(|problem| problem.is_none());
        if well { Health::Well } else { Health::Unwell }
    }

    /// Stacks that should run and are not well, for the agent.
    pub fn unwell(&self) -> Vec<UnwellStack> {
        let unwell = |one: &Watched| {
            Some(UnwellStack {
                stack: one.stack.clone(),
                state: one.state.unwell()?,
                why: one.why.clone()?,
                since: one.since,
                restarts: one.restarts,
            })
        };
        self.watched.iter().filter_map(unwell).take(STACKS_MAX).collect()
    }

    /// Keeps that somebody stopped a container.
    pub fn keep_stopped(&mut self, run: String) {
        self.stopped.push(run);
        self.stopped.drain(..self.stopped.len().saturating_sub(STOPPED_MAX));
    }
}

/// Reads it; nothing when there is nothing, or nothing that can be read.
pub fn load(place: &Place) -> Told {
    let bytes = file::read(&path(place), BYTES_MAX, Eyes::All).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Several processes of ours write here: the controller, and a person's.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Waits its turn to write, for a moment: what is shown to people holds nobody up, and goes on without a turn.
fn lock(place: &Place) -> Option<File> {
    let path = place.run_dir().join("stacks.lock");
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
pub fn update(place: &Place, change: impl FnOnce(&mut Told)) {
    let _lock = lock(place);
    let before = load(place);
    let mut after = before.clone();
    change(&mut after);
    if after == before {
        return;
    }
    let stored = serde_json::to_vec_pretty(&after)
        .map_err(|error| chain(&error))
        .and_then(|bytes| file::replace(&path(place), &bytes, Eyes::All).map_err(|error| chain(&error)));
    if let Err(error) = stored {
        tracing::warn!(error, "the state of stacks for `guestd status` cannot be written");
    }
}

/// A window stands so.
pub fn open(place: &Place, id: OperationId, stands: &str) {
    update(place, |told| match &mut told.open {
        Some(open) if open.id == id => stands.clone_into(&mut open.stands),
        open => *open = Some(Open { id, since: clock::now(), stands: stands.to_owned() }),
    });
}

/// What the backup of the last window holds is known now.
pub fn label(place: &Place, id: OperationId, label: &Label) {
    update(place, |told| {
        if let Some(last) = told.last.as_mut().filter(|last| last.id == id) {
            last.label = Some(label.clone());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_write_at_once_is_there() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::new(root.path());
        file::make_folder(&place.run_dir(), Eyes::All).unwrap();
        let down = |number: usize| DownStack {
            stack: format!("s{number}").parse().unwrap(),
            why: "says the test".to_owned(),
        };
        std::thread::scope(|scope| {
            for half in 0..2 {
                let place = &place;
                scope.spawn(move || {
                    for number in 0..10 {
                        update(place, |told| told.down.push(down(2 * number + half)));
                    }
                });
            }
        });
        assert_eq!(load(&place).down.len(), 20);
    }
}
