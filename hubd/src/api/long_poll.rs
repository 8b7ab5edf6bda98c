//! Long polls of check-ins, one per host.
//!
//! A second check-in of a host displaces the first, which is answered at once: so there are never more held
//! connections than hosts. A long poll is registered before the store is read, so no change in between is missed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_protocol::id::HostId;
use tokio::sync::Notify;

/// The long polls of all hosts.
#[derive(Clone, Default)]
pub struct LongPolls {
    slots: Arc<Mutex<HashMap<HostId, Arc<Slot>>>>,
}

#[derive(Default)]
struct Slot {
    news: Notify,
    displaced: Notify,
}

/// Why a long poll ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeReason {
    /// Something of the host changed.
    Update,
    /// Another check-in of the host displaced it.
    Displaced,
}

/// One long poll; dropped, it is removed.
pub(super) struct LongPoll {
    host: HostId,
    slot: Arc<Slot>,
    long_polls: LongPolls,
}

impl LongPolls {
    /// Registers a host's long poll.
    pub(super) fn take(&self, host: HostId) -> LongPoll {
        let slot = Arc::new(Slot::default());
        let before = self.lock().insert(host, Arc::clone(&slot));
        if let Some(before) = before {
            // One permit is kept for a long poll that does not wait yet.
            before.displaced.notify_one();
        }
        LongPoll { host, slot, long_polls: self.clone() }
    }

    /// Wakes the long poll of this host.
    pub fn wake(&self, host: HostId) {
        if let Some(slot) = self.lock().get(&host) {
            slot.news.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<HostId, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LongPoll {
    /// Waits until woken.
    pub(super) async fn woken(&self) -> WakeReason {
        tokio::select! {
            () = self.slot.displaced.notified() => WakeReason::Displaced,
            () = self.slot.news.notified() => WakeReason::Update,
        }
    }
}

impl Drop for LongPoll {
    fn drop(&mut self) {
        let mut slots = self.long_polls.lock();
        if slots.get(&self.host).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
            slots.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_before_the_waiting_is_not_missed_and_the_newest_has_the_place() {
        let long_polls = LongPolls::default();
        let host = HostId::new(uuid::Uuid::from_u128(1));
        let first = long_polls.take(host);
        long_polls.wake(host);
        assert_eq!(first.woken().await, WakeReason::Update);
        let second = long_polls.take(host);
        assert_eq!(first.woken().await, WakeReason::Displaced);
        drop(first);
        long_polls.wake(host);
        assert_eq!(second.woken().await, WakeReason::Update);
        drop(second);
        assert!(long_polls.lock().is_empty());
    }
}
