//! The event log, written in the transaction of its change.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::EventView;

use super::StoreError;

/// Which events are listed.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventFilter {
    /// Of this host alone.
    pub host: Option<HostId>,
    /// Those before this number.
    pub before: Option<u64>,
}

/// The log of events.
#[async_trait]
pub trait Events: Send + Sync {
    /// Events, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn events(&self, filter: EventFilter, limit: u32) -> Result<Vec<EventView>, StoreError> {
        self.events_within(AccessScope::Everything {}, filter, limit).await
    }

    /// The same of events within a scope: of hosts with its labels, or about guests of its customer.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn events_within(
        &self,
        scope: AccessScope,
        filter: EventFilter,
        limit: u32,
    ) -> Result<Vec<EventView>, StoreError>;
}
