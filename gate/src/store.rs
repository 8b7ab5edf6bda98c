//! The state file, written whole or not at all.
//!
//! In: a state. Out: the file, synced with its folder before anything is done by it. One lock is held over reading,
//! deciding and writing. How often the machine ended a start of the build on trial is in a second file, which a gate of
//! before does not look for. It is written first, so a power cut between the two makes that number higher, never lower.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use agent_slots::{SlotsState, TrialReboots};
use held_files::held_folder::{Given, HeldError, HeldFolder};
use holdfast_protocol::json::{self, JsonError};
use rustix::fs::{FlockOperation, flock};

/// Sixteen failures with long reasons, and room.
const BYTES_MAX: usize = 128 * 1024;

const STATE: &str = "state.json";
const REBOOTS: &str = "reboots.json";
const LOCK: &str = "lock";

/// Why the state was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{} is not used: it, or a folder above it, can be changed by others than root", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: HeldError,
    },
    #[error("the lock of {} is not available", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the state of the slots could not be read")]
    Read(#[source] std::io::Error),
    #[error("the state of the slots could not be written: nothing was changed")]
    Write(#[source] HeldError),
    #[error("the state of the slots cannot be written down")]
    Form(#[source] serde_json::Error),
}

/// The state as it was found.
#[derive(Debug)]
pub enum Stored {
    /// No build ever came by another road than the package.
    Absent,
    State(Box<SlotsState>),
    /// The file cannot be understood. It was set aside under another name.
    Damaged(JsonError),
}

/// Root's folder, locked.
#[derive(Debug)]
pub struct Store {
    folder: HeldFolder,
    path: PathBuf,
    /// Released when it is closed.
    _lock: File,
}

impl Store {
    /// Makes the folder where it is missing, and waits for the lock.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn lock(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Folder { path: path.to_owned(), source };
        HeldFolder::make_all(path).map_err(failed)?;
        let folder = HeldFolder::roots_alone(path).map_err(failed)?;
        let lock_failed = |source| StoreError::Lock { path: path.to_owned(), source };
        if folder.file(OsStr::new(LOCK)).map_err(failed)?.is_none() {
            match folder.fresh(OsStr::new(LOCK), b"", 0o600, Given::Kept) {
                Ok(()) => {}
                // Another one of us made it at the same moment.
                Err(_) if folder.has(OsStr::new(LOCK)).map_err(failed)? => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let lock = folder.file(OsStr::new(LOCK)).map_err(failed)?;
        let lock = lock.ok_or_else(|| lock_failed(std::io::ErrorKind::NotFound.into()))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| lock_failed(error.into()))?;
        Ok(Self { folder, path: path.to_owned(), _lock: lock })
    }

    /// The folder of the slots.
    #[must_use]
    pub const fn folder(&self) -> &HeldFolder {
        &self.folder
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the state.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn read(&self) -> Result<Stored, StoreError> {
        let Some(bytes) = bytes(&self.folder, STATE)? else { return Ok(Stored::Absent) };
        match json::parse::<SlotsState>("the state of the slots", &bytes, BYTES_MAX) {
            Ok(state) => Ok(Stored::State(Box::new(state.with_reboots(reboots(&self.folder))))),
            Err(error) => {
                self.folder
                    .write(OsStr::new("state.damaged"), &bytes, 0o600, Given::Kept)
                    .map_err(StoreError::Write)?;
                Ok(Stored::Damaged(error))
            }
        }
    }

    /// Writes the state. It is on the disk when this returns.
    ///
    /// # Errors
    /// [`StoreError`]; the state before is untouched then.
    pub fn write(&self, state: &SlotsState) -> Result<(), StoreError> {
        let reboots = state.trial_reboots();
        if let Some(reboots) = &reboots {
            self.put(REBOOTS, reboots)?;
        }
        self.put(STATE, state)?;
        if reboots.is_none() {
            // It is of a trial that ended, and counts for none: the state is stored whatever becomes of it.
            drop(self.folder.remove(OsStr::new(REBOOTS)));
        }
        Ok(())
    }

    fn put(&self, name: &str, value: &impl serde::Serialize) -> Result<(), StoreError> {
        let mut bytes = serde_json::to_vec_pretty(value).map_err(StoreError::Form)?;
        bytes.push(b'\n');
        self.folder.write(OsStr::new(name), &bytes, 0o644, Given::Kept).map_err(StoreError::Write)
    }
}

/// One that cannot be read says nothing, and is no reason not to start: the build on trial has its starts, and as many
/// reboots as at first.
fn reboots(folder: &HeldFolder) -> Option<TrialReboots> {
    let bytes = bytes(folder, REBOOTS).ok().flatten()?;
    json::parse("the reboots of a trial", &bytes, BYTES_MAX).ok()
}

fn bytes(folder: &HeldFolder, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let file = folder.file(OsStr::new(name)).map_err(|error| StoreError::Read(error.into()))?;
    let Some(file) = file else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(StoreError::Read)?;
    Ok(Some(bytes))
}

/// The state as anybody may read it, without the lock.
///
/// # Errors
/// [`StoreError`].
pub fn look(path: &Path) -> Result<Option<SlotsState>, StoreError> {
    let folder = match HeldFolder::open(path) {
        Ok(folder) => folder,
        Err(error) if error.is_missing() => return Ok(None),
        Err(source) => return Err(StoreError::Folder { path: path.to_owned(), source }),
    };
    let Some(bytes) = bytes(&folder, STATE)? else { return Ok(None) };
    let state = json::parse::<SlotsState>("the state of the slots", &bytes, BYTES_MAX);
    let reboots = reboots(&folder);
    state.map(|state| Some(state.with_reboots(reboots))).map_err(|error| {
        StoreError::Read(std::io::Error::new(std::io::ErrorKind::InvalidData, json::chain(&error)))
    })
}
