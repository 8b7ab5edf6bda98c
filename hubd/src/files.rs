//! Folders and small files that last once they are made.
//!
//! A file is written beside its place, synced, renamed over it, and its folder is synced. A folder is synced into the one
//! above it. Without the last step a loss of power takes the name away, and with it everything in a new folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The hub's user.
    Owner,
    All,
}

impl Readers {
    const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::All => 0o644,
        }
    }
}

/// Writes a file, in the place of one that is there.
///
/// # Errors
/// What the system says; then the old file is untouched, or the new one is whole.
pub fn write(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let temporary = path.with_added_extension("new");
    // A leftover of a crash may have any mode; it is never written into.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(readers.mode()).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_parent(path)
}

/// Makes a folder for the hub's user alone, and those above it, where they are missing.
///
/// # Errors
/// What the system says.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_parent(path),
    }
}

/// Brings a name onto the disk.
///
/// # Errors
/// What the system says.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        make_folder(&inner).unwrap();
        make_folder(&inner).unwrap();
        let path = inner.join("seed.key");
        fs::write(path.with_added_extension("new"), "half of it").unwrap();
        for (text, readers, mode) in [("one", Readers::Owner, 0o600), ("two", Readers::All, 0o644)] {
            write(&path, text.as_bytes(), readers).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
        let names: Vec<_> = fs::read_dir(&inner).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["seed.key"]);
    }
}
