//! Builds of the guest agent, stored by hash.
//!
//! Input: a digest, or a file that a person takes in. Output: how many bytes there are, or an open file whose every
//! byte was hashed through the descriptor that is read from afterwards, so that an exchanged file is never half of the
//! one and half of the other. Bytes of the hub come in through [`download`]. Deliberately absent: whether these bytes may run
//! anywhere (`gate`).

mod download;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use holdfast_protocol::local::desired::CONTROLLER_BYTES_MAX;
use sha2::{Digest, Sha256};

use super::atomic_file::{self, FileError, Readers};
use crate::model::policy::Sha256Hex;
use crate::part_file::PartFileError;

/// Below the agent's own folder.
const FOLDER: &str = "controllers";

/// The current build, the previous one, and a few under trial. More than this are forgotten ones.
pub const FILES_MAX: usize = 16;

/// Why bytes cannot be had or taken in.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The file itself.
    #[error("{} cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// No program of ours.
    #[error("{} is no controller: one is a regular file of 1 to {CONTROLLER_BYTES_MAX} bytes that begins as a program", path.display())]
    NotOne { path: PathBuf },
    /// Its name is not its digest.
    #[error("{} was changed where it lies: its bytes hash to {found}; take it in again", path.display())]
    Changed { path: PathBuf, found: String },
    #[error("{FILES_MAX} controllers lie in {} already: remove one that no guest is to run", path.display())]
    Full { path: PathBuf },
    /// A download.
    #[error(transparent)]
    Part(#[from] PartFileError),
    /// It cannot be kept.
    #[error(transparent)]
    Keep(#[from] FileError),
}

#[derive(Clone, Debug)]
pub struct Artifacts(PathBuf);

/// A file whose content matched its name when it was read through this descriptor.
#[derive(Debug)]
pub struct Artifact {
    file: File,
    bytes: u64,
}

impl Artifact {
    /// How many bytes it has.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads on.
    ///
    /// # Errors
    /// When the disk does not give them.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.read(into)
    }
}

impl Artifacts {
    /// Those below this agent's folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self(state.join(FOLDER))
    }

    /// A folder that is not there.
    #[must_use]
    pub fn none() -> Self {
        Self(PathBuf::from("/nonexistent"))
    }

    fn path(&self, sha256: &Sha256Hex) -> PathBuf {
        self.0.join(sha256.as_str())
    }

    /// How many bytes are stored under this digest, by the metadata of the file.
    #[must_use]
    pub fn size(&self, sha256: &Sha256Hex) -> Option<u64> {
        let about = std::fs::symlink_metadata(self.path(sha256)).ok()?;
        (about.is_file() && (1..=CONTROLLER_BYTES_MAX).contains(&about.len())).then_some(about.len())
    }

    /// All that are stored there, with their sizes. A missing folder holds none.
    #[must_use]
    pub fn stored(&self) -> BTreeMap<Sha256Hex, u64> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let digest = |name: std::ffi::OsString| Sha256Hex::try_from(name.into_string().ok()?).ok();
        let digests = entries.filter_map(|entry| digest(entry.file_name()));
        digests
            .filter_map(|digest| Some((self.size(&digest)?, digest)))
            .map(|(size, it)| (it, size))
            .collect()
    }

    /// Opens the file stored under this digest, once all of it was read and matches the digest. Blocks; ten megabytes
    /// take some ten milliseconds.
    ///
    /// # Errors
    /// [`ArtifactError`]. None means that there is no such file.
    pub fn open(&self, sha256: &Sha256Hex) -> Result<Option<Artifact>, ArtifactError> {
        let path = self.path(sha256);
        let mut file = match OpenOptions::new().read(true).custom_flags(no_follow()).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ArtifactError::Read { path, source }),
        };
        let (found, bytes) = hash(&mut file, &path)?;
        if found != sha256.as_str() {
            return Err(ArtifactError::Changed { path, found });
        }
        file.seek(SeekFrom::Start(0)).map_err(|source| ArtifactError::Read { path, source })?;
        Ok(Some(Artifact { file, bytes }))
    }

    /// Takes an operator's file in, under its hash. It is idempotent.
    ///
    /// # Errors
    /// [`ArtifactError`]; nothing was taken in then.
    pub fn take_in(&self, from: &Path) -> Result<(Sha256Hex, u64), ArtifactError> {
        let unread = |source| ArtifactError::Read { path: from.to_owned(), source };
        let not_one = || ArtifactError::NotOne { path: from.to_owned() };
        let mut bytes = Vec::new();
        let file = OpenOptions::new().read(true).custom_flags(no_block()).open(from).map_err(unread)?;
        if !file.metadata().map_err(unread)?.is_file() {
            return Err(not_one());
        }
        file.take(CONTROLLER_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > CONTROLLER_BYTES_MAX || !bytes.starts_with(b"\x7fELF") {
            return Err(not_one());
        }
        let digest = hex(&Sha256::digest(&bytes));
        let digest = Sha256Hex::try_from(digest).map_err(|_| not_one())?;
        atomic_file::private_folder(&self.0)?;
        let stored = self.stored();
        if !stored.contains_key(&digest) && stored.len() >= FILES_MAX {
            return Err(ArtifactError::Full { path: self.0.clone() });
        }
        atomic_file::write(&self.path(&digest), &bytes, Readers::Owner)?;
        Ok((digest, size))
    }
}

