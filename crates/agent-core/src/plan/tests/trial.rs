//! Tests of the schedule of restore tests.

use std::sync::Arc;

use holdfast_protocol::id::KeyFingerprint;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::local::window::Label;
use holdfast_protocol::protection::{Consistency, OffSiteTier, Posture, Protection as Promise, Tier, Took};
use jiff::SignedDuration;

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::policy::TestPlace;
use crate::model::records::{BackupWhy, OpenOperation, ParkedOperation, TestRecord, VolumeId};
use crate::model::request::{Ask, QueuedRequest};
use crate::operation::{Operation, RestoreTest};
use crate::plan::guest_requests::{Answer, RequestDecision};

const NOON: &str = "2026-03-10T12:00:00Z";

pub(super) fn place() -> TestPlace {
    TestPlace {
        range: VmidRange::try_from([vmid(900), vmid(909)]).unwrap(),
        pool: "holdfast-scratch".parse().unwrap(),
        storage: "fast".parse().unwrap(),
        bridge: "vmbr0".parse().unwrap(),
        memory: 1024.try_into().unwrap(),
        speech: None,
        twins: BTreeMap::new(),
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
    let promise = Promise::of_document(&life.world.desired[0], &life.world.policies).unwrap();
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
    if verdict == TestVerdict::Proved {
        life.world.records.proofs.insert(test.backup.taken_by, life.now);
    }
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
        bytes: None,
        took: Took::default(),
    });
}

/// The same guest, whose backups also go off-site at night, to be tried as often as this.
fn tested_in_both_tiers(off_site_days: u32) -> Life {
    let mut life = tested();
    let mut promise = Promise::clone(&life.world.records.protections[&uid(1)]);
    let mut backup = promise.tiers.local.clone().unwrap();
    backup.target = "pbs1".parse().unwrap();
    backup.restore_test_days = Some(off_site_days.try_into().unwrap());
    let key: KeyFingerprint = vec!["ab"; 32].join(":").parse().unwrap();
    promise.tiers.off_site = Some(OffSiteTier { key, verify_days: None, backup });
    life.world.records.protections.insert(uid(1), Arc::new(promise));
    night(&mut life, "2026-03-10");
    life
}

fn night(life: &mut Life, day: &str) {
    let point = time(&format!("{day}T04:00:00Z"));
    life.keep(Some(point), Some(Tier::OffSite), point);
    let backups = Arc::make_mut(&mut life.world.records.backups);
    let taken = backups.iter_mut().find(|backup| backup.point == Some(point)).unwrap();
    taken.archive = VolumeId::new(taken.archive.as_str().replacen("backup2", "pbs1", 1));
    taken.storage = "pbs1".parse().unwrap();
    taken.sealed = vec!["ab"; 32].join(":").parse().ok();
}

/// Of which storage the backup is that is tried next.
fn from(life: &Life) -> Option<String> {
    trial(life).and_then(|test| test.backup.archive.storage().map(str::to_owned))
}

fn later(life: &mut Life, hours: i64) {
    life.now = life.now.checked_add(SignedDuration::from_hours(hours)).unwrap();
}

#[test]
fn the_newest_backup_is_tried_and_again_before_a_week_is_over() {
    let mut life = tested();
    morning(&mut life, "2026-03-09");
    let newest = life.world.records.backups.iter().max_by_key(|backup| backup.taken_at).unwrap().clone();
    let test = trial(&life).unwrap();
    assert_eq!((test.backup.archive, test.backup.taken_by), (newest.archive, newest.taken_by));
    assert_eq!(test.place, place());
    note(&mut life, TestVerdict::BootedOnly);
    later(&mut life, 7 * 21 - 1);
    assert!(trial(&life).is_none());
    later(&mut life, 1);
    assert!(trial(&life).is_some());
}

/// A guest that is proved in time is protected all the time, although its next test waits for a day behind others.
#[test]
fn a_proof_is_renewed_before_it_is_too_old() {
    let mut life = tested();
    let mut reported = Vec::new();
    note(&mut life, TestVerdict::Proved);
    for day in 11..=30 {
        for _ in 0..24 {
            later(&mut life, 1);
            if life.now == time(&format!("2026-03-{day}T02:00:00Z")) {
                morning(&mut life, &format!("2026-03-{day}"));
            }
            let due = trial(&life).is_some();
            let posture = life.plan().verdicts[0].protection.as_ref().unwrap().posture.clone().unwrap();
            reported.push((life.now, due, posture.is));
            let waited = reported.iter().rev().take_while(|(_, due, _)| *due).count();
            if waited > 20 {
                note(&mut life, TestVerdict::Proved);
            }
        }
    }
    let bad: Vec<_> = reported.iter().filter(|(.., is)| *is != Posture::Protected).collect();
    assert!(bad.is_empty() && reported.iter().any(|(_, due, _)| *due), "{bad:?}");
}

