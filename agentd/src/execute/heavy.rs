//! The places for heavy steps: as many at work as the host bears, the others by the age of their operation.
//!
//! What comes in: an operation that is about to read or write a whole archive. What goes out: a [`HeavyPlace`], free again
//! when it is dropped; and for people, who holds a place and who waits. The queue is as long as operations may be open,
//! so it is bounded by them. Deliberately absent: which operations are opened (`operation::lane`).

use std::sync::Arc;

use holdfast_protocol::id::OperationId;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::model::view::{HeavyTicket, HeavyView};

/// All the places.
#[derive(Clone, Debug)]
pub struct HeavyLane {
    places: usize,
    state: Arc<watch::Sender<HeavyView>>,
}

/// One place, held.
#[derive(Debug)]
#[must_use = "the place is free again when this is dropped"]
pub struct HeavyPlace {
    ticket: HeavyTicket,
    state: Arc<watch::Sender<HeavyView>>,
}

/// A place in the queue, given up when the one who waits is dropped.
struct Waiting<'a> {
    ticket: HeavyTicket,
    state: &'a watch::Sender<HeavyView>,
}

impl HeavyLane {
    /// So many places; at least one.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { places: places.max(1), state: Arc::new(watch::channel(HeavyView::default()).0) }
    }

    /// Who holds a place and who waits, and when that changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<HeavyView> {
        self.state.subscribe()
    }

    /// Waits for a place, behind all older operations that wait.
    pub async fn place(&self, operation: OperationId, opened_at: Timestamp) -> HeavyPlace {
        let ticket = HeavyTicket { opened_at, operation };
        let mut changes = self.state.subscribe();
        let waiting = Waiting::enter(ticket, &self.state);
        loop {
            changes.mark_unchanged();
            if waiting.try_take(self.places) {
                return HeavyPlace { ticket, state: Arc::clone(&self.state) };
            }
            // The sender is ours, so it is not gone while we wait.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl<'a> Waiting<'a> {
    fn enter(ticket: HeavyTicket, state: &'a watch::Sender<HeavyView>) -> Self {
        state.send_modify(|view| {
            view.waiting.push(ticket);
            view.waiting.sort_unstable();
        });
        Self { ticket, state }
    }

    fn try_take(&self, places: usize) -> bool {
        self.state.send_if_modified(|view| {
            let turn = view.holding.len() < places && view.waiting.first() == Some(&self.ticket);
            if turn {
                view.holding.push(self.ticket);
                view.holding.sort_unstable();
                view.waiting.retain(|other| *other != self.ticket);
            }
            turn
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.state.send_if_modified(|view| {
            let before = view.waiting.len();
            view.waiting.retain(|other| *other != self.ticket);
            before != view.waiting.len()
        });
    }
}

impl Drop for HeavyPlace {
    fn drop(&mut self) {
        self.state.send_modify(|view| view.holding.retain(|other| *other != self.ticket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(n: u128) -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(n))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    async fn waiting(lane: &HeavyLane, count: usize) {
        lane.watch().wait_for(|view| view.waiting.len() == count).await.unwrap();
    }

    #[tokio::test]
    async fn the_oldest_operation_has_the_next_place() {
        let lane = HeavyLane::new(1);
        let first = lane.place(operation(9), at(9)).await;
        // The younger one asks first.
        let (mut young, mut old) =
            (Box::pin(lane.place(operation(2), at(2))), Box::pin(lane.place(operation(1), at(1))));
        tokio::select! {
            _ = &mut young => panic!("there is no place"),
            _ = &mut old => panic!("there is no place"),
            () = waiting(&lane, 2) => {}
        }
        drop(first);
        let place = tokio::select! {
            _ = &mut young => panic!("the older one is before it"),
            place = &mut old => place,
        };
        assert_eq!(
            lane.watch().borrow().holding,
            [HeavyTicket { opened_at: at(1), operation: operation(1) }]
        );
        drop(place);
        let place = young.await;
        assert!(lane.watch().borrow().waiting.is_empty());
        drop(place);
        assert_eq!(*lane.watch().borrow(), HeavyView::default());
    }

    #[tokio::test]
    async fn who_stops_waiting_keeps_nobody_waiting() {
        let lane = HeavyLane::new(1);
        let first = lane.place(operation(9), at(9)).await;
        let mut old = Box::pin(lane.place(operation(1), at(1)));
        tokio::select! {
            _ = &mut old => panic!("there is no place"),
            () = waiting(&lane, 1) => {}
        }
        drop(old);
        drop(first);
        let _place = lane.place(operation(2), at(2)).await;
        assert_eq!(lane.watch().borrow().holding.len(), 1);
    }

    #[tokio::test]
    async fn no_more_than_the_places_are_held() {
        let lane = HeavyLane::new(2);
        let (_one, _two) = (lane.place(operation(1), at(1)).await, lane.place(operation(2), at(2)).await);
        let mut third = Box::pin(lane.place(operation(3), at(3)));
        tokio::select! {
            _ = &mut third => panic!("there is no place"),
            () = waiting(&lane, 1) => {}
        }
        assert_eq!(lane.watch().borrow().holding.len(), 2);
    }
}
