//! The timer of rollouts.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::json::chain;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, rest};
use crate::clock::Clock;
use crate::store::SharedStore;

/// How often a rollout is evaluated. Hosts ask for their offer each ten minutes.
const TICK: Duration = Duration::from_secs(5);

/// Ticks until `stop`. A tick that fails is logged and repeated at the next. Nothing is kept here.
pub async fn run(store: SharedStore, clock: Arc<dyn Clock>, mut stop: watch::Receiver<bool>) {
    while rest(&mut stop, TICK).await == Rest::Over {
        let correlation = CorrelationId::new(Uuid::new_v4());
        if let Err(error) = store.evaluate_rollouts(clock.now(), correlation).await {
            tracing::error!(action = "rollouts", result = "failed", error = %chain(&error));
        }
    }
}
