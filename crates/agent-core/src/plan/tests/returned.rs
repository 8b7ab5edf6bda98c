//! Tests of a guest that came back under another VMID.

use holdfast_protocol::protection::{OffSiteTier, Posture, SnapshotTier, Tier};

use super::posture::posture;
use super::schedule::{Life, Luck, daily, life, time};
use super::*;
use crate::model::records::{Renumbered, RenumberedBy, TierRecord};
use crate::operation::Begun;

const RETURN: &str = "2026-06-10T11:00:00Z";

fn returned(at: &str) -> Renumbered {
    Renumbered { by: RenumberedBy::Return, began_at: time(at), at: time(at) }
}

/// A guest that was backed up in the night, was lost, and is back at eleven.
fn back() -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    let point = time("2026-06-10T00:30:00Z");
    life.now = time("2026-06-10T11:00:05Z");
    life.keep(Some(point), Some(Tier::Local), point);
    life.world.records.renumbered.insert(uid(1), returned(RETURN));
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
    // The calendar continues.
    life.now = time("2026-06-11T01:30:00Z");
    assert_eq!(life.cycle(Luck::Good).map(|due| due.point), Some(time("2026-06-11T00:30:00Z")));
    assert_eq!(life.cycle(Luck::Good), None);
}

/// One that somebody took meanwhile covers it, as it covers any point; the night's point takes over where none came.
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
fn it_is_tried_again_and_reported_as_missed_like_any_point() {
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
    ahead.world.records.renumbered.insert(uid(1), returned("2026-06-10T12:00:00Z"));
    assert_eq!(ahead.cycle(Luck::Good), None);

    let mut younger = back();
    younger.world.records.tiers[0].since = time("2026-06-10T11:00:01Z");
    assert_eq!(younger.cycle(Luck::Good), None);

    let mut unpromised = back();
    unpromised.world.records.protections.clear();
    unpromised.world.desired[0].policy = None;
    assert!(unpromised.plan().actions.is_empty(), "{}", unpromised.plan());
    let reports =
        crate::plan::report::guests(&unpromised.world.inputs(), &unpromised.plan(), (&BTreeMap::new(), 10));
    let reported = reports[0].protection.as_ref().unwrap().posture.as_ref().unwrap();
    assert_eq!(reported.is, Posture::Unprotected, "{reported:?}");

    let mut snapshots = back();
    let promise = std::sync::Arc::make_mut(snapshots.world.records.protections.get_mut(&uid(1)).unwrap());
    let local = promise.tiers.local.take().unwrap();
    promise.tiers.snapshot = Some(SnapshotTier { schedule: local.schedule, retention: local.retention });
    snapshots.world.records.tiers.clear();
    let taken: Vec<_> = snapshots.plan().actions.iter().map(|action| action.reason.clone()).collect();
    assert!(taken.iter().all(|reason| !reason.contains("came back")), "{taken:?}");
}

/// A guest that was backed up in the night to both tiers, and whose place a restored copy has since eleven.
fn swapped() -> Life {
    let mut life = back();
    let swapped = Renumbered {
        by: RenumberedBy::Swap,
        began_at: time("2026-06-10T10:40:00Z"),
        at: time("2026-06-10T11:00:00Z"),
    };
    life.world.records.renumbered.insert(uid(1), swapped);
    life
}

/// The first backup that a swap takes is of the copy already; one from before it is of what was laid aside.
#[test]
fn a_backup_that_the_swap_took_stands_for_it_and_none_from_before() {
    let mut life = swapped();
    life.keep(None, None, time("2026-06-10T10:39:59Z"));
    let why = life.plan().actions[0].reason.clone();
    assert_eq!(
        why,
        "another container took its place at 2026-06-10T11:00:00Z, so the newest local backup is of an earlier state: one is due"
    );
    let mut life = swapped();
    life.keep(None, None, time("2026-06-10T10:58:00Z"));
    assert_eq!(life.cycle(Luck::Good), None);
    life.now = time("2026-06-11T01:30:00Z");
    assert_eq!(life.cycle(Luck::Good).map(|due| due.point), Some(time("2026-06-11T00:30:00Z")));
}

/// The backup on the server is under the former VMID: an operator who loses the host before the next night would find
/// nothing newer.
#[test]
fn an_off_site_backup_follows_a_swap_at_once() {
    let mut life = swapped();
    life.keep(None, None, time("2026-06-10T10:58:00Z"));
    let promise = std::sync::Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    let backup = promise.tiers.local.clone().unwrap();
    let key = vec!["aa"; 32].join(":").parse().unwrap();
    promise.tiers.off_site = Some(OffSiteTier { key, verify_days: None, backup });
    let since = time("2026-06-01T12:00:00Z");
    life.world.records.tiers.push(TierRecord::new(uid(1), Tier::OffSite, since));
    let plan = life.plan();
    let [action] = plan.actions.as_slice() else { panic!("{plan}") };
    let Operation::Backup(backup) = &action.operation else { panic!("{plan}") };
    assert_eq!(
        backup.due.map(|due| (due.tier, due.point)),
        Some((Tier::OffSite, time("2026-06-10T11:00:00Z")))
    );
    assert!(action.reason.contains("newest off-site backup is of an earlier state"), "{}", action.reason);
}
