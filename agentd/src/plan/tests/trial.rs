//! Which backup is tried when: the newest good one, at the promised interval, one at a time.

use std::sync::Arc;

use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::protection::{Protection as Promise, Tier};
use jiff::SignedDuration;

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::policy::TestPlace;
use crate::model::record::{OpenOperation, ParkedOperation, TestRecord};
use crate::operation::{Operation, RestoreTest};

const NOON: &str = "2026-03-10T12:00:00Z";

fn place() -> TestPlace {
    TestPlace {
        range: VmidRange::try_from([vmid(900), vmid(909)]).unwrap(),
        pool: "holdfast-scratch".parse().unwrap(),
        storage: "fast".parse().unwrap(),
        bridge: "vmbr0".parse().unwrap(),
        memory: 1024.try_into().unwrap(),
        speech: None,
        cores: 1.try_into().unwrap(),
    }
}

/// A guest with a backup of this morning, whose backups are to be tried every week.
fn tested() -> Life {
    let mut life = life(daily(), "crash", NOON);
    life.world.policy.scratch = Some(place());
    let mut policies = serde_json::to_value(&life.world.policies).unwrap();
    policies[0]["tiers"]["local"]["restore_test_days"] = json!(7);
    life.world.policies = serde_json::from_value(policies).unwrap();
    let promise = Promise::wished(&life.world.desired[0], &life.world.policies).unwrap();
    life.world.records.protections.insert(uid(1), Arc::new(promise));
    morning(&mut life, "2026-03-10");
    life
}

fn morning(life: &mut Life, day: &str) {
    let point = time(&format!("{day}T01:30:00Z"));
    life.keep(Some(point), Some(Tier::Local), point);
}

fn trial(life: &Life) -> Option<RestoreTest> {
    let plan = life.plan();
    let tests = plan.actions.into_iter().filter_map(|action| match action.operation {
        Operation::RestoreTest(test) => Some(*test),
        _ => None,
    });
    let tests: Vec<RestoreTest> = tests.collect();
    assert!(tests.len() <= 1, "one at a time");
    tests.into_iter().next()
}

/// What the store writes down of it.
fn note(life: &mut Life, verdict: TestVerdict) {
    let test = trial(life).expect("one is due");
    life.world.records.tests.push(TestRecord {
        operation: op(77),
        guest: test.guest,
        archive: test.backup.archive,
        backup: test.backup.taken_by,
        taken_at: test.backup.taken_at,
        verdict,
        why: "as the story wants it".to_owned(),
        began_at: life.now,
        at: life.now,
    });
}

fn later(life: &mut Life, hours: i64) {
    life.now = life.now.checked_add(SignedDuration::from_hours(hours)).unwrap();
}

#[test]
fn the_newest_backup_is_tried_and_then_not_again_for_a_week() {
    let mut life = tested();
    morning(&mut life, "2026-03-09");
    let newest = life.world.records.backups.iter().max_by_key(|backup| backup.taken_at).unwrap().clone();
    let test = trial(&life).unwrap();
    assert_eq!((test.backup.archive, test.backup.taken_by), (newest.archive, newest.taken_by));
    assert_eq!(test.place, place());
    note(&mut life, TestVerdict::BootedOnly);
    later(&mut life, 7 * 24 - 1);
    assert!(trial(&life).is_none());
    later(&mut life, 1);
    assert!(trial(&life).is_some());
}

#[test]
fn what_failed_is_tried_again_with_the_next_backup_or_after_a_day() {
    let mut life = tested();
    note(&mut life, TestVerdict::Failed);
    later(&mut life, 23);
    assert!(trial(&life).is_none());
    morning(&mut life, "2026-03-11");
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-11T01:30:00Z"));
    let mut life = tested();
    note(&mut life, TestVerdict::Failed);
    later(&mut life, 24);
    assert!(trial(&life).is_some(), "and the same one again, when no other came");
}

#[test]
fn what_could_not_be_run_is_tried_again_within_the_hour() {
    let mut life = tested();
    note(&mut life, TestVerdict::NotRun);
    assert!(trial(&life).is_none());
    later(&mut life, 1);
    assert!(trial(&life).is_some());
}

#[test]
fn nothing_is_tried_without_a_place_a_promise_a_backup_or_a_free_lane() {
    let mut life = tested();
    life.world.policy.scratch = None;
    assert!(trial(&life).is_none());

    let mut life = tested();
    life.world.records.protections.clear();
    assert!(trial(&life).is_none());

    let mut life = tested();
    for backup in Arc::make_mut(&mut life.world.records.backups) {
        backup.missing_since = Some(time(NOON));
    }
    assert!(trial(&life).is_none(), "what is not there cannot be tried");

    let mut life = tested();
    let (id, kind) = (op(9), OperationKind::RestoreTest);
    life.world.records.open.push(OpenOperation { id, kind, guest: crate::operation::restore_test::LANE });
    assert!(trial(&life).is_none(), "one at a time");

    let mut life = tested();
    let (guest, message) = (crate::operation::restore_test::LANE, "left half-made".to_owned());
    life.world.records.parked.push(ParkedOperation { id, kind, guest, message });
    assert!(trial(&life).is_none(), "what one left comes first");
}
