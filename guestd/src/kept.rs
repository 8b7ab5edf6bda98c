//! `bootstrap.json`: what a guest was told once and keeps.

use std::path::PathBuf;

use holdfast_protocol::bootstrap::{BOOTSTRAP_BYTES_MAX, Bootstrap};
use holdfast_protocol::strict::{self, StrictError};
use zeroize::Zeroizing;

use crate::file::{self, Eyes, FileError};
use crate::place::Place;

/// Why the file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its content. It is left as it is, for a person to look at.
    #[error("{} is malformed and is left as it is: move it away, then have the agent issue a new ticket", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: StrictError,
    },
    /// Cannot happen for what an agent's answer was read into.
    #[error("the bootstrap cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

fn path(place: &Place) -> PathBuf {
    place.state_dir().join("bootstrap.json")
}

/// Reads it; none when there is none.
pub fn load(place: &Place) -> Result<Option<Bootstrap>, KeptError> {
    let path = path(place);
    let Some(bytes) = file::read(&path, BOOTSTRAP_BYTES_MAX, Eyes::Owner)? else { return Ok(None) };
    strict::parse("the file", &bytes, BOOTSTRAP_BYTES_MAX)
        .map(Some)
        .map_err(|source| KeptError::Malformed { path, source })
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// There must be none.
    None,
    /// It is kept as `bootstrap.json.old`.
    Kept,
}

/// Writes it, durably.
pub fn store(place: &Place, bootstrap: &Bootstrap, earlier: Earlier) -> Result<(), KeptError> {
    let bytes = Zeroizing::new(serde_json::to_vec_pretty(bootstrap).map_err(KeptError::Unwritable)?);
    let path = path(place);
    match earlier {
        Earlier::None => file::create(&path, &bytes, Eyes::Owner)?,
        Earlier::Kept => {
            let old = place.state_dir().join("bootstrap.json.old");
            file::replace_keeping(&path, &old, &bytes, Eyes::Owner)?;
        }
    }
    Ok(())
}
