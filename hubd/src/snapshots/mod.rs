//! Snapshots of state as streams of lines, live and kept.
//!
//! In: the store, and which part of the state is wanted. Out: the lines of a document, some hosts at a time, so that the
//! state of a thousand hosts is never in memory at once. Kept snapshots are compressed. Deliberately absent: the connection
//! that the lines go to, and the clock that says when one is kept.

mod compression;
mod kept_state;
mod live_state;

use holdfast_protocol::state::StateDocumentError;

pub use self::compression::{Packer, Unpacker};
pub use self::kept_state::KeptState;
pub use self::live_state::LiveState;
use crate::store::StoreError;

/// Why a snapshot is not made, or not read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the snapshot of state cannot be made or read")]
    Document(#[from] StateDocumentError),
    /// What is kept is not what was kept.
    #[error("the kept snapshot of state cannot be unpacked")]
    Unpack(#[source] std::io::Error),
    #[error("the snapshot of state cannot be packed")]
    Pack(#[source] std::io::Error),
    /// More than all of them may have.
    #[error(
        "the snapshot of state has {bytes} bytes, and all kept ones together may have {max}: raise state_snapshot_mib_max in hub.toml"
    )]
    TooLarge { bytes: u64, max: u64 },
    /// It was read beyond its end.
    #[error("the snapshot of state has ended already")]
    Ended,
}

/// The lines of a snapshot, wherever they come from.
pub enum StateLines {
    Live(Box<LiveState>),
    Kept(Box<KeptState>),
}

impl StateLines {
    /// The next lines; none after the last one.
    ///
    /// # Errors
    /// [`SnapshotError`]; the document is not whole then.
    pub async fn next_lines(&mut self) -> Result<Option<String>, SnapshotError> {
        match self {
            Self::Live(live) => live.next_lines().await,
            Self::Kept(kept) => kept.next_lines(),
        }
    }
}
