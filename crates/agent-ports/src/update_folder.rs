//! The folder in which a fetched release waits for root's gate.
//!
//! In: a signed release and the bytes of its agent, part by part. Out: two files that the gate looks at before the next
//! start. A download that was cut off goes on where it ended. The release is written last: without it the gate takes
//! nothing. The gate checks signature and digest by itself; the digest here only spares a restart.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError, Readers};
use holdfast_protocol::job::act::Sha256Text;
use sha2::{Digest, Sha256};

/// Why a download could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum UpdateFolderError {
    #[error("{} could not be {verb}: look at the disk", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the fetched agent's SHA-256 is {found}, and the release says {wanted}: it is fetched anew", found = .found.as_str(), wanted = .wanted.as_str())]
    Digest { found: Sha256Text, wanted: Sha256Text },
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

    fn part(&self, sha256: &Sha256Text) -> PathBuf {
        self.0.join(format!("{}.part", sha256.as_str()))
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
        atomic_file::private_folder(&self.0)?;
        let part = self.part(sha256);
        let failed = |source| UpdateFolderError::Io { verb: "read", path: self.0.clone(), source };
        for entry in std::fs::read_dir(&self.0).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path != part && path.extension().is_some_and(|end| end == "part") {
                atomic_file::remove(&path)?;
            }
        }
        let here = std::fs::metadata(&part).map(|about| about.len()).unwrap_or(0);
        if here > size {
            atomic_file::remove(&part)?;
            return Ok(0);
        }
        Ok(here)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`UpdateFolderError`].
    pub fn append(&self, sha256: &Sha256Text, bytes: &[u8]) -> Result<(), UpdateFolderError> {
        let path = self.part(sha256);
        let failed = |source| UpdateFolderError::Io { verb: "written", path: path.clone(), source };
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        file.write_all(bytes).map_err(failed)
    }

    /// Checks the whole file, and offers it with its release to the gate.
    ///
    /// # Errors
    /// [`UpdateFolderError`]; of another digest nothing stays.
    pub fn offer(&self, sha256: &Sha256Text, release: &str) -> Result<(), UpdateFolderError> {
        let part = self.part(sha256);
        let failed = |source| UpdateFolderError::Io { verb: "read", path: part.clone(), source };
        let mut file = File::open(&part).map_err(failed)?;
        let (mut hash, mut piece) = (Sha256::new(), vec![0; 64 * 1024]);
        loop {
            let count = file.read(&mut piece).map_err(failed)?;
            match piece.get(..count) {
                Some(bytes) if count > 0 => hash.update(bytes),
                Some(_) | None => break,
            }
        }
        let found = Sha256Text::from_digest(hash.finalize().into());
        if found != *sha256 {
            atomic_file::remove(&part)?;
            return Err(UpdateFolderError::Digest { found, wanted: sha256.clone() });
        }
        file.sync_all().map_err(failed)?;
        std::fs::rename(&part, self.0.join("agentd")).map_err(failed)?;
        // The folder is synced with it.
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
        assert!(!folder.part(&old).exists(), "nobody offers it any more");
        folder.append(&new, b"new ").unwrap();
        assert_eq!(folder.begin(&new, 9).unwrap(), 4);
        folder.append(&new, b"bytez").unwrap();
        assert!(matches!(folder.offer(&new, "{}"), Err(UpdateFolderError::Digest { .. })));
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
