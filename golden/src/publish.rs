//! Atomic publication of finished files, synced before they are named.
//!
//! In: a folder, a name, the bytes. Out: the file, readable for all. One that has that name already is left as it is,
//! unless the caller builds for itself and says so.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// How an existing file with the name is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// It stays, and the build is refused: guests may have been made from it.
    Keep,
    /// It is replaced. For builds in a folder of the builder's own.
    Replace,
}

/// A file without a name of its own, in the folder where it will have one.
pub fn unfinished(folder: &Path) -> Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".golden-")
        .suffix(".unfinished")
        .tempfile_in(folder)
        .with_context(|| format!("cannot write into {}", folder.display()))
}

/// Gives it its name.
pub fn publish(file: NamedTempFile, name: &str, existing: OnConflict) -> Result<PathBuf> {
    let folder = file.path().parent().context("a file is in a folder")?.to_owned();
    let path = folder.join(name);
    let failed = || format!("cannot write {}", path.display());
    file.as_file().set_permissions(Permissions::from_mode(0o644)).with_context(failed)?;
    file.as_file().sync_all().with_context(failed)?;
    let named = match existing {
        OnConflict::Keep => file.persist_noclobber(&path).map(drop),
        OnConflict::Replace => file.persist(&path).map(drop),
    };
    match named {
        Ok(()) => {}
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
            bail!("{} exists already and stays as it is: choose another version", path.display())
        }
        Err(error) => return Err(error.error).with_context(failed),
    }
    // The name itself must outlive a power cut.
    File::open(&folder).and_then(|folder| folder.sync_all()).with_context(failed)?;
    Ok(path)
}

/// Writes a text and gives it its name.
pub fn text(folder: &Path, name: &str, text: &str, existing: OnConflict) -> Result<PathBuf> {
    let mut file = unfinished(folder)?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {name}"))?;
    publish(file, name, existing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = text(folder.path(), "a", "one", OnConflict::Keep).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        let refused = text(folder.path(), "a", "two", OnConflict::Keep).unwrap_err();
        assert!(refused.to_string().contains("stays as it is"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        text(folder.path(), "a", "two", OnConflict::Replace).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing unfinished stays");
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("x"), folder.path().join("a")).unwrap();
        assert!(text(folder.path(), "a", "one", OnConflict::Keep).is_err());
        assert!(!elsewhere.path().join("x").exists());
    }
}
