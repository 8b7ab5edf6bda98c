//! The stop signal of all loops.
//!
//! One [`Stopper`] is held by the composition root; each loop has a [`Stop`] and waits on it in addition to its own
//! work. A stopper that is dropped stops everything too, so no loop outlives its root.

use tokio::sync::watch;

/// Stops every loop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// One loop's ear.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// A stopper and the first ear, to be cloned.
#[must_use]
pub fn pair() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    /// Requests every loop to end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns once the agent is to stop.
    pub async fn requested(&mut self) {
        // An error means that the stopper is gone, which says the same.
        drop(self.0.wait_for(|stop| *stop).await);
    }

    /// The signal itself: true once the agent is to stop.
    #[must_use]
    pub fn signal(&self) -> watch::Receiver<bool> {
        self.0.clone()
    }

    /// Whether the agent is to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_is_heard_by_all_and_stays() {
        let (stopper, mut stop) = pair();
        let mut other = stop.clone();
        assert!(!stop.is_requested());
        stopper.stop();
        stop.requested().await;
        other.requested().await;
        other.requested().await;
        assert!(stop.is_requested() && other.is_requested());
    }

    #[tokio::test]
    async fn a_lost_stopper_stops_too() {
        let (stopper, mut stop) = pair();
        drop(stopper);
        stop.requested().await;
        assert!(stop.is_requested());
    }
}
