//! Numbers of what changed, for open pages.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::HostName;

use super::StoreError;
use crate::domain::host::HostRef;

/// Changes in one answer, at most.
pub const PAGE_CHANGES_MAX: u32 = 500;

/// The newest change of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageChange {
    /// Its number. Later changes have higher ones, at every hub of the database.
    pub number: u64,
    /// The host; none for the hub itself.
    pub host: Option<HostName>,
}

/// Which changes are asked for.
#[derive(Clone, Debug)]
pub struct PageChangeQuery {
    /// What the person may see.
    pub scope: AccessScope,
    /// Of this host alone.
    pub host: Option<HostRef>,
    /// Those after this number.
    pub after: u64,
}

/// Numbers of changes. There is one for each host, so none is ever too old to be asked for.
#[async_trait]
pub trait PageChanges: Send + Sync {
    /// The number of the newest change of all; 0 without any.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn newest_page_change(&self) -> Result<u64, StoreError>;

    /// Changes in their order, at most [`PAGE_CHANGES_MAX`]. Those of the hub itself are for people with every host.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn page_changes(&self, query: PageChangeQuery) -> Result<Vec<PageChange>, StoreError>;
}
