//! Long-lived tasks: timers, webhook and notices.

pub mod alerts;
pub mod certificates;
pub mod changes;
pub mod customer_contact;
pub mod database_check;
pub mod deadman;
pub mod delivery;
pub mod escrow_notice;
pub mod http_post;
pub mod hub_backup;
pub mod leases;
pub mod live;
pub mod reload;
pub mod rollouts;
pub mod sign_in_refusals;
pub mod state_snapshots;
pub mod upkeep;
pub mod usage;
pub mod watcher;
pub mod webhook;
pub mod work_orders;

use holdfast_protocol::json::chain;
use tokio::sync::watch;

use crate::store::StoreError;

/// Waits for `stop` or for the time, whichever comes first.
async fn rest(stop: &mut watch::Receiver<bool>, time: std::time::Duration) -> Rest {
    tokio::select! {
        // An error means that the sender was dropped, which also means stop.
        _ = stop.wait_for(|stop| *stop) => Rest::Stop,
        () = tokio::time::sleep(time) => Rest::Over,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Over,
    Stop,
}

/// A term that ended is no failure: another hub goes on.
fn log_failure(action: &'static str, error: &StoreError) {
    match error {
        StoreError::TermOver(_) => tracing::info!(action, result = "passed_on", error = %chain(error)),
        StoreError::Busy | StoreError::Stopped | StoreError::Engine { .. } | StoreError::Damaged { .. } => {
            tracing::error!(action, result = "failed", error = %chain(error))
        }
    }
}
