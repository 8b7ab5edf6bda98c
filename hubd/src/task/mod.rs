//! What happens by the clock, forwarding, and notices. Each task ends when `stop` is told; the composition root watches them.

pub mod deadman;
pub mod notice;
pub mod post;
pub mod upkeep;
pub mod webhook;

use tokio::sync::watch;

/// Waits until the hub is to stop, or the time is over; tells which.
async fn rest(stop: &mut watch::Receiver<bool>, time: std::time::Duration) -> Rest {
    tokio::select! {
        // An error means that whoever would tell us is gone: then it is time, too.
        _ = stop.wait_for(|stop| *stop) => Rest::Stop,
        () = tokio::time::sleep(time) => Rest::Over,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Over,
    Stop,
}
