//! The timer of work orders that no host takes.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::json::chain;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, rest};
use crate::clock::Clock;
use crate::store::SharedStore;

/// An order waits minutes at least, so half a minute more is not seen.
const TICK: Duration = Duration::from_secs(30);

/// Ticks until `stop`. A tick that fails is logged and repeated at the next.
pub async fn run(store: SharedStore, clock: Arc<dyn Clock>, mut stop: watch::Receiver<bool>) {
    while rest(&mut stop, TICK).await == Rest::Over {
        let correlation = CorrelationId::new(Uuid::new_v4());
        if let Err(error) = store.expire_work_orders(clock.now(), correlation).await {
            tracing::error!(action = "work_orders", result = "failed", error = %chain(&error));
        }
    }
}