/// The hash and the length of an open file; not longer than a controller may be.
fn hash(file: &mut File, path: &Path) -> Result<(String, u64), ArtifactError> {
    let unread = |source| ArtifactError::Read { path: path.to_owned(), source };
    if !file.metadata().map_err(unread)?.is_file() {
        return Err(ArtifactError::NotOne { path: path.to_owned() });
    }
    let (mut hash, mut piece, mut all) = (Sha256::new(), vec![0; 256 * 1024], 0_u64);
    loop {
        let count = file.read(&mut piece).map_err(unread)?;
        let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        hash.update(bytes);
        all = all.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if all > CONTROLLER_BYTES_MAX {
            return Err(ArtifactError::NotOne { path: path.to_owned() });
        }
    }
    Ok((hex(&hash.finalize()), all))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn no_follow() -> i32 {
    flags(rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
}

/// A pipe without a writer must not block the opener.
fn no_block() -> i32 {
    flags(rustix::fs::OFlags::NONBLOCK)
}

fn flags(flags: rustix::fs::OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Vec<u8> {
        [b"\x7fELF", text.as_bytes()].concat()
    }

    #[test]
    fn what_is_taken_in_is_had_by_its_digest_and_no_changed_byte_is() {
        let folder = tempfile::tempdir().unwrap();
        let (artifacts, from) = (Artifacts::of(folder.path()), folder.path().join("guestd"));
        assert!(artifacts.stored().is_empty());
        std::fs::write(&from, program("one")).unwrap();
        let (digest, size) = artifacts.take_in(&from).unwrap();
        assert_eq!(artifacts.take_in(&from).unwrap(), (digest.clone(), 7), "twice is once");
        assert_eq!((artifacts.size(&digest), artifacts.stored()), (Some(size), [(digest.clone(), 7)].into()));
        let mut open = artifacts.open(&digest).unwrap().unwrap();
        let mut read = vec![0; 16];
        assert_eq!((open.bytes(), open.read(&mut read).unwrap()), (7, 7));
        assert_eq!(read[..7], program("one"));
        let path = folder.path().join(FOLDER).join(digest.as_str());
        std::fs::write(&path, program("two")).unwrap();
        assert!(matches!(artifacts.open(&digest), Err(ArtifactError::Changed { .. })));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&from, &path).unwrap();
        assert!(artifacts.open(&digest).is_err() && artifacts.size(&digest).is_none(), "no link is followed");
        assert!(artifacts.open(&"ab".repeat(32).try_into().unwrap()).unwrap().is_none());
    }

    #[test]
    fn what_is_no_program_is_not_taken_in_and_the_folder_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let (artifacts, from) = (Artifacts::of(folder.path()), folder.path().join("guestd"));
        std::fs::write(&from, "#!/bin/sh").unwrap();
        assert!(matches!(artifacts.take_in(&from), Err(ArtifactError::NotOne { .. })));
        assert!(matches!(artifacts.take_in(folder.path()), Err(ArtifactError::NotOne { .. })));
        std::fs::File::create(&from).unwrap().set_len(CONTROLLER_BYTES_MAX + 1).unwrap();
        assert!(matches!(artifacts.take_in(&from), Err(ArtifactError::NotOne { .. })));
        for n in 0..FILES_MAX {
            std::fs::write(&from, program(&n.to_string())).unwrap();
            artifacts.take_in(&from).unwrap();
        }
        artifacts.take_in(&from).unwrap();
        std::fs::write(&from, program("more")).unwrap();
        assert!(matches!(artifacts.take_in(&from), Err(ArtifactError::Full { .. })));
        assert_eq!(artifacts.stored().len(), FILES_MAX);
    }
}
