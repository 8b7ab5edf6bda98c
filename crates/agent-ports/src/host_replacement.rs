//! Records of a lost host, stored for its replacement.
//!
//! ```text
//! <state>/restore/handover.json   document, guests, storage targets, wrapped keys; there means: not taken up yet
//! <state>/restore/taken-up.json   the same, once its guests are on record as lost
//! <state>/restore/escrow-N.age    the wrapped key of sheet N alone, for `agentd recover --from`
//! ```
//! As long as it is not taken up, no document is: an agent that knows none of its guests would make them anew, empty.
//! Deliberately absent: bringing them back.

use std::path::{Path, PathBuf};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::escrow::by_hand;
use holdfast_protocol::json::{self, JsonError};
use holdfast_protocol::restore::HandOver;

use super::atomic_file::{self, FileError, Readers};

/// A document, a report and wrapped keys.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why the handed-over data is not kept, or not read.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be moved.
    #[error("{} cannot be put away: look at the disk and at who owns the folder", path.display())]
    Move {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Damaged, or of another version.
    #[error("what was handed over lies damaged in {}: ask the hub's operator for a new restore invite", path.display())]
    Damaged {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// Cannot be written as JSON; does not happen for what was read.
    #[error("what was handed over cannot be written")]
    Unwritable(#[source] serde_json::Error),
}

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

    fn taken_up(&self) -> PathBuf {
        self.dir.join("taken-up.json")
    }

    /// Keeps it, synced. A repeat replaces it.
    ///
    /// # Errors
    /// [`HandOverError`].
    pub fn keep(&self, handover: &HandOver) -> Result<(), HandOverError> {
        atomic_file::private_folder(&self.dir)?;
        let bytes = serde_json::to_vec_pretty(handover).map_err(HandOverError::Unwritable)?;
        for found in &handover.escrows {
            let path = self.dir.join(by_hand::file_name(found.version.code));
            atomic_file::write(&path, found.file.as_bytes(), Readers::Owner)?;
        }
        Ok(atomic_file::write(&self.open(), &bytes, Readers::Owner)?)
    }

    /// Whether something was handed over that is not taken up yet.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.open().exists()
    }

    /// The problem reported as long as it waits.
    #[must_use]
    pub fn problem(&self) -> Option<ErrorBody> {
        let text = "this box took a lost one's place: no document is taken until `agentd enroll --take-up`";
        self.waits().then(|| ErrorBody::new(ErrorCode::Restoring, text))
    }

    /// The handed-over data, taken up or not.
    ///
    /// # Errors
    /// [`HandOverError`].
    pub fn read(&self) -> Result<Option<HandOver>, HandOverError> {
        let mut path = self.open();
        let mut bytes = atomic_file::read(&path, BYTES_MAX as u64)?;
        if bytes.is_none() {
            path = self.taken_up();
            bytes = atomic_file::read(&path, BYTES_MAX as u64)?;
        }
        let Some(bytes) = bytes else { return Ok(None) };
        json::parse("what was handed over", &bytes, BYTES_MAX)
            .map(Some)
            .map_err(|source| HandOverError::Damaged { path, source })
    }

    /// From now on documents are taken. A repeat changes nothing.
    ///
    /// # Errors
    /// [`HandOverError`].
    pub fn take_up(&self) -> Result<(), HandOverError> {
        let path = self.open();
        match std::fs::rename(&path, self.taken_up()) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(HandOverError::Move { path, source })
            }
            _ => Ok(()),
        }
    }
}
