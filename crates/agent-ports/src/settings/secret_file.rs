//! Reads a file that holds one secret and nothing else.
//!
//! Input: a path. Output: the secret, wiped when dropped. A file that others can read is refused, since its secret may
//! already be known.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_protocol::secret::Secret;
use zeroize::Zeroizing;

use crate::pve::ApiToken;
use crate::pve::tokens::RENEWAL_SUFFIX;

/// A secret is at most 4 KiB.
const SECRET_BYTES_MAX: u64 = 4 * 1024;

/// Why a file gives no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It cannot be read.
    #[error("the secret in {} cannot be read: it must be a file that the agent's user may read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Every user of the host can read or change it.
    #[error(
        "{} is open to every user (mode {mode:o}): make a new secret, since this one may be known, and `chmod 0600` the file",
        path.display()
    )]
    Open {
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Empty, more than one line, or too long.
    #[error("{} must hold one line with the secret and nothing else", path.display())]
    Form { path: PathBuf },
}

/// Reads the secret.
///
/// # Errors
/// [`SecretFileError`].
pub fn read(path: &Path) -> Result<Secret, SecretFileError> {
    let failed = |source| SecretFileError::Read { path: path.to_owned(), source };
    read_from(std::fs::File::open(path).map_err(failed)?, path)
}

/// Reads the secret from an open file; the path is only for messages.
///
/// # Errors
/// [`SecretFileError`].
pub fn read_from(file: std::fs::File, path: &Path) -> Result<Secret, SecretFileError> {
    let failed = |source| SecretFileError::Read { path: path.to_owned(), source };
    // Read from the open file, so that it cannot be exchanged between check and use.
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
    if mode & 0o007 != 0 {
        return Err(SecretFileError::Open { path: path.to_owned(), mode });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    let line = text.trim();
    if line.is_empty() || line.contains(char::is_whitespace) || text.len() as u64 > SECRET_BYTES_MAX {
        return Err(SecretFileError::Form { path: path.to_owned() });
    }
    Ok(Secret::new(line.to_owned()))
}

/// The token in a file's line: the secret of the token that the settings name, or `ID=SECRET` of the one that stands in
/// while that is made anew.
///
/// # Errors
/// [`SecretFileError::Form`] for any other token.
pub fn token(id: &str, line: &Secret, path: &Path) -> Result<ApiToken, SecretFileError> {
    let Some((named, secret)) = line.expose().split_once('=') else {
        return Ok(ApiToken { id: id.to_owned(), secret: line.clone() });
    };
    if named != format!("{id}{RENEWAL_SUFFIX}") || secret.is_empty() {
        return Err(SecretFileError::Form { path: path.to_owned() });
    }
    Ok(ApiToken { id: named.to_owned(), secret: Secret::new(secret.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_name_the_token_that_stands_in_and_no_other() {
        let of = |line: &str| token("hf@pve!observe", &Secret::new(line.to_owned()), Path::new("f"));
        assert_eq!(of("abc-123").unwrap().id, "hf@pve!observe");
        let renewed = of("hf@pve!observe-renewal=abc-123").unwrap();
        assert_eq!((renewed.id.as_str(), renewed.secret.expose()), ("hf@pve!observe-renewal", "abc-123"));
        for bad in
            ["hf@pve!operate-renewal=abc", "root@pam!x=abc", "hf@pve!observe=abc", "hf@pve!observe-renewal="]
        {
            assert!(matches!(of(bad), Err(SecretFileError::Form { .. })), "{bad}");
        }
    }

    fn file(content: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn one_line_is_read_and_anything_else_refused() {
        let (_keep, path) = file("abc-123\n", 0o640);
        assert_eq!(read(&path).unwrap().expose(), "abc-123");
        for bad in ["", "\n", "a b", "a\nb\n", &"x".repeat(5000)] {
            let (_keep, path) = file(bad, 0o600);
            assert!(matches!(read(&path), Err(SecretFileError::Form { .. })), "{:?}", bad.len());
        }
    }

    #[test]
    fn a_secret_that_everybody_can_read_is_refused() {
        let (_keep, path) = file("abc", 0o604);
        assert!(matches!(read(&path), Err(SecretFileError::Open { mode: 0o604, .. })));
    }
}
