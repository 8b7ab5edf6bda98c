//! The timer of the dead-man's switch.

use std::sync::Arc;

use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::listening::Listening;
use jiff::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use super::{Rest, rest};
use crate::clock::Clock;
use crate::domain::alerting::AlertContext;
use crate::domain::deadman::{ABSENCE, TICK, evaluate, worsened};
use crate::store::{SharedStore, StoreError};

/// Ticks until `stop`. A tick that fails is logged and repeated at the next.
pub async fn run(
    store: SharedStore,
    alerts: AlertContext,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    let mut listening = Listening::from(clock.now(), ABSENCE);
    while rest(&mut stop, TICK).await == Rest::Over {
        let now = clock.now();
        let hub_up_since = listening.look(now);
        alerts.listens_since(hub_up_since);
        if let Err(error) = tick(&store, hub_up_since, now).await {
            tracing::error!(action = "deadman", result = "failed", error = %chain(&error));
        }
    }
}

/// Checks all hosts once.
///
/// # Errors
/// [`StoreError`].
pub async fn tick(store: &SharedStore, hub_up_since: Timestamp, now: Timestamp) -> Result<(), StoreError> {
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
    store.write_down(worse, now, CorrelationId::new(Uuid::new_v4())).await
}
