//! Errors of snapshots of state and of exports.

use std::path::PathBuf;

use holdfast_protocol::state::StateDocumentError;

use crate::args::StateRef;
use crate::hub::HubError;

/// Why a snapshot of state is not taken, read or compared.
#[derive(Debug, thiserror::Error)]
pub enum StateCommandError {
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error("{path} cannot be read")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Also when it exists already.
    #[error("{path} cannot be written, and is not there: choose another file, which must not exist")]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the snapshot {of} is not whole, and nothing was shown of it: take it or ask for it again")]
    Document {
        of: StateRef,
        #[source]
        source: StateDocumentError,
    },
    /// A line that never ends.
    #[error("the snapshot {of} has a line that is longer than any: is it a snapshot of state?")]
    Line { of: StateRef },
    #[error("the hub keeps no snapshot {wanted}: see `holdfast state list`")]
    NotKept { wanted: StateRef },
    /// The hub has none of its own yet, or they are switched off.
    #[error(
        "the hub keeps no snapshot of state yet: it takes one each day, unless state_snapshots in its hub.toml is \"off\""
    )]
    None,
    #[error("the snapshot cannot be printed")]
    Print(#[source] std::io::Error),
}

/// Why there is no export. What was written of it was removed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    State(#[from] StateCommandError),
    #[error("{path} exists already, and nothing was exported: choose another name for --out")]
    Exists { path: PathBuf },
    #[error("{path} cannot be written, and nothing was exported: is there room, and may you write there?")]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("--from is not before --to, and nothing was exported: exchange the two")]
    Period,
    /// Cannot happen for what was read from JSON.
    #[error("a row of the export cannot be written as JSON")]
    Unwritable(#[from] serde_json::Error),
}
