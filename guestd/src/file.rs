//! Small files: bounded reads, atomic and private writes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use zeroize::Zeroizing;

/// What could not be done with which file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("cannot {verb} {}", path.display())]
    Io {
        verb: &'static str,
        /// On which file.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Longer than it may be.
    #[error("{} is longer than {max} bytes", path.display())]
    TooLong { path: PathBuf, max: usize },
    /// A device, a pipe, a directory.
    #[error("{} is not a plain file: remove it", path.display())]
    NotAFile { path: PathBuf },
    /// Readable to others than its owner.
    #[error("{} has mode {mode:04o} and so may have been read by others: have the agent issue a new bootstrap token, or set mode 0600 if no other user was ever on this guest", path.display())]
    OpenToOthers { path: PathBuf, mode: u32 },
}

impl FileError {
    /// Whether the caller lacks the right.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

pub fn failed(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError::Io { verb, path: path.to_owned(), source }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    /// Its owner alone.
    Owner,
    All,
}

impl Eyes {
    const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::All => 0o644,
        }
    }
}

/// Reads a file of at most `max` bytes. None when there is none. With [`Eyes::Owner`] one that others may read is
/// refused: what it holds is no secret any more.
pub fn read(path: &Path, max: usize, eyes: Eyes) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    let about = file.metadata().map_err(failed("look at", path))?;
    if !about.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    let mode = about.mode() & 0o7777;
    if eyes == Eyes::Owner && mode & 0o077 != 0 {
        return Err(FileError::OpenToOthers { path: path.to_owned(), mode });
    }
    // Room from the start, so that growing leaves no copies of a secret behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(max.saturating_add(1)));
    let bound = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(bound).read_to_end(&mut bytes).map_err(failed("read", path))?;
    if bytes.len() > max {
        return Err(FileError::TooLong { path: path.to_owned(), max });
    }
    Ok(Some(bytes))
}

/// Writes a file that must not exist yet.
pub fn create(path: &Path, bytes: &[u8], eyes: Eyes) -> Result<(), FileError> {
    let temporary = stage(path, bytes, eyes)?;
    renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE)
        .map_err(|errno| failed("put in place", path)(errno.into()))?;
    sync_folder(path)
}

/// Writes a file, new or over an existing one.
pub fn replace(path: &Path, bytes: &[u8], eyes: Eyes) -> Result<(), FileError> {
    let temporary = stage(path, bytes, eyes)?;
    fs::rename(&temporary, path).map_err(failed("put in place", path))?;
    sync_folder(path)
}

/// Writes a file over the existing one, which is kept as `old` in the same folder. `path` names a file at every moment.
pub fn replace_keeping(path: &Path, old: &Path, bytes: &[u8], eyes: Eyes) -> Result<(), FileError> {
    remove(old)?;
    match fs::hard_link(path, old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("keep", path)(error)),
        _ => replace(path, bytes, eyes),
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes a file, if it is there, so that it is gone after a crash, too.
pub fn remove_durably(path: &Path) -> Result<(), FileError> {
    remove(path)?;
    sync_folder(path)
}

/// Gives a file another name.
pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).map_err(failed("put aside", from))?;
    sync_folder(to)
}

/// Makes a second name for a program's file, or a copy where `to` is on another file system.
pub fn lay_by(program: &Path, to: &Path) -> Result<(), FileError> {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = to.with_file_name(name);
    remove(&temporary)?;
    if fs::hard_link(program, &temporary).is_err() {
        fs::copy(program, &temporary).map_err(failed("copy our program to", &temporary))?;
        let copy = File::open(&temporary).map_err(failed("open", &temporary))?;
        copy.sync_all().map_err(failed("sync", &temporary))?;
    }
    fs::rename(&temporary, to).map_err(failed("put in place", to))?;
    sync_folder(to)
}

/// Makes a folder and those above it.
pub fn make_folder(path: &Path, eyes: Eyes) -> Result<(), FileError> {
    let mode = if eyes == Eyes::Owner { 0o700 } else { 0o755 };
    DirBuilder::new().recursive(true).mode(mode).create(path).map_err(failed("make", path))
}

fn stage(path: &Path, bytes: &[u8], eyes: Eyes) -> Result<PathBuf, FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    // Left over from a crash; because we hold the lock, no other process is writing it now.
    remove(&temporary)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(eyes.mode())
        .open(&temporary)
        .map_err(failed("make", &temporary))?;
    file.write_all(bytes).map_err(failed("write", &temporary))?;
    file.sync_all().map_err(failed("sync", &temporary))?;
    Ok(temporary)
}

/// Syncs the folder of a file.
pub fn sync_folder(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn text(path: &Path) -> Option<String> {
        read(path, 64, Eyes::Owner).unwrap().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn create_never_clobbers_and_replace_keeps_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("x"), folder.path().join("x.old"));
        assert_eq!(text(&path), None);
        create(&path, b"one", Eyes::Owner).unwrap();
        assert!(create(&path, b"two", Eyes::Owner).is_err());
        assert_eq!(text(&path).unwrap(), "one");
        replace_keeping(&path, &old, b"two", Eyes::Owner).unwrap();
        replace_keeping(&path, &old, b"three", Eyes::Owner).unwrap();
        assert_eq!((text(&path).unwrap().as_str(), text(&old).unwrap().as_str()), ("three", "two"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_temporary_file_of_a_crash_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(folder.path().join("x.new"), b"half").unwrap();
        create(&path, b"whole", Eyes::Owner).unwrap();
        assert_eq!(text(&path).unwrap(), "whole");
    }

    #[test]
    fn long_open_linked_and_odd_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, [b'x'; 65]).unwrap();
        assert!(matches!(read(&path, 64, Eyes::All), Err(FileError::TooLong { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read(&path, 99, Eyes::Owner), Err(FileError::OpenToOthers { mode: 0o640, .. })));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read(&link, 99, Eyes::All), Err(FileError::Io { .. })));
        assert!(matches!(read(folder.path(), 99, Eyes::All), Err(FileError::NotAFile { .. })));
    }
}
