//! A small file that is there whole or not at all, and still there after a power cut.
//!
//! What comes in: a path and bytes. What goes out: nothing, once file and folder are on the disk. Deliberately absent:
//! appending, and sizes beyond memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Why a file could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be {verb}: look at the disk and at who owns the folder", path.display())]
pub struct FileError {
    verb: &'static str,
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

impl FileError {
    fn of<'a>(verb: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> Self + 'a {
        move |source| Self { verb, path: path.to_owned(), source }
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
}

impl Readers {
    const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o640,
            Self::All => 0o644,
        }
    }
}

/// Makes a folder for the agent's user alone. One that is there already is closed to others.
///
/// # Errors
/// [`FileError`].
pub fn private_folder(path: &Path) -> Result<(), FileError> {
    let failed = FileError::of("made", path);
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_folder(path.parent().unwrap_or(path)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Puts the bytes in the file's place: written beside it, synced, renamed over it, folder synced.
///
/// # Errors
/// [`FileError`]; then the old file is untouched, or the new one is whole.
pub fn write(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), FileError> {
    let failed = FileError::of("written", path);
    let beside = path.with_extension("new");
    // A leftover of an attempt that died is ours to remove; `create_new` then follows no link that somebody put there.
    match std::fs::remove_file(&beside) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(readers.mode())
        .open(&beside)
        .map_err(&failed)?;
    file.write_all(bytes).map_err(&failed)?;
    file.sync_all().map_err(&failed)?;
    std::fs::rename(&beside, path).map_err(&failed)?;
    sync_folder(path.parent().unwrap_or(path))
}

/// Reads at most `max` bytes; none when there is no file.
///
/// # Errors
/// [`FileError`], also for a larger file.
pub fn read(path: &Path, max: u64) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    let failed = FileError::of("read", path);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(max + 1).read_to_end(&mut bytes).map_err(&failed)?;
    if bytes.len() as u64 > max {
        return Err(failed(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "larger than it can be")));
    }
    Ok(Some(bytes))
}

/// Removes a file; one that is not there is removed already.
///
/// # Errors
/// [`FileError`].
pub fn remove(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_file(path) {
        Ok(()) => sync_folder(path.parent().unwrap_or(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FileError::of("removed", path)(error)),
    }
}

fn sync_folder(path: &Path) -> Result<(), FileError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(FileError::of("synced", path))
}

#[cfg(test)]
mod tests {
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
