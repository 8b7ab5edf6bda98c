//! The state of hosts, and the snapshots of it that are kept.

use async_trait::async_trait;
use holdfast_protocol::id::HostName;
use holdfast_protocol::state::{StateSnapshotView, StateTail};
use jiff::Timestamp;
use jiff::civil::Date;

use super::StoreError;
use crate::domain::state_snapshot::StateSource;

/// A snapshot to be kept.
#[derive(Clone, Debug)]
pub struct NewStateSnapshot {
    /// The day that it stands for, in UTC.
    pub day: Date,
    pub taken_at: Timestamp,
    pub tail: StateTail,
    /// How many bytes the document has.
    pub bytes: u64,
    /// The document, compressed.
    pub body: Vec<u8>,
    /// How many bytes all kept snapshots may have, compressed.
    pub bytes_max: u64,
}

/// What became of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepOutcome {
    Kept,
    /// There is one of that day already: another hub, or an earlier run, kept it.
    Known,
}

/// The state of hosts, and kept snapshots of it.
#[async_trait]
pub trait StateSnapshots: Send + Sync {
    /// What is kept of hosts, by name, those after `after`. Each host is of one moment. Hosts that were let go are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn state_sources(
        &self,
        after: Option<(HostName, i64)>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<StateSource>, StoreError>;

    /// Keeps a snapshot, unless there is one of its day, and removes those that are thinned out. Doing it twice, or from two
    /// hubs, keeps one.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn keep_state_snapshot(&self, new: NewStateSnapshot) -> Result<KeepOutcome, StoreError>;

    /// Whether there is one of this day.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn has_state_snapshot(&self, day: Date) -> Result<bool, StoreError>;

    /// Kept snapshots, the newest first, those before this number.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn state_snapshots(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<StateSnapshotView>, StoreError>;

    /// One of them, compressed.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn state_snapshot(&self, number: i64) -> Result<Option<Vec<u8>>, StoreError>;
}
