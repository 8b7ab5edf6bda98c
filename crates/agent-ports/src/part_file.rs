//! A download that comes in parts, until it is whole.
//!
//! In: a folder of the agent's own, the digest of what is fetched, and its bytes in order. Out: how many are here already,
//! the whole file under another name, or a refusal after which nothing of it stays. A download that was
//! cut off goes on where it ended. Deliberately absent: where the parts come from, and how much room the disk has.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use held_files::atomic_file::{self, FileError};
use holdfast_protocol::job::act::Sha256Text;
use sha2::{Digest as _, Sha256};

/// Bytes that are hashed at once.
const PIECE: usize = 64 * 1024;

/// Why a download could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum PartFileError {
    #[error("{} could not be {verb}: look at the disk", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} was longer than the {most} bytes that it may have: it was removed, and is fetched anew", path.display())]
    TooLong { path: PathBuf, most: u64 },
    #[error(
        "the bytes that came hash to {found}, and {wanted} was asked for: they were removed, and are fetched anew"
    )]
    Digest { found: String, wanted: String },
}

/// What of the folder goes when a download begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removes {
    /// Parts of other downloads: nothing asks for them now.
    OtherParts,
    /// Everything else.
    AllElse,
}

/// The file of one download.
#[derive(Clone, Debug)]
pub struct PartFile {
    folder: PathBuf,
    sha256: String,
    path: PathBuf,
    most: u64,
}

