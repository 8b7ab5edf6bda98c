//! Small files written whole or not at all.
//!
//! Input: a path and bytes. Output: nothing, once file and folder are on the disk. Everything goes through
//! [`held_folder`](super::held_folder), so that no link redirects a command that root runs. Deliberately absent:
//! appending, and sizes beyond memory.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

pub use super::held_folder::Given;
use super::held_folder::{HeldError, HeldFolder};

/// Why a file could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{} could not be {verb}: look at the disk and at who owns the folder", path.display())]
    Disk {
        /// The attempted action.
        verb: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A link, or a stranger's file, in a place that another user can change.
    #[error(transparent)]
    Refused(HeldError),
}

impl FileError {
    fn of<'a>(verb: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> Self + 'a {
        move |source| Self::Disk { verb, path: path.to_owned(), source }
    }

    fn held<'a>(verb: &'static str, path: &'a Path) -> impl Fn(HeldError) -> Self + 'a {
        move |error| {
            if error.is_refusal() { Self::Refused(error) } else { Self::of(verb, path)(error.into()) }
        }
    }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The agent's user alone.
    Owner,
    /// The agent's user and group.
    Group,
    /// Everybody; only the owner writes.
    All,
    /// The owner alone; the group may write without reading.
    OwnerGroupWrites,
}

impl Readers {
    const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o640,
            Self::All => 0o644,
            Self::OwnerGroupWrites => 0o620,
        }
    }
}

/// Makes a folder for the agent's user alone. One that is there already is closed to others.
///
/// # Errors
/// [`FileError`].
pub fn private_folder(path: &Path) -> Result<(), FileError> {
    private_folder_for(path, Given::Kept)
}

/// As [`private_folder`], and sets its owner.
///
/// # Errors
/// [`FileError`].
pub fn private_folder_for(path: &Path, given: Given) -> Result<(), FileError> {
    const CLOSED: u32 = 0o700;
    let made = HeldFolder::parent_of(path).and_then(|(parent, name)| {
        let folder = parent.make(name, CLOSED)?;
        folder.settle(CLOSED, given)
    });
    made.map_err(FileError::held("made", path))
}

/// Replaces the file: writes the bytes next to it, syncs, renames over it, syncs the folder.
///
/// # Errors
/// [`FileError`]; then the old file is untouched, or the new one is whole.
pub fn write(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), FileError> {
    write_for(path, bytes, readers, Given::Kept)
}

/// As [`write()`], and sets the owner before the file takes its place.
///
/// # Errors
/// [`FileError`].
pub fn write_for(path: &Path, bytes: &[u8], readers: Readers, given: Given) -> Result<(), FileError> {
    let written = HeldFolder::parent_of(path)
        .and_then(|(folder, name)| folder.write(name, bytes, readers.mode(), given));
    written.map_err(FileError::held("written", path))
}

/// Sets the owner of an existing file.
///
/// # Errors
/// [`FileError`].
pub fn give(path: &Path, given: Given) -> Result<(), FileError> {
    let gave = HeldFolder::parent_of(path).and_then(|(folder, name)| folder.give(name, given));
    gave.map_err(FileError::held("given away", path))
}

/// Reads at most `max` bytes; none when there is no file.
///
/// # Errors
/// [`FileError`], also for a larger file.
pub fn read(path: &Path, max: u64) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    let failed = FileError::of("read", path);
    let Some(file) = in_folder(path, |folder, name| folder.file(name))?.flatten() else { return Ok(None) };
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(max + 1).read_to_end(&mut bytes).map_err(&failed)?;
    if bytes.len() as u64 > max {
        return Err(failed(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "larger than it can be")));
    }
    Ok(Some(bytes))
}

/// Whether something has this name, be it a link.
///
/// # Errors
/// [`FileError`].
pub fn is_there(path: &Path) -> Result<bool, FileError> {
    Ok(in_folder(path, |folder, name| folder.has(name))?.unwrap_or(false))
}

/// Whether a file could be put there: no link and no stranger's file has its name, or the one it is first written under.
///
/// # Errors
/// [`FileError`]; nothing was changed.
pub fn may_be_written(path: &Path) -> Result<(), FileError> {
    in_folder(path, |folder, name| folder.may_be_written(name)).map(|_| ())
}

/// Removes a file; one that is not there is removed already.
///
/// # Errors
/// [`FileError`].
pub fn remove(path: &Path) -> Result<(), FileError> {
    let removed = match HeldFolder::parent_of(path) {
        Ok((folder, name)) => folder.remove(name),
        Err(error) if error.is_missing() => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(FileError::held("removed", path))
}

/// Reads from the folder of a path; none where there is no such folder.
fn in_folder<T>(
    path: &Path,
    look: impl FnOnce(&HeldFolder, &OsStr) -> Result<T, HeldError>,
) -> Result<Option<T>, FileError> {
    match HeldFolder::parent_of(path) {
        Ok((folder, name)) => look(&folder, name).map(Some).map_err(FileError::held("read", path)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(FileError::held("read", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity.json");
        assert!(read(&path, 10).unwrap().is_none());
        write(&path, b"one", Readers::Owner).unwrap();
        std::fs::write(path.with_extension("new"), b"half of an earlier attem").unwrap();
        write(&path, b"two", Readers::Owner).unwrap();
        assert_eq!(read(&path, 10).unwrap().unwrap().as_slice(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(read(&path, 2).is_err(), "larger than the bound");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(read(&path, 10).unwrap().is_none());
    }

    #[test]
    fn an_open_folder_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        private_folder(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
