//! The task that wakes held check-ins for what any hub wrote.
//!
//! In: hosts for which something waits, as the store finds them. Out: woken check-ins. A host without one here is held at
//! another hub, which hears the same.

use tokio::sync::watch;

use crate::api::LongPolls;
use crate::store::ChangedHosts;

/// Wakes until `stop`.
pub async fn run(mut changed: ChangedHosts, long_polls: LongPolls, mut stop: watch::Receiver<bool>) {
    loop {
        let hosts = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            hosts = changed.recv() => hosts,
        };
        let Some(hosts) = hosts else {
            // The store has ended, and the stop follows.
            drop(stop.wait_for(|stop| *stop).await);
            return;
        };
        for host in hosts {
            long_polls.wake(host);
        }
    }
}
