//! The file of a sealed token.
//!
//! Input: a path, and for writing a token and the host's key. Output: the sealed text, of the right form. Deliberately
//! absent: opening it (`execute/entry`), and whether others may read the file; it says nothing to them.

use std::path::{Path, PathBuf};

use holdfast_protocol::storage::Sealed;
use holdfast_seal::token::Token;
use holdfast_seal::{HostKey, SealError};

use super::atomic_file::{self, FileError, Given, Readers};

/// A sealed text and its line's end.
const BYTES_MAX: u64 = 4200;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum SealedTokenError {
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// No such file, or no sealed token in it.
    #[error("{} holds no sealed token: run `agentd setup` again", path.display())]
    Form { path: PathBuf },
}

/// Reads it.
///
/// # Errors
/// [`SealedTokenError`].
pub fn read(path: &Path) -> Result<Sealed, SealedTokenError> {
    let form = || SealedTokenError::Form { path: path.to_owned() };
    let bytes = atomic_file::read(path, BYTES_MAX)?.ok_or_else(form)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| form())?;
    Sealed::try_from(text.trim().to_owned()).map_err(|_| form())
}

/// Seals a token to the host's key, and stores it for the given owner.
///
/// # Errors
/// [`SealedTokenError`].
pub fn write(path: &Path, token: &Token, key: &HostKey, given: Given) -> Result<(), SealedTokenError> {
    let recipient = key.recipient().map_err(|_| SealedTokenError::Form { path: path.to_owned() })?;
    let sealed = token.seal(&recipient)?;
    let line = format!("{}\n", sealed.as_str());
    Ok(atomic_file::write_for(path, line.as_bytes(), Readers::Owner, given)?)
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::secret::Secret;

    use super::*;

    #[test]
    fn what_lies_there_says_nothing_without_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("proxmox-storage.sealed");
        assert!(matches!(read(&path), Err(SealedTokenError::Form { .. })));
        let key = HostKey::generate();
        let secret = "11111111-2222-3333-4444-555555555555";
        let token = Token::new("holdfast@pve!storage".to_owned(), Secret::new(secret.to_owned())).unwrap();
        write(&path, &token, &key, Given::Kept).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("1111") && !text.contains("holdfast"));
        assert_eq!(Token::open(&read(&path).unwrap(), &key).unwrap().secret().expose(), secret);
        std::fs::write(&path, "holdfast@pve!storage=1111\n").unwrap();
        assert!(matches!(read(&path), Err(SealedTokenError::Form { .. })));
    }
}
