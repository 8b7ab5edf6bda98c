//! State of the running controller, in `run/holdfast/guestd.json`.
//!
//! It holds no secret.

use std::path::PathBuf;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::json::{self, JsonError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

const BYTES_MAX: usize = 16 * 1024;

/// The version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.guestd-state/v1")]
    V1,
}

/// The state of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The version of the file.
    pub schema: Schema,
    /// The controller's version.
    pub version: String,
    /// What it is doing.
    pub mode: Mode,
    /// When it began to do that.
    pub since: Timestamp,
    /// Why it does no more than that; none when all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The agent it speaks to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// When the agent last answered a hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_hello_at: Option<Timestamp>,
}

/// What the controller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It has no agent to speak to.
    SetUp,
    /// It trades its bootstrap token.
    Claiming,
    /// It has its token and says hello.
    Serving,
}

/// Why the file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} was not written by this version of guestd: restart it", path.display())]
    Malformed {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// Cannot happen for plain text and numbers.
    #[error("the state cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn path(paths: &Paths) -> PathBuf {
    paths.run_dir().join("guestd.json")
}

/// Reads it; none when there is none.
pub fn load(paths: &Paths) -> Result<Option<State>, StateError> {
    let path = path(paths);
    let Some(bytes) = file::read(&path, BYTES_MAX, Eyes::All)? else { return Ok(None) };
    json::parse("the state", &bytes, BYTES_MAX)
        .map(Some)
        .map_err(|source| StateError::Malformed { path, source })
}

pub fn store(paths: &Paths, state: &State) -> Result<(), StateError> {
    let bytes = serde_json::to_vec_pretty(state).map_err(StateError::Unwritable)?;
    Ok(file::replace(&path(paths), &bytes, Eyes::All)?)
}
