//! Bootstrap token from the environment of PID 1.
//!
//! A service manager may pass it on in our own environment instead.
//!
//! An environment is NUL-separated `NAME=value` pairs. It is read within a bound, into memory that is wiped.

use holdfast_protocol::bootstrap::{BootstrapToken, BootstrapTokenError, Mode, VARIABLE};
use holdfast_protocol::secret::Secret;

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

/// What a restore sets in place of a bootstrap token until the real one is minted, so that nothing from the archive survives.
pub const PENDING: &str = "pending";

/// The kernel keeps far less for PID 1; more than this is not an environment we set.
const ENVIRON_BYTES_MAX: usize = 256 * 1024;

/// What the environment holds.
#[derive(Clone, Debug)]
pub enum BootstrapEnv {
    Token(Box<BootstrapToken>),
    /// A guest that was restored and not handed over yet.
    Pending,
    Absent,
}

/// Why the environment's bootstrap token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapEnvError {
    /// The environment cannot be read.
    #[error("the environment of PID 1 cannot be read: run guestd as root of the guest")]
    Environ(#[source] FileError),
    /// Two different tokens: which one is right cannot be known here.
    #[error("{VARIABLE} is set twice in the environment, with two values: the agent must set it once")]
    Twice,
    #[error("{VARIABLE} is not text: the agent that made this guest must set it again")]
    NotText,
    /// Text, but no bootstrap token.
    #[error(transparent)]
    Content(#[from] BootstrapTokenError),
}

/// Whether this guest is one of its own: not the scratch guest of a restore test, and none that was not handed over yet.
pub fn is_own_guest(paths: &Paths) -> bool {
    match find(paths) {
        Ok(BootstrapEnv::Absent) => true,
        Ok(BootstrapEnv::Token(bootstrap_token)) => bootstrap_token.mode == Mode::Serve,
        Ok(BootstrapEnv::Pending) | Err(_) => false,
    }
}

/// Reads the bootstrap token: from PID 1 first, then from our own environment.
pub fn find(paths: &Paths) -> Result<BootstrapEnv, BootstrapEnvError> {
    let own = std::env::var_os(VARIABLE).map(|value| value.into_encoded_bytes());
    let read = file::read(&paths.environ(), ENVIRON_BYTES_MAX, Eyes::All);
    // Where the environment of PID 1 cannot be read, our own environment has the same value from it.
    let environ = match read {
        Err(error) if error.is_permission() && own.is_some() => None,
        other => other.map_err(BootstrapEnvError::Environ)?,
    };
    let value = match environ.as_deref().map(|bytes| pick(bytes)).transpose()?.flatten() {
        Some(value) => Some(value),
        None => own.as_deref().map(text).transpose()?,
    };
    match value {
        None => Ok(BootstrapEnv::Absent),
        Some(value) if value.expose().trim().is_empty() => Ok(BootstrapEnv::Absent),
        Some(value) if value.expose().trim() == PENDING => Ok(BootstrapEnv::Pending),
        Some(value) => Ok(BootstrapEnv::Token(Box::new(BootstrapToken::open(&value)?))),
    }
}

fn pick(environ: &[u8]) -> Result<Option<Secret>, BootstrapEnvError> {
    let mut values = environ
        .split(|byte| *byte == 0)
        .filter_map(|pair| pair.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
    let Some(first) = values.next() else { return Ok(None) };
    if values.any(|other| other != first) { Err(BootstrapEnvError::Twice) } else { text(first).map(Some) }
}

fn text(value: &[u8]) -> Result<Secret, BootstrapEnvError> {
    let text = std::str::from_utf8(value).map_err(|_| BootstrapEnvError::NotText)?;
    Ok(Secret::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_found_by_its_whole_name() {
        let value = |environ: &[u8]| pick(environ).map(|found| found.map(|v| v.expose().to_owned()));
        assert_eq!(value(b"A=1\0HOLDFAST_BOOTSTRAP=abc\0B=2\0").unwrap().unwrap(), "abc");
        assert_eq!(value(b"HOLDFAST_BOOTSTRAP=abc").unwrap().unwrap(), "abc");
        assert_eq!(value(b"HOLDFAST_BOOTSTRAP=\0").unwrap().unwrap(), "");
        assert_eq!(value(b"HOLDFAST_BOOTSTRAP=a\0HOLDFAST_BOOTSTRAP=a\0").unwrap().unwrap(), "a");
        for none in
            [b"".as_slice(), b"XHOLDFAST_BOOTSTRAP=a\0", b"HOLDFAST_BOOTSTRAP2=a\0", b"HOLDFAST_BOOTSTRAP\0"]
        {
            assert!(value(none).unwrap().is_none(), "{none:?}");
        }
        assert!(matches!(
            value(b"HOLDFAST_BOOTSTRAP=a\0HOLDFAST_BOOTSTRAP=b\0"),
            Err(BootstrapEnvError::Twice)
        ));
        assert!(matches!(value(b"HOLDFAST_BOOTSTRAP=\xff\0"), Err(BootstrapEnvError::NotText)));
    }
}
