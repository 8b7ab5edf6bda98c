//! The timer of rollouts.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::CorrelationId;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, log_failure, rest};
use crate::clock::Clock;
use crate::store::{Lease, SharedStore, duty};

/// How often a rollout is evaluated. Hosts ask for their offer each ten minutes.
const TICK: Duration = Duration::from_secs(5);

/// Ticks until `stop`, where this hub has the duty. A tick that fails is logged and repeated at the next. Nothing is kept
/// here.
pub async fn run(
    store: SharedStore,
    lease: Lease<duty::Rollouts>,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    while rest(&mut stop, TICK).await == Rest::Over {
        let Some(term) = lease.term() else { continue };
        let correlation = CorrelationId::new(Uuid::new_v4());
        if let Err(error) = store.evaluate_rollouts(&term, clock.now(), correlation).await {
            log_failure("rollouts", &error);
        }
    }
}
