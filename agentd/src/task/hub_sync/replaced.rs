//! The hub says that another box took this one's place: then the operators' order is asked for and held to the operators
//! of this box. The hub's word alone stops nothing.

use holdfast_protocol::strict::chain;

use super::{HubSync, RoundError};
use crate::gate::restore::was_replaced;
use crate::port::hub::Hub;
use crate::port::store::Refusal;

impl HubSync {
    /// Stands still, if the order is one. Asked again as long as it is not.
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
        let standing = self.store.standing().await?;
        let Some(roster) = standing.roster else { return Err(RoundError::NoOperators) };
        let now = self.clock.now();
        let own = (self.identity.enrolled.host_id, standing.epoch);
        let order = was_replaced(&replacement.order, &roster, own, now)?;
        self.store.stand_still(order, now).await?;
        tracing::warn!("another box took this one's place, by the operators' order: this one stands still");
        Ok(())
    }
}
