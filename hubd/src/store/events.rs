//! The event log, written in the transaction of its change.

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::HostId;
use holdfast_protocol::operator::EventView;

use super::StoreError;

/// Words that are searched for in kind and sentence of an event, in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventText(String);

impl EventText {
    /// Nobody searches for more.
    pub const CHARACTERS_MAX: usize = 100;

    /// None where there is nothing to search for, or too much.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_good = (1..=Self::CHARACTERS_MAX).contains(&text.chars().count());
        // Engines agree on the small letters of ASCII alone.
        is_good.then(|| Self(text.to_ascii_lowercase()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which events are listed.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Of this host alone.
    pub host: Option<HostId>,
    /// With these words alone.
    pub text: Option<EventText>,
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
