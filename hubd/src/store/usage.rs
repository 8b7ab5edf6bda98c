//! Kept use of hosts and guests.

use async_trait::async_trait;
use holdfast_protocol::id::{GuestUid, HostId};
use holdfast_protocol::usage::{UsageSample, UsageSeries, UsageSpan};
use jiff::Timestamp;

use super::{StoreError, Term, duty};
use crate::domain::host::HostRef;

/// Whose use is asked for.
#[derive(Clone, Debug)]
pub struct UsageQuery {
    pub host: HostRef,
    /// One of its guests, or the host itself.
    pub guest: Option<GuestUid>,
    pub span: UsageSpan,
}

/// What was removed, because more was kept than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinned {
    Nothing,
    /// The oldest hour of all hosts.
    Hour,
}

/// Kept use of hosts and guests.
#[async_trait]
pub trait Usage: Send + Sync {
    /// Keeps samples of several hosts. Those that are kept already, or of hosts that are not known, change nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn keep_usage(
        &self,
        samples: Vec<(HostId, Vec<UsageSample>)>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// How many bytes are kept of all hosts together.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn usage_bytes(&self) -> Result<u64, StoreError>;

    /// Removes the oldest hour of what is kept of all hosts, where that is more than so many bytes. Rows of hours go before
    /// those of five minutes; those of minutes stay, as they are few.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn thin_usage(&self, term: &Term<duty::Upkeep>, bytes_max: u64) -> Result<Thinned, StoreError>;

    /// The newest sample of a host, where it is not older than a few minutes.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn newest_sample(&self, host: HostId, now: Timestamp) -> Result<Option<UsageSample>, StoreError>;

    /// What is kept of a host or guest; none for a host that is not known.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn usage(&self, query: UsageQuery, now: Timestamp) -> Result<Option<UsageSeries>, StoreError>;
}
