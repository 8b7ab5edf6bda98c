//! What a lost box left, as this one was handed it: kept beside the identity until its guests are back.
//!
//! ```text
//! <state>/restore/handover.json   document, guests, storage targets, wrapped key; there means: not taken up yet
//! <state>/restore/taken-up.json   the same, once a person said that what is to come back is back
//! <state>/restore/escrow.age      the wrapped key alone, for `agentd recover --from`
//! ```
//! As long as it is not taken up, no document is: an agent that knows none of its guests would make them anew, empty.
//! Deliberately absent: bringing them back.

use std::path::{Path, PathBuf};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::restore::HandOver;
use holdfast_protocol::strict::{self, StrictError};

use super::atomic_file::{self, FileError, Readers};

/// A document, a report and a wrapped key.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why what was handed over is not kept, or not read.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The disk.
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be moved.
    #[error("{} cannot be put away: look at the disk and at who owns the folder", path.display())]
    Move {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Damaged, or of another version.
    #[error("what was handed over lies damaged in {}: ask the hub's operator for a new restore invite", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: StrictError,
    },
    /// Cannot be written as JSON; does not happen for what was read.
    #[error("what was handed over cannot be written")]
    Unwritable(#[source] serde_json::Error),
}

/// The folder.
#[derive(Clone, Debug)]
pub struct HandOverFolder {
    dir: PathBuf,
}

impl HandOverFolder {
    /// Of a state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { dir: state.join("restore") }
    }

    fn open(&self) -> PathBuf {
        self.dir.join("handover.json")
    }

    /// Keeps it, synced. A repeat replaces it.
    ///
    /// # Errors
    /// [`HandOverError`].
    pub fn keep(&self, handover: &HandOver) -> Result<(), HandOverError> {
        atomic_file::private_folder(&self.dir)?;
        let bytes = serde_json::to_vec_pretty(handover).map_err(HandOverError::Unwritable)?;
        if let Some(found) = &handover.escrow {
            atomic_file::write(&self.escrow(), found.file.as_bytes(), Readers::Owner)?;
        }
        Ok(atomic_file::write(&self.open(), &bytes, Readers::Owner)?)
    }

    /// Where the wrapped key lies, if it was handed over.
    #[must_use]
    pub fn escrow(&self) -> PathBuf {
        self.dir.join("escrow.age")
    }

    /// Whether something was handed over that is not taken up yet.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.open().exists()
    }

    /// What is told as long as it waits.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        let text = "this box took a lost one's place: no document is taken until `agentd enroll --take-up`";
        self.waits().then(|| Problem::new(ErrorCode::Restoring, text))
    }

    /// What was handed over and is not taken up yet.
    ///
    /// # Errors
    /// [`HandOverError`].
    pub fn read(&self) -> Result<Option<HandOver>, HandOverError> {
        let path = self.open();
        let Some(bytes) = atomic_file::read(&path, BYTES_MAX as u64)? else { return Ok(None) };
        strict::parse("what was handed over", &bytes, BYTES_MAX)
            .map(Some)
            .map_err(|source| HandOverError::Damaged { path, source })
    }

    /// From now on documents are taken.
    ///
    /// # Errors
    /// [`HandOverError`].
    pub fn take_up(&self) -> Result<(), HandOverError> {
        let path = self.open();
        std::fs::rename(&path, self.dir.join("taken-up.json"))
            .map_err(|source| HandOverError::Move { path, source })
    }
}
