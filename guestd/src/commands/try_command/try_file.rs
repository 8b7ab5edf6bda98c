//! State of an open `guestd try`, in `try.json`.
//!
//! It is written after the snapshot is taken, so the snapshot does not contain it: where it exists, the guest was not
//! rolled back. It is removed when the try ends well, or cannot be rolled back.

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
    /// It ended well, and the stacks are being checked.
    Stacks,
    /// The guest is to be rolled back.
    Back { why: String },
    /// The rollback was requested from the agent.
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

/// The stored state.
#[derive(Debug)]
pub enum LoadedTry {
    None,
    TryState(TryState),
    /// It cannot be read; the text is the reason.
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

/// Whether the file exists, readable or not.
pub fn is_there(paths: &Paths) -> bool {
    path(paths).exists()
}

/// It is over.
pub fn forget(paths: &Paths) -> Result<(), FileError> {
    file::remove_durably(&path(paths))
}