impl PartFile {
    /// In a folder, by the digest in lower-case hex; with at most so many bytes.
    #[must_use]
    pub fn of(folder: &Path, sha256: &str, most: u64) -> Self {
        let path = folder.join(format!("{sha256}.part"));
        Self { folder: folder.to_owned(), sha256: sha256.to_owned(), path, most }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder and removes what is not needed there. How many bytes are here; none, where they are more than the
    /// whole file has.
    ///
    /// # Errors
    /// [`PartFileError`].
    pub fn begin(&self, removes: Removes, size: u64) -> Result<u64, PartFileError> {
        atomic_file::private_folder(&self.folder)?;
        remove_others(&self.folder, removes, Some(&self.path))?;
        let here = std::fs::symlink_metadata(&self.path).map_or(0, |about| about.len());
        if here <= size.min(self.most) {
            return Ok(here);
        }
        atomic_file::remove(&self.path)?;
        Ok(0)
    }

    /// Appends bytes. With more than it may have, all of it is removed.
    ///
    /// # Errors
    /// [`PartFileError`].
    pub fn append(&self, bytes: &[u8]) -> Result<(), PartFileError> {
        let failed = self.failed("written");
        let mut open = OpenOptions::new();
        let mut file =
            open.create(true).append(true).custom_flags(no_follow()).open(&self.path).map_err(&failed)?;
        let here = file.metadata().map_err(&failed)?.len();
        let long = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if here.saturating_add(long) > self.most {
            return Err(self.too_long());
        }
        file.write_all(bytes).map_err(&failed)
    }

    /// Hashes the whole file. How many bytes it has; of another digest nothing stays.
    ///
    /// # Errors
    /// [`PartFileError`].
    pub fn check(&self) -> Result<u64, PartFileError> {
        let failed = self.failed("read");
        let mut file = self.open().map_err(&failed)?;
        let (mut hash, mut piece, mut bytes) = (Sha256::new(), vec![0; PIECE], 0_u64);
        loop {
            let count = file.read(&mut piece).map_err(&failed)?;
            match piece.get(..count) {
                Some(read) if count > 0 => hash.update(read),
                Some(_) | None => break,
            }
            bytes = bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            if bytes > self.most {
                return Err(self.too_long());
            }
        }
        let found = Sha256Text::from_digest(hash.finalize().into()).as_str().to_owned();
        if found == self.sha256 {
            return Ok(bytes);
        }
        atomic_file::remove(&self.path)?;
        Err(PartFileError::Digest { found, wanted: self.sha256.clone() })
    }

    /// Brings its bytes to the disk. Of a large file that takes seconds.
    ///
    /// # Errors
    /// [`PartFileError`].
    pub fn sync(&self) -> Result<(), PartFileError> {
        self.open().and_then(|file| file.sync_all()).map_err(self.failed("written"))
    }

    /// Gives it its name in the same folder. The name is on the disk when this returns.
    ///
    /// # Errors
    /// [`PartFileError`].
    pub fn rename(&self, to: &Path) -> Result<(), PartFileError> {
        let failed = self.failed("renamed");
        std::fs::rename(&self.path, to).map_err(&failed)?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(&failed)
    }

    /// Takes a name back, as if the file had just been fetched. Nothing, where there is no such file.
    ///
    /// # Errors
    /// [`PartFileError`].
    pub fn take_back(&self, from: &Path) -> Result<(), PartFileError> {
        match std::fs::rename(from, &self.path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(self.failed("renamed")(source))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn too_long(&self) -> PartFileError {
        match atomic_file::remove(&self.path) {
            Ok(()) => PartFileError::TooLong { path: self.path.clone(), most: self.most },
            Err(error) => error.into(),
        }
    }

    fn open(&self) -> std::io::Result<File> {
        OpenOptions::new().read(true).custom_flags(no_follow()).open(&self.path)
    }

    fn failed(&self, verb: &'static str) -> impl Fn(std::io::Error) -> PartFileError + use<'_> {
        move |source| PartFileError::Io { verb, path: self.path.clone(), source }
    }
}

/// Removes files of a folder. A folder that is not there has none.
///
/// # Errors
/// [`PartFileError`].
pub fn remove_others(folder: &Path, removes: Removes, stays: Option<&Path>) -> Result<(), PartFileError> {
    let failed = |source| PartFileError::Io { verb: "read", path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let goes = match removes {
            Removes::AllElse => true,
            Removes::OtherParts => path.extension().is_some_and(|end| end == "part"),
        };
        if goes && Some(path.as_path()) != stays {
            atomic_file::remove(&path)?;
        }
    }
    Ok(())
}

/// Opens no link, and waits for no pipe.
fn no_follow() -> i32 {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    i32::try_from(flags.bits()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folder: &Path, bytes: &[u8]) -> PartFile {
        PartFile::of(folder, Sha256Text::of(bytes).as_str(), 9)
    }

    #[test]
    fn it_goes_on_where_it_ended_and_only_the_right_bytes_pass() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join("made");
        let part = of(&folder, b"new bytes");
        assert_eq!(part.begin(Removes::OtherParts, 9).unwrap(), 0);
        part.append(b"new ").unwrap();
        assert_eq!(part.begin(Removes::OtherParts, 9).unwrap(), 4);
        part.append(b"bytez").unwrap();
        assert!(matches!(part.check(), Err(PartFileError::Digest { .. })));
        assert_eq!(part.begin(Removes::OtherParts, 9).unwrap(), 0, "nothing of it stayed");
        part.append(b"new bytes").unwrap();
        assert!(matches!(part.append(b"!"), Err(PartFileError::TooLong { most: 9, .. })));
        assert_eq!(part.begin(Removes::OtherParts, 9).unwrap(), 0, "nor of one that is too long");
        part.append(b"new bytes").unwrap();
        assert_eq!(part.begin(Removes::OtherParts, 8).unwrap(), 0, "it is known to be shorter now");
        part.append(b"new bytes").unwrap();
        assert_eq!(part.check().unwrap(), 9);
        part.sync().unwrap();
        let name = folder.join("program");
        part.rename(&name).unwrap();
        assert_eq!((std::fs::read(&name).unwrap(), part.path().exists()), (b"new bytes".to_vec(), false));
        part.take_back(&name).unwrap();
        part.take_back(&name).unwrap();
        assert_eq!(part.begin(Removes::OtherParts, 9).unwrap(), 9);
    }

    #[test]
    fn what_else_lies_there_goes_as_far_as_it_is_asked_to() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (of(folder.path(), b"old"), of(folder.path(), b"new"));
        let names = || {
            let all = std::fs::read_dir(folder.path()).unwrap();
            let mut all: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
            all.sort();
            all
        };
        let program = folder.path().join("program");
        std::fs::write(&program, "stays").unwrap();
        old.append(b"o").unwrap();
        new.append(b"n").unwrap();
        assert_eq!(new.begin(Removes::OtherParts, 3).unwrap(), 1);
        assert_eq!(names(), [new.path().to_owned(), program]);
        assert_eq!(new.begin(Removes::AllElse, 3).unwrap(), 1);
        assert_eq!(names(), [new.path().to_owned()]);
        remove_others(folder.path(), Removes::AllElse, None).unwrap();
        assert!(names().is_empty());
    }

    #[test]
    fn no_link_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (part, other) = (of(folder.path(), b"new"), folder.path().join("other"));
        std::fs::write(&other, "of somebody").unwrap();
        std::os::unix::fs::symlink(&other, part.path()).unwrap();
        assert!(matches!(part.append(b"new"), Err(PartFileError::Io { .. })));
        assert!(matches!(part.check(), Err(PartFileError::Io { .. })));
        assert_eq!(std::fs::read(&other).unwrap(), b"of somebody");
    }
}
