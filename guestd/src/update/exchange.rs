//! The record of the last exchange of this program, `exchange.json`.
//!
//! It is on the disk before another build gets our name, and says whether that build is on trial or was taken back. It is
//! removed when the agent confirmed the build. Without it the timer does nothing.

use std::path::PathBuf;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::{self, JsonError, chain};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::timer;
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

const BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Schema {
    #[default]
    #[serde(rename = "holdfast.guestd-exchange/v1")]
    V1,
}

/// One exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    #[serde(default)]
    schema: Schema,
    /// The agent's operation.
    pub operation: OperationId,
    /// What the new program hashes to.
    pub sha256: Sha256Text,
    /// The path that both programs have in turn.
    pub program: PathBuf,
    pub state: ExchangeState,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeState {
    /// The agent did not confirm the build yet.
    OnTrial,
    /// The previous program is put back.
    TakenBack,
}

/// Why the record cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is malformed, so that no controller is exchanged: remove it", path.display())]
    Malformed {
        path: PathBuf,
        #[source]
        source: JsonError,
    },
    /// Cannot happen for plain text.
    #[error("the record of an exchange cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("exchange.json")
}

impl Exchange {
    /// What is written down before another build gets our name.
    pub const fn new(
        operation: OperationId,
        sha256: Sha256Text,
        program: PathBuf,
        state: ExchangeState,
    ) -> Self {
        Self { schema: Schema::V1, operation, sha256, program, state }
    }

    /// The same, once the previous program is to be put back.
    pub fn taken_back(&self) -> Self {
        Self { state: ExchangeState::TakenBack, ..self.clone() }
    }

    /// Reads it; none when there is none.
    pub fn load(paths: &Paths) -> Result<Option<Self>, ExchangeError> {
        let path = path(paths);
        let Some(bytes) = file::read(&path, BYTES_MAX, Eyes::All)? else { return Ok(None) };
        json::parse("the record of an exchange", &bytes, BYTES_MAX)
            .map(Some)
            .map_err(|source| ExchangeError::Malformed { path, source })
    }

    /// Writes it. When this returns well, it is on the disk.
    pub fn store(&self, paths: &Paths) -> Result<(), ExchangeError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(ExchangeError::Unwritable)?;
        Ok(file::replace(&path(paths), &bytes, Eyes::Owner)?)
    }
}

/// Removes the record and then the timer. A timer that stays does no harm: it finds no record.
pub async fn clear(paths: &Paths) {
    if let Err(error) = file::remove_durably(&path(paths)) {
        warn!(error = chain(&error), "the record of the exchange stays, and the timer with it");
        return;
    }
    if let Err(error) = timer::disarm(paths).await {
        warn!(error = chain(&error), "the timer of the exchange stays; it finds nothing to do");
    }
}
