//! `try.json`: a trial that was begun, for whoever goes on with it.
//!
//! It is written when the snapshot is there, so the snapshot does not hold it: where it lies, the guest did not go back. It goes
//! when the trial ends well, or cannot go back.

use std::path::PathBuf;

use holdfast_protocol::id::{OperationId, SnapshotName};
use serde::{Deserialize, Serialize};

use crate::file::{self, Eyes, FileError};
use crate::people::well::WasWell;
use crate::place::Place;

/// As the note of apt.
const BYTES_MAX: usize = 512 * 1024;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-try/v1")]
    V1,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    schema: Schema,
    pub snapshot: SnapshotName,
    /// What was well before it.
    pub well: Vec<WasWell>,
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
    Asked { why: String, operation: OperationId },
}

fn path(place: &Place) -> PathBuf {
    place.state_dir().join("try.json")
}

impl Trial {
    pub fn new(snapshot: SnapshotName, well: Vec<WasWell>) -> Self {
        Self { schema: Schema::V1, snapshot, well, stage: Stage::Command }
    }

    /// Writes down how far it is.
    pub fn reach(&mut self, place: &Place, stage: Stage) -> Result<(), FileError> {
        self.stage = stage;
        self.store(place)
    }

    pub fn store(&self, place: &Place) -> Result<(), FileError> {
        // Plain text: it cannot fail, and an empty file is read as none that can be read.
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        file::replace(&path(place), &bytes, Eyes::All)
    }
}

/// What lies there.
#[derive(Debug)]
pub enum Found {
    None,
    Trial(Trial),
    /// It cannot be read, in words.
    Unreadable(String),
}

/// Reads it.
pub fn load(place: &Place) -> Found {
    match file::read(&path(place), BYTES_MAX, Eyes::All) {
        Ok(None) => Found::None,
        Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
            Ok(trial) => Found::Trial(trial),
            Err(error) => Found::Unreadable(format!("{}: {error}", path(place).display())),
        },
        Err(error) => Found::Unreadable(holdfast_protocol::strict::chain(&error)),
    }
}

/// Whether one lies there, readable or not.
pub fn is_there(place: &Place) -> bool {
    path(place).exists()
}

/// It is over.
pub fn forget(place: &Place) -> Result<(), FileError> {
    file::remove_durably(&path(place))
}
