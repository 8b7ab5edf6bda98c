//! The host's own key, to which secrets are sealed.
//!
//! Input: the state folder. Output: the key, wiped when dropped. The file is an `age` identity, so that `age -d -i`
//! opens what was sealed even without this program. Deliberately absent: replacing the key. Everything sealed to the
//! old one would be lost, so a damaged file is reported, never replaced.

use std::path::{Path, PathBuf};

use holdfast_seal::HostKey;
use zeroize::Zeroizing;

use super::atomic_file::{self, FileError, Given, Readers};

/// One line of 74 characters; comments are allowed as well.
const KEY_BYTES_MAX: u64 = 4096;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum HostKeyError {
    #[error(transparent)]
    File(#[from] FileError),
    /// The file was damaged.
    #[error(
        "{} is damaged: restore it from the box's backup; a new key could open nothing that was sealed so far",
        path.display()
    )]
    Damaged { path: PathBuf },
}

/// Where it is stored.
#[must_use]
pub fn path_in(state: &Path) -> PathBuf {
    state.join("host.agekey")
}

/// Reads the key; none where none was made yet.
///
/// # Errors
/// [`HostKeyError`].
pub fn read(state: &Path) -> Result<Option<HostKey>, HostKeyError> {
    let path = path_in(state);
    let Some(bytes) = atomic_file::read(&path, KEY_BYTES_MAX)? else { return Ok(None) };
    let line = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')));
    line.and_then(|line| HostKey::parse(line).ok()).map(Some).ok_or(HostKeyError::Damaged { path })
}

/// Reads the key, or makes it when there is none yet.
///
/// # Errors
/// [`HostKeyError`]. A damaged file is never taken for none.
pub fn open(state: &Path) -> Result<HostKey, HostKeyError> {
    open_for(state, Given::Kept)
}

/// The same, and a key that is made is given to the agent's user.
///
/// # Errors
/// [`HostKeyError`].
pub fn open_for(state: &Path, given: Given) -> Result<HostKey, HostKeyError> {
    if let Some(key) = read(state)? {
        return Ok(key);
    }
    let key = HostKey::generate();
    let mut line = Zeroizing::new(Vec::with_capacity(128));
    line.extend_from_slice(key.to_text().expose().as_bytes());
    line.push(b'\n');
    atomic_file::write_for(&path_in(state), &line, Readers::Owner, given)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_for_the_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        let first = open(dir.path()).unwrap().recipient().unwrap();
        assert_eq!(open(dir.path()).unwrap().recipient().unwrap(), first);
        let mode = std::fs::metadata(path_in(dir.path())).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(open(other.path()).unwrap().recipient().unwrap(), first);
    }

    #[test]
    fn a_damaged_key_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "\n", "AGE-SECRET-KEY-1", "\u{0}"] {
            std::fs::write(path_in(dir.path()), bad).unwrap();
            assert!(matches!(open(dir.path()), Err(HostKeyError::Damaged { .. })), "{bad:?}");
            assert_eq!(std::fs::read(path_in(dir.path())).unwrap(), bad.as_bytes());
        }
    }
}
