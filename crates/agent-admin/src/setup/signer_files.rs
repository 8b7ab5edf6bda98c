//! The files of who may sign, as the person names them.
//!
//! Input: paths. Output: their texts with the names in them, read as the agent and the gate will read them, so that a
//! file which they would refuse is never installed. Deliberately absent: installing them (`trust`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use holdfast_trust::operators::OperatorsError;
use holdfast_trust::policy::PolicyError;
use holdfast_trust::signature::Namespace;
use holdfast_trust::{Operators, Policy};

/// Larger than any of them may be; their parsers report that.
const BYTES_MAX: u64 = 128 * 1024;

/// Who may sign for this host from its first day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The operators file.
    pub operators: String,
    /// The policy; without one the built-in rules hold.
    pub policy: Option<String>,
    /// The names in the operators file.
    pub names: Vec<String>,
}

/// Who may sign releases for this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseKeysFile {
    pub text: String,
    /// The names in it.
    pub names: Vec<String>,
}

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum SignerFilesError {
    /// A file of operators or a policy cannot be read.
    #[error("{} cannot be read: name the files by --operators, --policy and --release-keys", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is no operators file.
    #[error("{} is no operators file that the agent would take: correct it", path.display())]
    Operators {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: OperatorsError,
    },
    /// It is no file of release keys.
    #[error("{} is no file of release keys that the gate would take: correct it", path.display())]
    ReleaseKeys {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: OperatorsError,
    },
    /// It names keys, and none of them may sign releases.
    #[error("{} has no key for releases: no line allows the namespace holdfast-release", path.display())]
    NoReleaseKey {
        /// The file.
        path: PathBuf,
    },
    /// It is no policy.
    #[error("{} is no policy that the agent would take: correct it", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: PolicyError,
    },
}

/// Reads the operators file and the policy.
///
/// # Errors
/// [`SignerFilesError`], with the file that would be refused.
pub(super) fn trust(
    operators: Option<&Path>,
    policy: Option<&Path>,
) -> Result<Option<Trust>, SignerFilesError> {
    let Some(path) = operators else { return Ok(None) };
    let text = read(path)?;
    let known = Operators::parse(&text)
        .map_err(|source| SignerFilesError::Operators { path: path.to_owned(), source })?;
    let policy = match policy {
        None => None,
        Some(path) => {
            let text = read(path)?;
            Policy::parse(&text, &known)
                .map_err(|source| SignerFilesError::Policy { path: path.to_owned(), source })?;
            Some(text)
        }
    };
    Ok(Some(Trust { operators: text, policy, names: names(&known) }))
}

/// Reads the release keys.
///
/// # Errors
/// [`SignerFilesError`], also where none of the keys may sign releases now.
pub(super) fn release_keys(path: Option<&Path>) -> Result<Option<ReleaseKeysFile>, SignerFilesError> {
    let Some(path) = path else { return Ok(None) };
    let text = read(path)?;
    let known = Operators::parse(&text)
        .map_err(|source| SignerFilesError::ReleaseKeys { path: path.to_owned(), source })?;
    if known.able(Namespace::Release, crate::now()) == 0 {
        return Err(SignerFilesError::NoReleaseKey { path: path.to_owned() });
    }
    Ok(Some(ReleaseKeysFile { text, names: names(&known) }))
}

fn names(known: &Operators) -> Vec<String> {
    known.holders().map(|(name, _)| name.to_string()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn read(path: &Path) -> Result<String, SignerFilesError> {
    let failed = |source| SignerFilesError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    File::open(path).map_err(failed)?.take(BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFgoQl6uW4WhcmUVOGCb0ZzFrEiFOI9s2PyUdPD5WWU0";

    #[test]
    fn release_keys_are_read_as_the_gate_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        assert_eq!(release_keys(None).unwrap(), None);
        for (text, taken) in [
            (format!("ada namespaces=\"holdfast-release\" {KEY}\n"), true),
            (format!("ada {KEY}\n"), true),
            (format!("ada namespaces=\"holdfast-job\" {KEY}\n"), false),
            (format!("ada valid-before=\"20260101Z\" {KEY}\n"), false),
            (format!("* {KEY}\n"), false),
            (String::new(), false),
        ] {
            std::fs::write(&path, &text).unwrap();
            let read = release_keys(Some(&path));
            assert_eq!(read.is_ok(), taken, "{text}: {read:?}");
        }
    }
}
