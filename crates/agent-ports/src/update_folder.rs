//! The folder in which a fetched release waits for root's gate.
//!
//! In: a signed release and the bytes of its agent, part by part. Out: two files that the gate looks at before the next
//! start. A download that was cut off goes on where it ended. The release is written last: without it the gate takes
//! nothing. The gate checks signature and digest by itself; the digest here only spares a restart.

use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::job::act::Sha256Text;

use crate::part_file::{PartFile, PartFileError, Removes};

/// The gate takes no longer program.
const PROGRAM_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Why a download could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum UpdateFolderError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Part(#[from] PartFileError),
}

/// The folder.
#[derive(Clone, Debug)]
pub struct UpdateFolder(PathBuf);

impl UpdateFolder {
    /// In the agent's state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self(state.join("update"))
    }

    fn release(&self) -> PathBuf {
        self.0.join("release.json")
    }

    fn part(&self, sha256: &Sha256Text) -> PartFile {
        PartFile::of(&self.0, sha256.as_str(), PROGRAM_BYTES_MAX)
    }

    /// Whether a release waits for the gate.
    ///
    /// # Errors
    /// [`UpdateFolderError`].
    pub fn waits(&self) -> Result<bool, UpdateFolderError> {
        Ok(atomic_file::is_there(&self.release())?)
    }

    /// How many bytes of a file are here. Parts of other files are removed: they are of releases that nobody offers now.
    ///
    /// # Errors
    /// [`UpdateFolderError`].
    pub fn begin(&self, sha256: &Sha256Text, size: u64) -> Result<u64, UpdateFolderError> {
        Ok(self.part(sha256).begin(Removes::OtherParts, size)?)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`UpdateFolderError`].
    pub fn append(&self, sha256: &Sha256Text, bytes: &[u8]) -> Result<(), UpdateFolderError> {
        Ok(self.part(sha256).append(bytes)?)
    }

    /// Checks the whole file, and offers it with its release to the gate.
    ///
    /// # Errors
    /// [`UpdateFolderError`]; of another digest nothing stays.
    pub fn offer(&self, sha256: &Sha256Text, release: &str) -> Result<(), UpdateFolderError> {
        let part = self.part(sha256);
        part.check()?;
        part.sync()?;
        part.rename(&self.0.join("agentd"))?;
        Ok(atomic_file::write(&self.release(), release.as_bytes(), Readers::Owner)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_goes_on_and_only_the_right_bytes_are_offered() {
        let state = tempfile::tempdir().unwrap();
        let folder = UpdateFolder::of(state.path());
        let (old, new) = (Sha256Text::of(b"old"), Sha256Text::of(b"new bytes"));
        assert_eq!(folder.begin(&old, 3).unwrap(), 0);
        folder.append(&old, b"ol").unwrap();
        assert_eq!(folder.begin(&new, 9).unwrap(), 0);
        assert!(!folder.part(&old).path().exists(), "nobody offers it any more");
        folder.append(&new, b"new ").unwrap();
        assert_eq!(folder.begin(&new, 9).unwrap(), 4);
        folder.append(&new, b"bytez").unwrap();
        assert!(matches!(
            folder.offer(&new, "{}"),
            Err(UpdateFolderError::Part(PartFileError::Digest { .. }))
        ));
        assert!(!folder.waits().unwrap());
        assert_eq!(folder.begin(&new, 9).unwrap(), 0, "nothing of it stayed");
        folder.append(&new, b"new bytes and more").unwrap();
        assert_eq!(folder.begin(&new, 9).unwrap(), 0, "longer than it can be");
        folder.append(&new, b"new bytes").unwrap();
        folder.offer(&new, "{\"a\":1}").unwrap();
        assert!(folder.waits().unwrap());
        assert_eq!(std::fs::read(state.path().join("update/agentd")).unwrap(), b"new bytes");
    }
}
