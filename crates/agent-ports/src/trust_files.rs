//! The operators file and policy on disk.
//!
//! Input: their paths. Output: their texts, or nothing where there is no operators file. A file that users other than
//! root may write is refused: anyone who can write it can sign for anything.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::store::roster::RosterTexts;

/// Larger than either file may be; the parsers report an oversized text with a better message.
const BYTES_MAX: u64 = 128 * 1024;

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum TrustFileError {
    /// It cannot be read.
    #[error("{} cannot be read: give it to root, readable by the agent (0644)", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Others may write it.
    #[error("{} may be written by others (mode {mode:04o}): `chmod 0644` it, and look who changed it", path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} belongs to user {uid}: `chown root:root` it, and look who laid it down", path.display())]
    Owner {
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Not a file.
    #[error("{} is no ordinary file", path.display())]
    Kind { path: PathBuf },
}

fn read(path: &Path) -> Result<Option<String>, TrustFileError> {
    let failed = |source| TrustFileError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(TrustFileError::Kind { path: path.to_owned() });
    }
    if about.mode() & 0o022 != 0 {
        return Err(TrustFileError::Open { path: path.to_owned(), mode: about.mode() & 0o7777 });
    }
    // A developer who runs the agent under their own user, without a host for it, installs the files as that user.
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        return Err(TrustFileError::Owner { path: path.to_owned(), uid: about.uid() });
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// Reads both. Without an operators file there are no operators, whatever the policy says.
///
/// # Errors
/// [`TrustFileError`].
pub fn laid_down(operators: &Path, policy: &Path) -> Result<Option<RosterTexts>, TrustFileError> {
    let Some(operators) = read(operators)? else { return Ok(None) };
    Ok(Some(RosterTexts { operators, policy: read(policy)?.unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_others_may_write_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (operators, policy) = (folder.path().join("operators"), folder.path().join("policy.toml"));
        assert_eq!(laid_down(&operators, &policy).unwrap(), None);
        std::fs::write(&operators, "alice …").unwrap();
        for (mode, fine) in [(0o644, true), (0o600, true), (0o664, false), (0o646, false), (0o666, false)] {
            std::fs::set_permissions(&operators, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(laid_down(&operators, &policy).is_ok(), fine, "{mode:o}");
        }
        std::fs::set_permissions(&operators, std::fs::Permissions::from_mode(0o644)).unwrap();
        let texts = laid_down(&operators, &policy).unwrap().unwrap();
        assert_eq!((texts.operators.as_str(), texts.policy.as_str()), ("alice …", ""));
        assert!(matches!(laid_down(folder.path(), &policy), Err(TrustFileError::Kind { .. })));
    }
}
