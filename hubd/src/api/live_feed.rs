//! The newest number of a change, and places for listeners.
//!
//! In: what the task `live` reads. Out: a place for each open page, bounded for each person and in all. While nobody
//! listens, the task reads nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_protocol::id::OperatorName;
use tokio::sync::{Notify, watch};

/// Open pages of one person at a time. Each takes one of their connections.
pub const LISTENERS_EACH: u32 = 12;

/// Open pages at a time.
pub const LISTENERS_MAX: u32 = 500;

/// What open pages wait for.
#[derive(Clone)]
pub struct LiveFeed(Arc<Shared>);

struct Shared {
    newest: watch::Sender<u64>,
    places: Mutex<HashMap<OperatorName, u32>>,
    arrived: Notify,
}

/// One open page; dropped, its place is free.
pub(super) struct Listener {
    feed: LiveFeed,
    name: OperatorName,
    newest: watch::Receiver<u64>,
}

impl Default for LiveFeed {
    fn default() -> Self {
        let (newest, _) = watch::channel(0);
        Self(Arc::new(Shared { newest, places: Mutex::default(), arrived: Notify::new() }))
    }
}

impl LiveFeed {
    /// A place for a page of this person; none where they, or all together, have as many as there are.
    pub(super) fn listen(&self, name: &OperatorName) -> Option<Listener> {
        let mut places = self.places();
        let all: u32 = places.values().sum();
        let own = places.entry(name.clone()).or_default();
        if *own >= LISTENERS_EACH || all >= LISTENERS_MAX {
            return None;
        }
        *own += 1;
        drop(places);
        let newest = self.0.newest.subscribe();
        self.0.arrived.notify_one();
        Some(Listener { feed: self.clone(), name: name.clone(), newest })
    }

    /// Waits until somebody listens.
    pub async fn wanted(&self) {
        while self.places().values().sum::<u32>() == 0 {
            self.0.arrived.notified().await;
        }
    }

    /// Wakes the listeners where this is a later change than the last.
    pub fn reached(&self, number: u64) {
        self.0.newest.send_if_modified(|newest| std::mem::replace(newest, number) != number);
    }

    fn places(&self) -> std::sync::MutexGuard<'_, HashMap<OperatorName, u32>> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Waits for a later change. It never ends by itself: the feed lives as long as its listeners.
    pub(super) async fn woken(&mut self) {
        let _feed_is_held = self.newest.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut places = self.feed.places();
        if let Some(own) = places.get_mut(&self.name) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                places.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn places_are_bounded_for_each_person_and_free_again_when_a_page_closes() {
        let feed = LiveFeed::default();
        let (eve, ann) = ("eve".parse().unwrap(), "ann".parse().unwrap());
        let mut open: Vec<Listener> = (0..LISTENERS_EACH).filter_map(|_| feed.listen(&eve)).collect();
        assert!(feed.listen(&eve).is_none() && feed.listen(&ann).is_some());
        open.pop();
        assert!(feed.listen(&eve).is_some());
        drop(open);
        assert!(feed.places().is_empty());
    }

    #[tokio::test]
    async fn all_places_together_are_bounded() {
        let feed = LiveFeed::default();
        let mut open = Vec::new();
        for person in 0..=LISTENERS_MAX / LISTENERS_EACH {
            let name = format!("person{person}").parse().unwrap();
            open.extend((0..LISTENERS_EACH).filter_map(|_| feed.listen(&name)));
        }
        assert_eq!(open.len(), LISTENERS_MAX as usize);
    }

    #[tokio::test]
    async fn a_change_before_the_waiting_is_not_missed() {
        let feed = LiveFeed::default();
        let mut listener = feed.listen(&"eve".parse().unwrap()).unwrap();
        feed.wanted().await;
        feed.reached(7);
        listener.woken().await;
    }
}
