//! State of an open `guestd try`, in `try.json`.
//!
//! It is written when the snapshot is there, so the snapshot does not hold it: where it lies, the guest did not go back. It goes
//! when the trial ends well, or cannot go back.

use std::path::PathBuf;

use holdfast_protocol::id::{OperationId, SnapshotName};
use serde::{Deserialize, Serialize};

use crate::commands::health::HealthyStackRecord;
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

/// As the note of apt.
const BYTES_MAX: usize = 512 * 1024;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-try/v1")]
    V1,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryState {
    schema: Schema,
    pub snapshot: SnapshotName,
    /// What was well before it.
    pub well: Vec<HealthyStackRecord>,
    pub stage: Stage,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "is")]
pub enum Stage {
    /// The command runs, or was cut off.
    Command,
    /// It ended well, and the stacks are asked.
    Stacks,
    /// The guest shall go back.
    Back { why: String },
    /// The agent was asked for that.
    RollbackRequested { why: String, operation: OperationId },
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("try.json")
}

impl TryState {
    pub fn new(snapshot: SnapshotName, well: Vec<HealthyStackRecord>) -> Self {
        Self { schema: Schema::V1, snapshot, well, stage: Stage::Command }
    }

    /// Writes down how far it is.
    pub fn reach(&mut self, paths: &Paths, stage: Stage) -> Result<(), FileError> {
        self.stage = stage;
        self.store(paths)
    }

    pub fn store(&self, paths: &Paths) -> Result<(), FileError> {
        // Plain text: it cannot fail, and an empty file is read as none that can be read.
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        file::replace(&path(paths), &bytes, Eyes::All)
    }
}

/// What lies there.
#[derive(Debug)]
pub enum LoadedTry {
    None,
    TryState(TryState),
    /// It cannot be read, in words.
    Unreadable(String),
}

pub fn load(paths: &Paths) -> LoadedTry {
    match file::read(&path(paths), BYTES_MAX, Eyes::All) {
        Ok(None) => LoadedTry::None,
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(try_command) => LoadedTry::TryState(try_command),
            Err(error) => LoadedTry::Unreadable(format!("{}: {error}", path(paths).display())),
        },
        Err(error) => LoadedTry::Unreadable(holdfast_protocol::json::chain(&error)),
    }
}

/// Whether one lies there, readable or not.
pub fn is_there(paths: &Paths) -> bool {
    path(paths).exists()
}

/// It is over.
pub fn forget(paths: &Paths) -> Result<(), FileError> {
    file::remove_durably(&path(paths))
}
