//! Bootstrap file `bootstrap.json`: agent endpoint, pin and token.

use std::path::PathBuf;

use holdfast_protocol::bootstrap::{BOOTSTRAP_BYTES_MAX, Bootstrap};
use holdfast_protocol::json::{self, JsonError};
use zeroize::Zeroizing;

use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;

/// Why the file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapFileError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its content is malformed. It is left unchanged for a person to examine.
    #[error("{} is malformed and was not changed: move it away, then have the agent issue a new bootstrap token", path.display())]
    Malformed {
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// Cannot happen for what an agent's answer was read into.
    #[error("the bootstrap cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn path(paths: &Paths) -> PathBuf {
    paths.state_dir().join("bootstrap.json")
}

/// Reads it; none when there is none.
pub fn load(paths: &Paths) -> Result<Option<Bootstrap>, BootstrapFileError> {
    let path = path(paths);
    let Some(bytes) = file::read(&path, BOOTSTRAP_BYTES_MAX, Eyes::Owner)? else { return Ok(None) };
    json::parse("the file", &bytes, BOOTSTRAP_BYTES_MAX)
        .map(Some)
        .map_err(|source| BootstrapFileError::Malformed { path, source })
}

/// How an existing file is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// There must be none.
    None,
    /// It is kept as `bootstrap.json.old`.
    Present,
}

/// Writes it, durably.
pub fn store(paths: &Paths, bootstrap: &Bootstrap, earlier: Earlier) -> Result<(), BootstrapFileError> {
    let bytes = Zeroizing::new(serde_json::to_vec_pretty(bootstrap).map_err(BootstrapFileError::Unwritable)?);
    let path = path(paths);
    match earlier {
        Earlier::None => file::create(&path, &bytes, Eyes::Owner)?,
        Earlier::Present => {
            let old = paths.state_dir().join("bootstrap.json.old");
            file::replace_keeping(&path, &old, &bytes, Eyes::Owner)?;
        }
    }
    Ok(())
}
