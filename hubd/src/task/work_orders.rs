//! The timer of work orders that no host takes.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::CorrelationId;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, log_failure, rest};
use crate::clock::Clock;
use crate::store::{Lease, SharedStore, duty};

/// An order waits minutes at least, so half a minute more is not seen.
const TICK: Duration = Duration::from_secs(30);

/// Ticks until `stop`, where this hub has the duty. A tick that fails is logged and repeated at the next.
pub async fn run(
    store: SharedStore,
    lease: Lease<duty::WorkOrders>,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    while rest(&mut stop, TICK).await == Rest::Over {
        let Some(term) = lease.term() else { continue };
        let correlation = CorrelationId::new(Uuid::new_v4());
        if let Err(error) = store.expire_work_orders(&term, clock.now(), correlation).await {
            log_failure("work_orders", &error);
        }
    }
}
