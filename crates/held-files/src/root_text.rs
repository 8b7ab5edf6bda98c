//! A text that only root can have written.
//!
//! In: a path and a bound. Out: the text, or none where there is no file. Folder and file must be such that no other user
//! can change them. A file of the user who runs this is taken too: that is root, and in tests the one who tests.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::held_folder::{HeldError, HeldFolder, Refusal};

/// Why a text is not used.
#[derive(Debug, thiserror::Error)]
pub enum RootTextError {
    #[error("{} is not used: it, or a folder above it, can be changed by others than root", path.display())]
    Held {
        path: PathBuf,
        #[source]
        source: HeldError,
    },
    #[error("{path} is not used: it can be changed by others than root (`chown root: {path}; chmod go-w {path}`)", path = .0.display())]
    Owner(PathBuf),
    #[error("{} cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} has more than {max} bytes", path.display())]
    Size { path: PathBuf, max: u64 },
    #[error("{} is not text", .0.display())]
    Text(PathBuf),
}

/// Reads the text of a file of at most so many bytes.
///
/// # Errors
/// [`RootTextError`].
pub fn read(path: &Path, max: u64) -> Result<Option<String>, RootTextError> {
    const OTHERS: u32 = 0o022;
    let held = |source| RootTextError::Held { path: path.to_owned(), source };
    let failed = |source| RootTextError::Read { path: path.to_owned(), source };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(held(HeldError::of(path, Refusal::Path)));
    };
    let folder = match HeldFolder::roots_alone(parent) {
        Ok(folder) => folder,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(held(error)),
    };
    let Some(file) = folder.file(name).map_err(held)? else { return Ok(None) };
    let about = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if (about.uid() != 0 && about.uid() != own) || about.mode() & OTHERS != 0 {
        return Err(RootTextError::Owner(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > max {
        return Err(RootTextError::Size { path: path.to_owned(), max });
    }
    String::from_utf8(bytes).map(Some).map_err(|_| RootTextError::Text(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_others_could_change_is_not_read() {
        let Some(folder) = roots_folder() else { return };
        let path = folder.path().join("keys");
        assert_eq!(read(&path, 8).unwrap(), None);
        std::fs::write(&path, "ada").unwrap();
        for (mode, taken) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let text = read(&path, 8);
            assert_eq!(text.is_ok(), taken, "{mode:o}: {text:?}");
            assert!(taken || matches!(text, Err(RootTextError::Owner(_))), "{mode:o}");
        }
    }

    #[test]
    fn a_text_is_bounded_and_a_text() {
        let Some(folder) = roots_folder() else { return };
        let path = folder.path().join("keys");
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read(&path, 8).unwrap().as_deref(), Some("12345678"));
        assert!(matches!(read(&path, 7), Err(RootTextError::Size { max: 7, .. })));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(matches!(read(&path, 8), Err(RootTextError::Text(_))));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(matches!(read(&path, 1 << 20), Err(RootTextError::Held { .. })));
    }

    /// A folder below folders of root's alone; only root can make one.
    fn roots_folder() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        HeldFolder::roots_alone(folder.path()).is_ok().then_some(folder)
    }
}
