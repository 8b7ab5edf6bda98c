//! The task that writes samples of use.
//!
//! In: samples of check-ins, by a bounded queue. Out: rows, many hosts in one transaction. A check-in does not wait for them:
//! when the queue is full, samples are dropped and counted. Those of the last second before a stop may be lost.

use std::sync::Arc;

use holdfast_protocol::json::chain;
use tokio::sync::{mpsc, watch};

use crate::api::UsageFromHost;
use crate::clock::Clock;
use crate::store::SharedStore;

/// Check-ins that share a transaction, at most.
const BATCH_MAX: usize = 64;

/// Writes until `stop`.
pub async fn run(
    mut waiting: mpsc::Receiver<UsageFromHost>,
    store: SharedStore,
    clock: Arc<dyn Clock>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            taken = waiting.recv_many(&mut batch, BATCH_MAX) => if taken == 0 { return },
        }
        if let Err(error) = store.keep_usage(batch, clock.now()).await {
            tracing::error!(action = "keep_usage", result = "failed", error = %chain(&error));
        }
    }
}
