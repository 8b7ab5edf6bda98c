//! Files of the hub's folder in a backup, and their return.
//!
//! In: the folder of a hub, or the files of a backup. Out: all plain files in it, but for the database, the lock and what is
//! only there for a moment; a folder of the next hub, filled at once. Files of releases are not in it: they are large, and can
//! be uploaded again. Deliberately absent: which file is what; a file of a later version is carried too.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use held_files::atomic_file::{self, FileError, Readers};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A key, a certificate or the settings; larger files are not the hub's.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// As many files a hub's folder has at most.
pub(super) const FILES_MAX: usize = 256;

/// Where a restore prepares the folder's files.
const STAGE: &str = "restore.part";

/// What a restored hub is recognised by: it comes last, so that a folder that has it has everything.
const LAST: &str = "ca.pem";

/// Kept as it is where it is there already: it says where the rows are.
const SETTINGS: &str = "hub.toml";

/// A file of the folder. Most are secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderFile {
    pub name: String,
    readers: FileReaders,
    base64: Zeroizing<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileReaders {
    Owner,
    All,
}

impl fmt::Debug for FolderFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FolderFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why the folder's files are not carried.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{} cannot be read: the hub's user must be able to", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is a link or no plain file, and the backup would not have it: replace it by a file", .0.display())]
    NotPlain(PathBuf),
    #[error("{} is larger than {FILE_BYTES_MAX} bytes, so it is no file of the hub: move it out of the folder", .0.display())]
    TooLarge(PathBuf),
    #[error("{} has more than {FILES_MAX} files: move what is not the hub's out of it", .0.display())]
    TooMany(PathBuf),
    #[error("{} is there already, and nothing was changed: give an empty folder", .0.display())]
    Exists(PathBuf),
    #[error("the backup has a file named {0:?}, which is no file of a hub's folder, and nothing was changed")]
    Name(String),
    #[error("file {name} of the backup is damaged, and nothing was changed")]
    Damaged {
        name: String,
        #[source]
        source: base64::DecodeError,
    },
    #[error(transparent)]
    Write(#[from] FileError),
    #[error("{} cannot be put in its place", path.display())]
    Place {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl FolderFile {
    fn new(name: String, mode: u32, bytes: &[u8]) -> Self {
        let readers = if mode & 0o004 == 0 { FileReaders::Owner } else { FileReaders::All };
        Self { name, readers, base64: Zeroizing::new(STANDARD.encode(bytes)) }
    }

    /// # Errors
    /// [`FolderError::Damaged`].
    pub fn bytes(&self) -> Result<Zeroizing<Vec<u8>>, FolderError> {
        let decoded = STANDARD.decode(self.base64.as_bytes());
        decoded.map(Zeroizing::new).map_err(|source| FolderError::Damaged { name: self.name.clone(), source })
    }
}

/// Whether a file of this name goes with a backup.
#[must_use]
pub fn is_of_backup(name: &str) -> bool {
    let is_database = name == "hub.db" || name.starts_with("hub.db-") || name.starts_with("hub.db.");
    let is_momentary = name == "lock" || name.ends_with(".new") || name.ends_with(".part");
    !is_database && !is_momentary
}

/// All files of the folder that go with a backup, by name.
///
/// # Errors
/// [`FolderError`].
pub fn read_folder(folder: &Path) -> Result<Vec<FolderFile>, FolderError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FolderError::Read { path, source }
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let about = fs::symlink_metadata(&path).map_err(failed(&path))?;
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(FolderError::NotPlain(path));
        };
        if about.is_dir() || !is_of_backup(name) {
            continue;
        }
        if !about.is_file() {
            return Err(FolderError::NotPlain(path));
        }
        if about.len() > FILE_BYTES_MAX {
            return Err(FolderError::TooLarge(path));
        }
        if files.len() == FILES_MAX {
            return Err(FolderError::TooMany(folder.to_owned()));
        }
        let bytes = Zeroizing::new(fs::read(&path).map_err(failed(&path))?);
        files.push(FolderFile::new(name.to_owned(), about.permissions().mode(), &bytes));
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Files of a backup next to their place, gone again when it is dropped.
pub struct StagedFolder {
    folder: PathBuf,
    stage: PathBuf,
    names: Vec<String>,
}

impl StagedFolder {
    /// Writes the files below a folder that has none of them.
    ///
    /// # Errors
    /// [`FolderError`]; the folder is as before.
    pub fn write(folder: &Path, files: &[FolderFile]) -> Result<Self, FolderError> {
        let stage = folder.join(STAGE);
        let mut staged = Self { folder: folder.to_owned(), stage, names: Vec::new() };
        for file in files {
            let place = folder.join(&file.name);
            if file.name.contains('/') || file.name.starts_with('.') || !is_of_backup(&file.name) {
                return Err(FolderError::Name(file.name.clone()));
            }
            if file.name != SETTINGS && fs::symlink_metadata(&place).is_ok() {
                return Err(FolderError::Exists(place));
            }
        }
        // One that was killed may have left its own.
        drop(fs::remove_dir_all(&staged.stage));
        atomic_file::private_folder(&staged.stage)?;
        for file in files {
            if file.name == SETTINGS && fs::symlink_metadata(folder.join(SETTINGS)).is_ok() {
                continue;
            }
            let readers = match file.readers {
                FileReaders::Owner => Readers::Owner,
                FileReaders::All => Readers::All,
            };
            atomic_file::write(&staged.path(&file.name), &file.bytes()?, readers)?;
            staged.names.push(file.name.clone());
        }
        Ok(staged)
    }

    /// Where a file is until it is in its place.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.stage.join(name)
    }

    /// The settings that are in force there.
    #[must_use]
    pub fn settings(&self) -> Option<PathBuf> {
        [self.folder.join(SETTINGS), self.path(SETTINGS)].into_iter().find(|path| path.is_file())
    }

    /// Puts everything in its place: the database before the keys, so that a restore that ends in between leaves a folder
    /// that a hub refuses, and no hub without rows.
    ///
    /// # Errors
    /// [`FolderError::Place`].
    pub fn place(mut self) -> Result<(), FolderError> {
        self.names.sort_by_key(|name| name == LAST);
        let database = Some("hub.db".to_owned()).filter(|name| self.path(name).is_file());
        for name in database.iter().chain(&self.names) {
            let path = self.folder.join(name);
            let moved = fs::rename(self.path(name), &path);
            moved.map_err(|source| FolderError::Place { path, source })?;
        }
        let synced = fs::File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| FolderError::Place { path: self.folder.clone(), source })
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        // What cannot be removed is in the next one's way, which says so.
        drop(fs::remove_dir_all(&self.stage));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_returns_with_its_modes_and_without_what_is_momentary() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, mode) in [("ca.key", 0o600), ("ca.pem", 0o644), ("hub.db", 0o600), ("lock", 0o644)] {
            fs::write(from.path().join(name), name).unwrap();
            fs::set_permissions(from.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(from.path().join("artifacts")).unwrap();
        let files = read_folder(from.path()).unwrap();
        assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["ca.key", "ca.pem"]);
        assert!(!format!("{files:?}").contains(&STANDARD.encode("ca.key")));

        let dropped = StagedFolder::write(to.path(), &files).unwrap();
        drop(dropped);
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0, "nothing is left of one that did not end");
        StagedFolder::write(to.path(), &files).unwrap().place().unwrap();
        for (name, mode) in [("ca.key", 0o600), ("ca.pem", 0o644)] {
            let path = to.path().join(name);
            assert_eq!(fs::read_to_string(&path).unwrap(), name);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{name}");
        }
        let again = StagedFolder::write(to.path(), &files).err().unwrap();
        assert!(matches!(again, FolderError::Exists(_)), "{again}");
    }

    #[test]
    fn a_backup_writes_no_file_elsewhere() {
        let to = tempfile::tempdir().unwrap();
        for name in ["../x", "/etc/x", ".", "..", "hub.db", "lock", "a/b", "x.part"] {
            let file = FolderFile::new(name.to_owned(), 0o600, b"x");
            let refused = StagedFolder::write(&to.path().join("hub"), &[file]).err().unwrap();
            assert!(matches!(refused, FolderError::Name(_)), "{name}: {refused}");
        }
        std::os::unix::fs::symlink("/etc/passwd", to.path().join("seed.key")).unwrap();
        assert!(matches!(read_folder(to.path()), Err(FolderError::NotPlain(_))));
    }
}
