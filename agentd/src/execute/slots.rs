//! Slots of heavy steps, granted by age of operation.
//!
//! In: an operation that is about to read or write a whole archive, or that did so when the agent was restarted. Out: a
//! [`HeavyPlace`], which is free again when it is dropped; and for people, which operations hold a slot and which wait.
//! One backup is at work at a time, as Proxmox has it; a backup that waits for that does not block a restore behind it.
//! The queue is as long as operations may be open, so it is bounded by them. Deliberately absent: which operations are
//! opened (`operation::lane`), and backup jobs of others (`step_window`).

use std::sync::Arc;

use holdfast_protocol::id::OperationId;
use tokio::sync::watch;

use crate::model::limits;
use crate::model::view::{HeavyView, HeavyWork, SlotRequest};

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
    token: SlotRequest,
    state: Arc<watch::Sender<HeavyView>>,
}

/// A place in the queue, given up when the waiting caller is dropped.
struct Waiting<'a> {
    token: SlotRequest,
    state: &'a watch::Sender<HeavyView>,
}

impl HeavyLane {
    /// So many places; at least one.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { places: places.max(1), state: Arc::new(watch::channel(HeavyView::default()).0) }
    }

    /// Which operations hold a slot and which wait, and when that changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<HeavyView> {
        self.state.subscribe()
    }

    /// Gives a slot to every operation that was at work when the agent was restarted, before any other gets one. What
    /// it began continues in Proxmox, whether there is a free slot or not. [`HeavyLane::leave`] frees the slot.
    pub fn sit_down(&self, token: SlotRequest) {
        self.state.send_if_modified(|view| {
            let stands = !view.holding.contains(&token);
            if stands {
                view.holding.push(token);
                view.holding.sort_unstable();
            }
            stands
        });
    }

    /// Frees whatever place an operation has.
    pub fn leave(&self, operation: OperationId) {
        self.state.send_if_modified(|view| {
            let before = view.holding.len();
            view.holding.retain(|token| token.operation != operation);
            before != view.holding.len()
        });
    }

    /// Waits for a slot, behind all older operations that wait for one of this kind. An operation that holds one has it
    /// at once.
    pub async fn place(&self, token: SlotRequest) -> HeavyPlace {
        let mut changes = self.state.subscribe();
        if changes.borrow().holding.contains(&token) {
            return HeavyPlace { token, state: Arc::clone(&self.state) };
        }
        let waiting = Waiting::enter(token, &self.state);
        loop {
            changes.mark_unchanged();
            if waiting.try_take(self.places) {
                return HeavyPlace { token, state: Arc::clone(&self.state) };
            }
            // The sender is ours, so it is not gone while we wait.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl<'a> Waiting<'a> {
    fn enter(token: SlotRequest, state: &'a watch::Sender<HeavyView>) -> Self {
        state.send_modify(|view| {
            view.waiting.push(token);
            view.waiting.sort_unstable();
        });
        Self { token, state }
    }

    fn try_take(&self, places: usize) -> bool {
        self.state.send_if_modified(|view| {
            let turn = view.holding.len() < places && next(view) == Some(self.token);
            if turn {
                view.holding.push(self.token);
                view.holding.sort_unstable();
                view.waiting.retain(|other| *other != self.token);
            }
            turn
        })
    }
}

/// The oldest that waits and for whose work there is room.
fn next(view: &HeavyView) -> Option<SlotRequest> {
    let backups = view.holding.iter().filter(|token| token.work == HeavyWork::Backup).count();
    let fits = |token: &&SlotRequest| match token.work {
        HeavyWork::Archive => true,
        HeavyWork::Backup => backups < limits::BACKUPS_AT_ONCE,
    };
    view.waiting.iter().find(fits).copied()
}

impl HeavyPlace {
    /// Whether this work may be done at it.
    #[must_use]
    pub fn is_for(&self, work: HeavyWork) -> bool {
        work == HeavyWork::Archive || self.token.work == work
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.state.send_if_modified(|view| {
            let before = view.waiting.len();
            view.waiting.retain(|other| *other != self.token);
            before != view.waiting.len()
        });
    }
}

impl Drop for HeavyPlace {
    fn drop(&mut self) {
        self.state.send_modify(|view| view.holding.retain(|other| *other != self.token));
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn operation(n: u128) -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(n))
    }

    fn archive(n: u128) -> SlotRequest {
        let opened_at = at(i64::try_from(n).unwrap());
        SlotRequest { opened_at, operation: operation(n), work: HeavyWork::Archive }
    }

    fn backup(n: u128) -> SlotRequest {
        SlotRequest { work: HeavyWork::Backup, ..archive(n) }
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
        let first = lane.place(archive(9)).await;
        // The younger one requests a slot first.
        let (mut young, mut old) = (Box::pin(lane.place(archive(2))), Box::pin(lane.place(archive(1))));
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
        assert_eq!(lane.watch().borrow().holding, [archive(1)]);
        drop(place);
        let place = young.await;
        assert!(lane.watch().borrow().waiting.is_empty());
        drop(place);
        assert_eq!(*lane.watch().borrow(), HeavyView::default());
    }

    #[tokio::test]
    async fn who_stops_waiting_keeps_no_one_waiting() {
        let lane = HeavyLane::new(1);
        let first = lane.place(archive(9)).await;
        let mut old = Box::pin(lane.place(archive(1)));
        tokio::select! {
            _ = &mut old => panic!("there is no place"),
            () = waiting(&lane, 1) => {}
        }
        drop(old);
        drop(first);
        let _place = lane.place(archive(2)).await;
        assert_eq!(lane.watch().borrow().holding.len(), 1);
    }

    #[tokio::test]
    async fn no_more_than_the_places_are_held() {
        let lane = HeavyLane::new(2);
        let (_one, _two) = (lane.place(archive(1)).await, lane.place(archive(2)).await);
        let mut third = Box::pin(lane.place(archive(3)));
        tokio::select! {
            _ = &mut third => panic!("there is no place"),
            () = waiting(&lane, 1) => {}
        }
        assert_eq!(lane.watch().borrow().holding.len(), 2);
    }

    /// Proxmox runs one backup at a time: the second waits here instead of there, and a restore overtakes it.
    #[tokio::test]
    async fn one_backup_is_at_work_and_a_restore_goes_by_those_that_wait() {
        let lane = HeavyLane::new(2);
        let first = lane.place(backup(1)).await;
        assert!(first.is_for(HeavyWork::Archive) && first.is_for(HeavyWork::Backup));
        let mut second = Box::pin(lane.place(backup(2)));
        tokio::select! {
            _ = &mut second => panic!("one backup is at work"),
            () = waiting(&lane, 1) => {}
        }
        let restore = lane.place(archive(3)).await;
        assert!(!restore.is_for(HeavyWork::Backup));
        assert_eq!(lane.watch().borrow().waiting, [backup(2)]);
        drop(first);
        let second = second.await;
        assert_eq!(lane.watch().borrow().holding, [backup(2), archive(3)]);
        drop((second, restore));
        assert_eq!(*lane.watch().borrow(), HeavyView::default());
    }

    /// A copy that was under way when the agent was restarted gets its slot before any new request.
    #[tokio::test]
    async fn who_was_at_work_before_sits_before_all_others() {
        let lane = HeavyLane::new(1);
        lane.sit_down(archive(1));
        lane.sit_down(backup(5));
        let mut older = Box::pin(lane.place(backup(2)));
        tokio::select! {
            _ = &mut older => panic!("another's copy is under way"),
            () = waiting(&lane, 1) => {}
        }
        let place = lane.place(backup(5)).await;
        lane.leave(operation(1));
        assert_eq!(lane.watch().borrow().holding, [backup(5)]);
        drop(place);
        drop(older.await);
        assert_eq!(*lane.watch().borrow(), HeavyView::default());
    }
}
