//! Signatures by stock `ssh-keygen -Y sign`.
//!
//! The bytes go in by standard input and the signature comes out by standard output, so no file is left in a folder.
//! `ssh-keygen` itself prompts for a passphrase or a touch at the terminal. The signature is checked as a host would
//! check it, before it is written anywhere.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdfast_trust::OperatorKey;
use holdfast_trust::signature::{Namespace, SignatureError, check};

/// Why there is no signature.
#[derive(Debug, thiserror::Error)]
pub enum KeygenError {
    /// It cannot be started.
    #[error("ssh-keygen cannot be run: install OpenSSH's client (8.2 or later)")]
    Start(#[source] io::Error),
    /// It could not be spoken to.
    #[error("ssh-keygen closed its standard input")]
    Verbosity(#[source] io::Error),
    /// It refused. Its own message is printed above.
    #[error("ssh-keygen did not sign with {}: see its message above", key.display())]
    Refused { key: PathBuf },
    /// What came back is not text.
    #[error("the output of ssh-keygen is not a signature")]
    Text,
    /// A host would not take it.
    #[error("no host would take the signature")]
    Worthless(#[source] SignatureError),
}

/// A signature and whose key made it.
pub struct Signature {
    /// As `ssh-keygen` wrote it.
    pub armoured: String,
    pub key: OperatorKey,
}

/// Signs these bytes. `key` is a private key, or a public one whose private half an agent holds.
pub fn sign(bytes: &[u8], key: &Path, purpose: Namespace) -> Result<Signature, KeygenError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "stock OpenSSH signs; this program never sees a private key"
    )]
    let mut command = Command::new("ssh-keygen");
    command.arg("-Y").arg("sign").arg("-q").arg("-n").arg(purpose.as_str()).arg("-f").arg(key);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(KeygenError::Start)?;
    // A payload is shorter than a pipe holds, so this never waits for the signature to be read.
    let told = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(bytes));
    let output = child.wait_with_output().map_err(KeygenError::Verbosity)?;
    if !output.status.success() {
        return Err(KeygenError::Refused { key: key.to_owned() });
    }
    told.map_err(KeygenError::Verbosity)?;
    let armoured = String::from_utf8(output.stdout).map_err(|_| KeygenError::Text)?;
    let key = check(bytes, &armoured, purpose).map_err(KeygenError::Worthless)?;
    Ok(Signature { armoured, key })
}
