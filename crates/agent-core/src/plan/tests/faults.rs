//! Tests of tier faults, from cause to end.

use std::sync::Arc;

use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::local::window::Label;
use holdfast_protocol::protection::{Consistency, Tier};

use super::posture::{backed_up, prove, tested};
use super::schedule::{Life, Luck, daily, life, time};
use super::*;
use crate::model::records::BackupRecord;
use crate::model::tier_fault::{TierFault, TierFaultKind};

fn faults(life: &Life) -> Vec<TierFaultKind> {
    let faults = life.plan().verdicts[0].faults.clone();
    assert!(faults.iter().all(|fault| fault.tier == Tier::Local), "{faults:?}");
    faults.into_iter().map(|TierFault { kind, .. }| kind).collect()
}

/// A guest with a proved backup of last night.
fn sound() -> Life {
    let mut life = backed_up(Some(7));
    prove(&mut life, "2026-06-10T03:00:00Z");
    assert_eq!(faults(&life), Vec::new());
    life
}

fn newest(life: &mut Life) -> &mut BackupRecord {
    Arc::make_mut(&mut life.world.records.backups).last_mut().unwrap()
}

#[test]
fn a_window_that_passes_is_missed_and_then_late() {
    let mut life = sound();
    let (point, ended) = (time("2026-06-11T00:30:00Z"), time("2026-06-11T02:30:00Z"));
    life.now = ended;
    assert_eq!(faults(&life), Vec::new(), "the window is not over");
    life.now = time("2026-06-11T12:00:00Z");
    assert_eq!(faults(&life), [TierFaultKind::Missed { point, ended }]);
    // The next point comes, and nothing came of that one.
    life.now = time("2026-06-12T01:00:00Z");
    let newest = Some(time("2026-06-10T00:30:00Z"));
    assert_eq!(faults(&life), [TierFaultKind::Late { since: point, newest }]);
    life.now = time("2026-06-12T01:20:00Z");
    assert!(life.cycle(Luck::Good).is_some());
    assert_eq!(faults(&life), Vec::new());
}

#[test]
fn a_try_that_failed_counts_until_a_backup_comes() {
    let mut life = sound();
    let point = time("2026-06-11T00:30:00Z");
    life.now = time("2026-06-11T01:20:00Z");
    assert!(life.cycle(Luck::Bad).is_some());
    let last = life.now;
    let failed = TierFaultKind::Failed { point, last, times: 1 };
    assert_eq!(faults(&life), std::slice::from_ref(&failed));
    // Its operation may be the one that is open.
    life.world.records.open.push(OpenOperation { id: op(7), kind: OperationKind::Backup, guest: uid(1) });
    assert_eq!(faults(&life), Vec::new());
    life.world.records.open.clear();
    life.now = time("2026-06-11T12:00:00Z");
    assert_eq!(faults(&life), [failed], "it failed, so it is not missed");
    assert!(life.cycle(Luck::Good).is_some());
    assert_eq!(faults(&life), Vec::new());
}

#[test]
fn a_backup_that_its_storage_does_not_list_is_missing() {
    let mut life = sound();
    let since = life.now;
    newest(&mut life).missing_since = Some(since);
    let archive = newest(&mut life).archive.to_string();
    let gone = TierFaultKind::Missing { since, count: 1, newest: archive };
    let found = faults(&life);
    assert!(found.contains(&gone), "{found:?}");
    let says_failed = found.iter().any(|fault| matches!(fault, TierFaultKind::Failed { .. }));
    assert!(!says_failed, "the try that made it did not fail: {found:?}");
    newest(&mut life).missing_since = None;
    assert_eq!(faults(&life), Vec::new());
}

#[test]
fn a_backup_of_running_programs_differs_from_one_of_stopped_programs() {
    let mut life = sound();
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local.as_mut().unwrap().consistency = Consistency::Application;
    let label = |consistency| Some(Label { consistency, why: "no window".to_owned() });
    newest(&mut life).label = label(Consistency::Application);
    assert_eq!(faults(&life), Vec::new());
    newest(&mut life).label = label(Consistency::Crash);
    let (taken_at, why) = (time("2026-06-10T00:30:00Z"), "no window".to_owned());
    assert_eq!(faults(&life), [TierFaultKind::CrashConsistent { taken_at, why }]);
}

#[test]
fn a_failed_test_counts_until_one_passes() {
    let mut life = sound();
    tested(&mut life, TestVerdict::Failed, "2026-06-10T05:00:00Z", "it did not come up");
    let TierFaultKind::TestFailed { at, why } = faults(&life).remove(0) else {
        panic!("{:?}", faults(&life))
    };
    assert_eq!(at, time("2026-06-10T05:00:00Z"));
    assert!(why.ends_with("it did not come up"), "{why}");
    tested(&mut life, TestVerdict::Proved, "2026-06-10T06:00:00Z", "all is well");
    assert_eq!(faults(&life), Vec::new());
}

#[test]
fn a_proof_is_overdue_after_the_promised_days() {
    let overdue = |life: &Life| {
        let mut all = faults(life).into_iter();
        all.find_map(|fault| match fault {
            TierFaultKind::TestOverdue { since, .. } => Some(since),
            _ => None,
        })
    };
    let mut life = sound();
    life.now = time("2026-06-17T03:00:00Z");
    assert_eq!(overdue(&life), None);
    life.now = time("2026-06-17T03:00:01Z");
    assert_eq!(overdue(&life), Some(time("2026-06-17T03:00:00Z")));
    // Never proved: the time counts from the promise.
    let mut unproved = backed_up(Some(7));
    assert_eq!(overdue(&unproved), Some(time("2026-06-08T12:00:00Z")));
    unproved.now = time("2026-06-08T12:00:00Z");
    assert_eq!(overdue(&unproved), None);
    assert_eq!(overdue(&backed_up(None)), None, "none is promised");
    let mut without = life_without_backup();
    without.now = time("2026-06-30T12:00:00Z");
    assert_eq!(overdue(&without), None, "there is nothing to try");
}

fn life_without_backup() -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local.as_mut().unwrap().restore_test_days = Some(7.try_into().unwrap());
    life
}
