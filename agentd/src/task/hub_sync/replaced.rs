//! The check of an order by which another host replaced this one.

use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::json::chain;

use super::{HubSync, RoundError};
use crate::gate::restore::{NoOrder, OldBox, was_replaced};
use crate::port::hub::Hub;
use crate::port::store::Refusal;

impl HubSync {
    /// Stops the agent's work if the order is one. Checked again as long as it is not.
    pub(super) async fn hear_of_replacement(&self, hub: &Hub) {
        if matches!(self.store.refusal(), Some(Refusal::Replaced { .. })) {
            return;
        }
        if let Err(error) = self.replaced(hub).await {
            tracing::error!(
                error = chain(&error),
                "the hub says that another box took this one's place, and shows no order for it"
            );
        }
    }

    async fn replaced(&self, hub: &Hub) -> Result<(), RoundError> {
        let replacement = hub.replacement().await?;
        let status = self.store.trust_state().await?;
        let Some(roster) = status.roster else { return Err(RoundError::NoOperators) };
        let now = self.clock.now();
        let old = OldBox {
            host: self.identity.enrolled.host_id,
            seen: &self.own,
            epoch: status.epoch,
            served: status.served,
        };
        let withdrawal = replacement.withdrawal.as_deref();
        let order = was_replaced(&replacement.order, withdrawal, &roster, old, now)?;
        // A withdrawal that this host received once is not ignored.
        let withdrawn = self.store.withdrawn(Sha256Text::from_digest(order.digest())).await?;
        if withdrawn.is_some() {
            return Err(NoOrder::Withdrawn.into());
        }
        self.store.stand_still(order, now).await?;
        tracing::warn!("another box took this one's place, by the operators' order: this one stands still");
        Ok(())
    }
}