/// A local backup that comes back says nothing about the off-site one, nor about its key.
#[test]
fn each_tier_is_tried_at_its_own_interval() {
    let mut life = tested_in_both_tiers(30);
    assert_eq!(from(&life).as_deref(), Some("backup2"), "the older one first");
    note(&mut life, TestVerdict::Proved);
    later(&mut life, 1);
    assert_eq!(from(&life).as_deref(), Some("pbs1"));
    note(&mut life, TestVerdict::Proved);
    assert_eq!(from(&life), None);
    later(&mut life, 7 * 21);
    morning(&mut life, "2026-03-16");
    night(&mut life, "2026-03-16");
    assert_eq!(from(&life).as_deref(), Some("backup2"));
    note(&mut life, TestVerdict::Failed);
    assert_eq!(from(&life), None, "a month is not over, and what failed waits");
    later(&mut life, 24);
    note(&mut life, TestVerdict::Proved);
    later(&mut life, 20 * 24);
    let tiers = [from(&life), {
        note(&mut life, TestVerdict::Proved);
        from(&life)
    }];
    assert_eq!(tiers, ["backup2", "pbs1"].map(|name| Some(name.to_owned())), "the longest overdue first");
}

/// What the retention took away was tried all the same.
#[test]
fn a_test_counts_for_its_tier_when_its_backup_is_gone() {
    let mut life = tested_in_both_tiers(7);
    note(&mut life, TestVerdict::BootedOnly);
    note(&mut life, TestVerdict::BootedOnly);
    Arc::make_mut(&mut life.world.records.backups).clear();
    morning(&mut life, "2026-03-11");
    night(&mut life, "2026-03-11");
    later(&mut life, 24);
    assert_eq!(from(&life), None);
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

/// Three newer ones lay there for an hour, and it was said that the next one would be tried.
#[test]
fn after_one_that_failed_a_newer_one_is_tried_at_once() {
    let mut life = tested();
    standing_still(&mut life, "2026-03-11");
    later(&mut life, 14);
    note(&mut life, TestVerdict::Failed);
    let reported = |life: &Life| -> String {
        let conditions = &life.plan().verdicts[0].conditions;
        let failed = conditions.iter().find(|one| one.code == ErrorCode::RestoreTestFailed);
        failed.expect("it is told").message.clone()
    };
    assert!(reported(&life).ends_with("with the next local backup, or after a day"), "{}", reported(&life));
    // Those that came after it hold less: it is they that are still hoped for. That tries came to nothing holds up none.
    morning(&mut life, "2026-03-12");
    life.now = time("2026-03-12T02:00:00Z");
    let (kind, message) = (OperationKind::RestoreTest, "it did not come back".to_owned());
    life.world.records.attempts = vec![Attempts { guest: uid(1), kind, failed: 9, last: life.now, message }];
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-12T01:30:00Z"));
    assert!(
        reported(&life).ends_with("the local backup that came after it is tried next"),
        "{}",
        reported(&life)
    );
    note(&mut life, TestVerdict::Failed);
    assert!(trial(&life).is_none(), "each once");
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
    life.world.records.parked.push(parked_test(uid(1)));
    assert!(trial(&life).is_none(), "what one left comes first");
}

fn parked_test(about: GuestUid) -> ParkedOperation {
    let (guest, message) = (crate::operation::restore_test::LANE, "left half-made".to_owned());
    ParkedOperation { id: op(9), kind: OperationKind::RestoreTest, guest, about, message }
}

#[test]
fn a_parked_test_of_one_guest_does_not_stop_those_of_others_until_there_are_too_many() {
    let mut life = tested();
    for other in 2..2 + u128::try_from(limits::PARKED_TESTS).unwrap() {
        assert!(trial(&life).is_some(), "{other}: what others left is not this guest's");
        life.world.records.parked.push(parked_test(GuestUid::new(uuid::Uuid::from_u128(other))));
    }
    assert!(trial(&life).is_none(), "each left a copy on the storage of tests");
    life.world.records.parked.pop();
    assert!(trial(&life).is_some(), "somebody answered to one");
}

/// The only backup is the one that the guest's making took, an hour ago.
fn just_made() -> Life {
    let mut life = tested();
    Arc::make_mut(&mut life.world.records.backups).clear();
    life.keep(None, None, time("2026-03-10T11:00:00Z"));
    Arc::make_mut(&mut life.world.records.backups)[0].why = BackupWhy::First;
    life
}

/// As `vzdump` took it while the programs stood still.
fn standing_still(life: &mut Life, day: &str) {
    morning(life, day);
    let label = Label { consistency: Consistency::Application, why: "2 stopped".to_owned() };
    let point = Some(time(&format!("{day}T01:30:00Z")));
    let backups = Arc::make_mut(&mut life.world.records.backups);
    backups.iter_mut().find(|backup| backup.point == point).unwrap().label = Some(label);
}

/// Nothing ran in the guest when its making took that one: a test of it would say "only booted", and the next one is days away.
#[test]
fn the_first_test_waits_a_day_for_a_backup_in_which_something_ran() {
    let mut life = just_made();
    assert!(trial(&life).is_none());
    later(&mut life, 15);
    standing_still(&mut life, "2026-03-11");
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-11T01:30:00Z"), "as soon as it is there");
    let mut life = just_made();
    later(&mut life, 22);
    assert!(trial(&life).is_none());
    later(&mut life, 1);
    assert!(trial(&life).is_some(), "and it is tried all the same when no other comes");
}

#[test]
fn what_only_booted_is_made_up_for_by_the_first_backup_that_can_prove_more() {
    let mut life = just_made();
    later(&mut life, 24);
    note(&mut life, TestVerdict::BootedOnly);
    later(&mut life, 1);
    assert!(trial(&life).is_none());
    standing_still(&mut life, "2026-03-11");
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-11T01:30:00Z"));
    note(&mut life, TestVerdict::BootedOnly);
    standing_still(&mut life, "2026-03-12");
    later(&mut life, 24);
    assert!(trial(&life).is_none(), "once: from then on it goes by its interval");
}

/// Somebody asked for one without a window this noon; the night's holds programs that stood still.
#[test]
fn a_backup_with_something_to_prove_goes_before_a_newer_one_without() {
    let mut life = tested();
    standing_still(&mut life, "2026-03-09");
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-09T01:30:00Z"));
    // One from before the interval of tests says nothing of what is taken now.
    let mut life = tested();
    standing_still(&mut life, "2026-03-01");
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-10T01:30:00Z"));
}

/// As on a host that took a lost one's place: Proxmox shows no token what is in the backups of a guest that is in no
/// pool.
#[test]
fn no_backup_of_a_guest_that_is_not_back_is_tried() {
    let mut life = tested();
    life.world.observed.guests.remove(&vmid(300));
    assert!(trial(&life).is_none());
}

/// The same tier, key and target as a scheduled one; but it covers no point, since no programs stand still for it.
#[test]
fn a_backup_of_a_tier_goes_where_the_tier_goes() {
    let mut life = tested_in_both_tiers(7);
    life.world.policy.backup_storage = Some("pbs1".parse().unwrap());
    let (id, guest) = (op(3), uid(1));
    let ask = Ask::Backup { tier: Some(Tier::OffSite) };
    life.world.records.requests.push(QueuedRequest { serial: 1, id, guest, ask, asked_at: life.now });
    let plan = life.plan();
    let [RequestDecision { answer: Answer::Begin(action), .. }] = plan.asked.as_slice() else {
        panic!("{plan}")
    };
    let Operation::Backup(backup) = &action.operation else { panic!("{plan}") };
    assert_eq!((backup.storage.as_str(), backup.why, backup.due), ("pbs1", BackupWhy::Asked, None));
    assert_eq!(backup.key, vec!["ab"; 32].join(":").parse().ok());
}

/// Backups under a former VMID can mostly not be read: there is a newer one under the present one, and that is tried.
#[test]
fn a_backup_under_a_former_vmid_is_tried_only_while_there_is_no_other() {
    let mut life = tested();
    Arc::make_mut(&mut life.world.records.backups).clear();
    standing_still(&mut life, "2026-03-09");
    Arc::make_mut(&mut life.world.records.backups)[0].vmid = vmid(399);
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-09T01:30:00Z"));
    note(&mut life, TestVerdict::NotRun);
    assert!(trial(&life).is_none(), "within the hour");
    morning(&mut life, "2026-03-10");
    assert_eq!(trial(&life).unwrap().backup.taken_at, time("2026-03-10T01:30:00Z"), "and not only after it");
}
