//! The timer of the dead-man's switch.

use std::sync::Arc;

use holdfast_protocol::id::CorrelationId;
use jiff::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, log_failure, rest};
use crate::clock::Clock;
use crate::domain::alerting::AlertContext;
use crate::domain::deadman::{TICK, evaluate, worsened};
use crate::store::duty::DeadMansSwitch;
use crate::store::{Lease, SharedStore, StoreError, Term};

/// Ticks until `stop`, where this hub has the duty. Since when a hub hears hosts is kept in the database: it is the time
/// of all hubs together, and not of this process.
pub async fn run(
    store: SharedStore,
    lease: Lease<DeadMansSwitch>,
    alerts: AlertContext,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    while rest(&mut stop, TICK).await == Rest::Over {
        let Some(term) = lease.term() else { continue };
        let now = clock.now();
        let ticked = async {
            let hub_up_since = store.listen(&term, now).await?;
            alerts.listens_since(hub_up_since);
            tick(&store, &term, hub_up_since, now).await
        };
        if let Err(error) = ticked.await {
            log_failure("deadman", &error);
        }
    }
}

/// Checks all hosts once.
///
/// # Errors
/// [`StoreError`].
pub async fn tick(
    store: &SharedStore,
    term: &Term<DeadMansSwitch>,
    hub_up_since: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut worse = Vec::new();
    for silence in store.listened_to().await? {
        let judged = evaluate(silence.since, (silence.poll, silence.alarm_after), hub_up_since, now);
        if let Some(liveness) = worsened(silence.written, judged) {
            worse.push((silence, liveness));
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    store.write_down(term, worse, now, CorrelationId::new(Uuid::new_v4())).await
}
