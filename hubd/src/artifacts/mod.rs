//! Files of releases in the hub's folder, by digest.
//!
//! In: a digest that a release names, its size, and its bytes piece by piece. Out: a file under that name once its bytes
//! hash to it, and never before. `DIGEST.part` is the beginning of one; a hub that stopped in between goes on there.
//! Deliberately absent: which digests releases name (`store`), and signatures.

mod error;
mod upload;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use held_files::atomic_file;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::stored::{ArtifactState, ArtifactView};
use sha2::Sha256;

pub use error::ArtifactError;
pub use upload::{Begun, Upload};

/// Below the hub's own folder.
const FOLDER: &str = "artifacts";

/// The end of the name of a beginning.
const PART: &str = ".part";

/// Hashes of beginnings that are remembered, so that the next piece need not read them again.
const HASHES_MAX: usize = 64;

/// Bounds of all files together.
#[derive(Clone, Copy, Debug)]
pub struct ArtifactLimits {
    /// Bytes of all files that releases name.
    pub bytes_max: u64,
    /// What stays free on the disk: the database is on it, too.
    pub disk_reserve_bytes: u64,
}

/// The reserve by default.
pub const DISK_RESERVE_BYTES: u64 = 1024 * 1024 * 1024;

/// The folder with all files.
pub struct ArtifactFolder {
    folder: PathBuf,
    limits: ArtifactLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Files that are written now.
    writing: BTreeSet<Sha256Text>,
    /// Beginnings, with their lengths and hashes so far.
    hashed: BTreeMap<Sha256Text, (u64, Sha256)>,
}

impl ArtifactFolder {
    /// Opens the folder below the hub's own; it is made where it is missing.
    ///
    /// # Errors
    /// [`atomic_file::FileError`].
    pub fn open(hub: &Path, limits: ArtifactLimits) -> Result<Arc<Self>, atomic_file::FileError> {
        let folder = hub.join(FOLDER);
        atomic_file::private_folder(&folder)?;
        Ok(Arc::new(Self { folder, limits, state: Mutex::default() }))
    }

    /// The bounds.
    #[must_use]
    pub const fn limits(&self) -> ArtifactLimits {
        self.limits
    }

    /// How much of a file is here.
    ///
    /// # Errors
    /// [`ArtifactError::Disk`].
    pub fn view(&self, digest: &Sha256Text, size_bytes: u64) -> Result<ArtifactView, ArtifactError> {
        let (received_bytes, state) = match length(&self.whole(digest))? {
            Some(_) => (size_bytes, ArtifactState::Complete),
            None => match length(&self.part(digest))? {
                None | Some(0) => (0, ArtifactState::Missing),
                Some(length) => (length.min(size_bytes), ArtifactState::Partial),
            },
        };
        Ok(ArtifactView { sha256: digest.clone(), size_bytes, received_bytes, state })
    }

    /// Opens a file that is whole. `None` where it is not.
    ///
    /// # Errors
    /// [`ArtifactError::Disk`].
    pub fn read(&self, digest: &Sha256Text) -> Result<Option<File>, ArtifactError> {
        match File::open(self.whole(digest)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ArtifactError::Disk { verb: "opened", source }),
        }
    }

    /// Removes what no release names. What is written at this moment stays, and is judged when it is whole.
    ///
    /// # Errors
    /// [`ArtifactError::Disk`].
    pub fn keep_only(&self, named: &BTreeSet<Sha256Text>) -> Result<(), ArtifactError> {
        let disk = |source| ArtifactError::Disk { verb: "removed", source };
        for entry in fs::read_dir(&self.folder).map_err(disk)? {
            let entry = entry.map_err(disk)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A file of another kind is not ours to remove.
            let Ok(digest) = Sha256Text::try_from(name.trim_end_matches(PART).to_owned()) else { continue };
            let mut state = self.lock();
            if named.contains(&digest) || state.writing.contains(&digest) {
                continue;
            }
            state.hashed.remove(&digest);
            fs::remove_file(entry.path()).map_err(disk)?;
        }
        Ok(())
    }

    fn whole(&self, digest: &Sha256Text) -> PathBuf {
        self.folder.join(digest.as_str())
    }

    fn part(&self, digest: &Sha256Text) -> PathBuf {
        self.folder.join(format!("{}{PART}", digest.as_str()))
    }

    /// No method stops half-way, so what is behind a poisoned lock is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file's length; none where there is no such file.
fn length(path: &Path) -> Result<Option<u64>, ArtifactError> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ArtifactError::Disk { verb: "looked at", source }),
    }
}

#[cfg(test)]
mod tests;
