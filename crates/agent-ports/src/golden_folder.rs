//! The folder in which a fetched golden image waits for root.
//!
//! In: a signed release, an image's manifest, and the bytes of its archive, part by part. Out: three files for root's program
//! `holdfast-golden publish`, which checks all of them by itself. A download that was cut off goes on where it ended. The
//! release is written last: without it there is nothing to publish. Deliberately absent: a hash of the archive; root makes
//! it in the pass in which it copies.

use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::job::act::Sha256Text;

use crate::part_file::{PartFile, PartFileError, Removes, remove_others};

/// How many bytes stay free on the disk of the agent's records next to an image.
pub const RESERVE_BYTES: u64 = 2 << 30;

/// Why a download could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum GoldenFolderError {
    #[error("{} does not say how much room it has: look at the disk", path.display())]
    Room {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Part(#[from] PartFileError),
    #[error("{} has {free} bytes free; the rest of the image needs {needed}, and {RESERVE_BYTES} stay free: free room there", path.display())]
    Full { path: PathBuf, free: u64, needed: u64 },
}

/// The folder.
#[derive(Clone, Debug)]
pub struct GoldenFolder(PathBuf);

impl GoldenFolder {
    /// In the agent's state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self(state.join("golden"))
    }

    fn release(&self) -> PathBuf {
        self.0.join("release.json")
    }

    /// Its length is in the signed release, and held to the room on the disk.
    fn part(&self, sha256: &Sha256Text) -> PartFile {
        PartFile::of(&self.0, sha256.as_str(), u64::MAX)
    }

    /// Whether an image waits for root.
    ///
    /// # Errors
    /// [`GoldenFolderError`].
    pub fn waits(&self) -> Result<bool, GoldenFolderError> {
        Ok(atomic_file::is_there(&self.release())?)
    }

    /// How many bytes of an archive are here, once there is room for the rest. Everything else in the folder is removed.
    ///
    /// # Errors
    /// [`GoldenFolderError`].
    pub fn begin(&self, sha256: &Sha256Text, size: u64) -> Result<u64, GoldenFolderError> {
        let here = self.part(sha256).begin(Removes::AllElse, size)?;
        let about = rustix::fs::statvfs(&self.0)
            .map_err(|error| GoldenFolderError::Room { path: self.0.clone(), source: error.into() })?;
        let (free, needed) = (about.f_bavail.saturating_mul(about.f_frsize), size - here);
        if needed > 0 && free < needed.saturating_add(RESERVE_BYTES) {
            return Err(GoldenFolderError::Full { path: self.0.clone(), free, needed });
        }
        Ok(here)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`GoldenFolderError`].
    pub fn append(&self, sha256: &Sha256Text, bytes: &[u8]) -> Result<(), GoldenFolderError> {
        Ok(self.part(sha256).append(bytes)?)
    }

    /// Offers a whole archive to root, with the manifest of the image and the release that names both.
    ///
    /// # Errors
    /// [`GoldenFolderError`].
    pub fn offer(
        &self,
        sha256: &Sha256Text,
        manifest: &[u8],
        release: &str,
    ) -> Result<(), GoldenFolderError> {
        // Not synced: it is large, and root hashes it before anything is done with it.
        self.part(sha256).rename(&self.0.join("archive"))?;
        atomic_file::write(&self.0.join("manifest.json"), manifest, Readers::Owner)?;
        Ok(atomic_file::write(&self.release(), release.as_bytes(), Readers::Owner)?)
    }

    /// Takes an offer back. The archive stays, as if it had just been fetched: a new release may name it.
    ///
    /// # Errors
    /// [`GoldenFolderError`].
    pub fn withdraw(&self, sha256: &Sha256Text) -> Result<(), GoldenFolderError> {
        atomic_file::remove(&self.release())?;
        Ok(self.part(sha256).take_back(&self.0.join("archive"))?)
    }

    /// Empties the folder, once the image is published, or its bytes were wrong.
    ///
    /// # Errors
    /// [`GoldenFolderError`].
    pub fn clear(&self) -> Result<(), GoldenFolderError> {
        // The offer ends first.
        atomic_file::remove(&self.release())?;
        Ok(remove_others(&self.0, Removes::AllElse, None)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_fetched_in_parts_offered_whole_and_cleared() {
        let state = tempfile::tempdir().unwrap();
        let folder = GoldenFolder::of(state.path());
        folder.clear().unwrap();
        let (old, new) = (Sha256Text::of(b"old"), Sha256Text::of(b"new bytes"));
        assert_eq!(folder.begin(&old, 3).unwrap(), 0);
        folder.append(&old, b"ol").unwrap();
        assert_eq!(folder.begin(&new, 9).unwrap(), 0);
        assert!(!folder.part(&old).path().exists(), "nobody wants it any more");
        folder.append(&new, b"new ").unwrap();
        assert_eq!(folder.begin(&new, 9).unwrap(), 4, "it goes on there");
        folder.append(&new, b"bytes").unwrap();
        assert!(!folder.waits().unwrap());
        folder.offer(&new, b"{}", "{\"a\":1}").unwrap();
        assert!(folder.waits().unwrap());
        let read = |name: &str| std::fs::read(state.path().join("golden").join(name)).unwrap();
        assert_eq!((read("archive"), read("manifest.json")), (b"new bytes".to_vec(), b"{}".to_vec()));
        folder.withdraw(&new).unwrap();
        folder.withdraw(&new).unwrap();
        assert!(!folder.waits().unwrap());
        assert_eq!(folder.begin(&new, 9).unwrap(), 9, "nothing is fetched again");
        folder.offer(&new, b"{}", "{\"a\":1}").unwrap();
        folder.clear().unwrap();
        assert!(!folder.waits().unwrap());
        assert_eq!(std::fs::read_dir(state.path().join("golden")).unwrap().count(), 0);
        let full = folder.begin(&new, u64::MAX / 2).unwrap_err();
        assert!(matches!(full, GoldenFolderError::Full { .. }), "{full}");
    }
}
