//! The queue of events for the webhook.

use async_trait::async_trait;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::operator::EventView;

use super::duty::Webhook;
use super::{StoreError, Term};

/// An event to be forwarded.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub event: EventView,
    /// The correlation id of the request.
    pub correlation: CorrelationId,
}

/// Events on their way to the webhook.
#[async_trait]
pub trait WebhookQueue: Send + Sync {
    /// The oldest event that was not passed on.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn next_outgoing(&self) -> Result<Option<Outgoing>, StoreError>;

    /// Writes down that everything up to this event was passed on, or given up.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn passed_on(&self, term: &Term<Webhook>, number: u64) -> Result<(), StoreError>;

    /// Passes over all that happened before a webhook was there to hear of it.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn pass_over_all(&self, term: &Term<Webhook>) -> Result<(), StoreError>;
}
