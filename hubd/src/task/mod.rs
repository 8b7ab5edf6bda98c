//! Long-lived tasks: timers, webhook and notices.

pub mod alerts;
pub mod certificates;
pub mod database_check;
pub mod deadman;
pub mod delivery;
pub mod escrow_notice;
pub mod http_post;
pub mod hub_backup;
pub mod reload;
pub mod rollouts;
pub mod upkeep;
pub mod usage;
pub mod watcher;
pub mod webhook;
pub mod work_orders;

use tokio::sync::watch;

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
