//! A guest that came back from a loss is backed up at once, and then as its calendar says.

use holdfast_protocol::protection::{Posture, SnapshotTier, Tier};

use super::posture::posture;
use super::schedule::{Life, Luck, daily, life, time};
use super::*;
use crate::operation::Begun;

const RETURN: &str = "2026-06-10T11:00:00Z";

/// A guest that was backed up in the night, was lost, and is back at eleven.
fn back() -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    let point = time("2026-06-10T00:30:00Z");
    life.now = time("2026-06-10T11:00:05Z");
    life.keep(Some(point), Some(Tier::Local), point);
    life.world.records.returned.insert(uid(1), time(RETURN));
    life
}

#[test]
fn a_guest_that_came_back_is_backed_up_at_once_and_once() {
    let mut life = back();
    let why = life.plan().actions[0].reason.clone();
    assert_eq!(why, "it came back from a loss at 2026-06-10T11:00:00Z, and the local backup of that is due");
    let due = life.cycle(Luck::Good).expect("one is due");
    assert_eq!((due.point, due.begun, due.tier), (time(RETURN), Begun::InTime, Tier::Local));
    assert_eq!(life.cycle(Luck::Good), None);
    // The calendar goes on.
    life.now = time("2026-06-11T01:30:00Z");
    assert_eq!(life.cycle(Luck::Good).map(|due| due.point), Some(time("2026-06-11T00:30:00Z")));
    assert_eq!(life.cycle(Luck::Good), None);
}

/// One that somebody took meanwhile stands for it, as for any point; the night's point takes over where none came.
#[test]
fn the_newest_of_what_stands_and_of_what_is_due_counts() {
    let mut life = back();
    life.keep(None, None, time("2026-06-10T11:00:03Z"));
    assert_eq!(life.cycle(Luck::Good), None);

    let mut life = back();
    life.now = time("2026-06-11T01:30:00Z");
    assert_eq!(life.cycle(Luck::Good).map(|due| due.point), Some(time("2026-06-11T00:30:00Z")));
}

#[test]
fn it_is_tried_again_and_told_as_missed_like_any_point() {
    let mut life = back();
    assert!(life.cycle(Luck::Bad).is_some());
    assert_eq!(life.cycle(Luck::Good), None, "it waits");
    life.pass(121);
    let said = posture(&life);
    assert_eq!(said.is, Posture::Attention, "{said:?}");
    assert!(said.why[0].contains("its local backup of 2026-06-10T11:00:00Z was missed"), "{said:?}");
    assert_eq!(life.cycle(Luck::Good).map(|due| (due.point, due.begun)), Some((time(RETURN), Begun::Late)));
    assert!(!posture(&life).why[0].contains("missed"), "{:?}", posture(&life));
}

/// A clock that was ahead wrote the return down; the promise is younger than it; it is promised nothing, or only snapshots.
#[test]
fn there_is_nothing_to_be_taken_for_a_return_that() {
    let mut ahead = back();
    ahead.world.records.returned.insert(uid(1), time("2026-06-10T12:00:00Z"));
    assert_eq!(ahead.cycle(Luck::Good), None);

    let mut younger = back();
    younger.world.records.tiers[0].since = time("2026-06-10T11:00:01Z");
    assert_eq!(younger.cycle(Luck::Good), None);

    let mut unpromised = back();
    unpromised.world.records.protections.clear();
    unpromised.world.desired[0].policy = None;
    assert!(unpromised.plan().actions.is_empty(), "{}", unpromised.plan());
    let reports =
        crate::plan::report::guests(&unpromised.world.inputs(), &unpromised.plan(), &BTreeMap::new());
    let told = reports[0].protection.as_ref().unwrap().posture.as_ref().unwrap();
    assert_eq!(told.is, Posture::Unprotected, "{told:?}");

    let mut snapshots = back();
    let promise = std::sync::Arc::make_mut(snapshots.world.records.protections.get_mut(&uid(1)).unwrap());
    let local = promise.tiers.local.take().unwrap();
    promise.tiers.snapshot = Some(SnapshotTier { schedule: local.schedule, retention: local.retention });
    snapshots.world.records.tiers.clear();
    let taken: Vec<_> = snapshots.plan().actions.iter().map(|action| action.reason.clone()).collect();
    assert!(taken.iter().all(|reason| !reason.contains("came back")), "{taken:?}");
}
