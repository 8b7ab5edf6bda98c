//! The timer of sums of refused sign-ins.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::json::chain;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, rest};
use crate::api::Refusals;
use crate::clock::Clock;
use crate::store::SharedStore;

const TICK: Duration = Duration::from_secs(20);

/// Ticks until `stop`. A sum that cannot be written is logged.
pub async fn run(
    refusals: Arc<Refusals>,
    store: SharedStore,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    while rest(&mut stop, TICK).await == Rest::Over {
        let events = refusals.due(clock.now(), CorrelationId::new(Uuid::new_v4()));
        if events.is_empty() {
            continue;
        }
        let count = events.len();
        if let Err(error) = store.record_refusals(events).await {
            tracing::error!(action = "sign_in_refusals", result = "failed", count, error = %chain(&error));
        }
    }
}
