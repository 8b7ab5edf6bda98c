//! Check-ins that are held open, one per host, and how they are woken.
//!
//! A second check-in of a host takes the place of the first, which is answered at once: so there are never more held
//! connections than hosts. A waiter is placed before the store is asked, so nothing that happens in between is missed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_protocol::id::HostId;
use tokio::sync::Notify;

/// Who waits.
#[derive(Clone, Default)]
pub struct Waiters {
    places: Arc<Mutex<HashMap<HostId, Arc<Place>>>>,
}

#[derive(Default)]
struct Place {
    news: Notify,
    displaced: Notify,
}

/// Why a waiter was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// Something of the host changed.
    News,
    /// Another check-in of the host took the place.
    Displaced,
}

/// A place, given up when dropped.
pub(super) struct Waiter {
    host: HostId,
    place: Arc<Place>,
    waiters: Waiters,
}

impl Waiters {
    /// Takes a host's place.
    pub(super) fn take(&self, host: HostId) -> Waiter {
        let place = Arc::new(Place::default());
        let before = self.lock().insert(host, Arc::clone(&place));
        if let Some(before) = before {
            // One permit is kept for a waiter that does not wait yet.
            before.displaced.notify_one();
        }
        Waiter { host, place, waiters: self.clone() }
    }

    /// Wakes whoever waits for this host.
    pub fn wake(&self, host: HostId) {
        if let Some(place) = self.lock().get(&host) {
            place.news.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<HostId, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Waits until woken.
    pub(super) async fn woken(&self) -> Woken {
        tokio::select! {
            () = self.place.displaced.notified() => Woken::Displaced,
            () = self.place.news.notified() => Woken::News,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut places = self.waiters.lock();
        if places.get(&self.host).is_some_and(|place| Arc::ptr_eq(place, &self.place)) {
            places.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_before_the_waiting_is_not_missed_and_the_newest_has_the_place() {
        let waiters = Waiters::default();
        let host = HostId::new(uuid::Uuid::from_u128(1));
        let first = waiters.take(host);
        waiters.wake(host);
        assert_eq!(first.woken().await, Woken::News);
        let second = waiters.take(host);
        assert_eq!(first.woken().await, Woken::Displaced);
        drop(first);
        waiters.wake(host);
        assert_eq!(second.woken().await, Woken::News);
        drop(second);
        assert!(waiters.lock().is_empty());
    }
}
