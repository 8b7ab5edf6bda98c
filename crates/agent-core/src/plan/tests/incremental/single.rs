//! Single changes after which a kept judgement holds no more.

use std::sync::Arc;

use holdfast_protocol::protection::{Protection as Promise, ProtectionReport, Tier};
use jiff::SignedDuration;

use super::super::schedule::{Life, daily, life, time};
use super::super::*;
use crate::model::observed::BackupListing;

/// A guest with five nights of backups, of which three are to be kept, whose newest was proved nearly a week ago.
fn settled() -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.now = time("2026-06-10T12:00:00Z");
    change_promise(&mut life, |promise| {
        promise.tiers.local.as_mut().unwrap().restore_test_days = Some(7.try_into().unwrap());
    });
    for day in 6..=10 {
        let point = time(&format!("2026-06-{day:02}T00:30:00Z"));
        life.keep(Some(point), Some(Tier::Local), point);
    }
    let (protected, verified) = (BTreeSet::new(), BTreeMap::new());
    let listing = BackupListing::Listed { protected, verified, pruned_by: None };
    life.world.observed.listings.insert("backup2".parse().unwrap(), listing);
    let newest = life.world.records.backups[4].taken_by;
    life.world.records.proofs.insert(newest, time("2026-06-03T13:00:00Z"));
    let test = OpenOperation { id: op(9), kind: OperationKind::RestoreTest, guest: uid(9) };
    life.world.records.open.push(test);
    life
}

/// Changes what is in force, and what the document asks for.
fn change_promise(life: &mut Life, change: impl Fn(&mut Promise)) {
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    change(promise);
    life.world.policies[0].tiers = promise.tiers.clone();
}

fn pass_hours(life: &mut Life, hours: i64) {
    life.now = life.now.checked_add(SignedDuration::from_hours(hours)).unwrap();
}

fn planned(life: &Life, memory: &mut Memory) -> Plan {
    let time = TrustedTime { at: life.now, since: life.since, steady: Steady::Yes };
    let document = format!("{:?} {:?}", life.world.desired, life.world.policies);
    let content = Some(ContentHash::of(document.as_bytes()));
    let inputs = Inputs { now: life.now, time, content, ..life.world.inputs() };
    let plan = plan_with(&inputs, memory);
    assert_eq!(plan, super::super::plan(&inputs));
    plan
}

fn report(plan: &Plan) -> &Arc<ProtectionReport> {
    plan.verdicts[0].protection.as_ref().unwrap()
}

/// What is set up before, and what changes.
type Change = (&'static str, fn(&mut Life), fn(&mut Life));

const NOTHING: fn(&mut Life) = |_| {};

#[rustfmt::skip]
const CHANGES: &[Change] = &[
    ("a proof grows too old", NOTHING, |life| pass_hours(life, 2)),
    ("no restore test is under way any more, so a backup goes", NOTHING, |life| life.world.records.open.clear()),
    ("another retention", NOTHING, |life| change_promise(life, |promise| {
        promise.tiers.local.as_mut().unwrap().retention = serde_json::from_value(json!({ "keep": { "last": 4 } })).unwrap();
    })),
    ("an operator changed what is in force", NOTHING, |life| {
        let policies = life.world.policies.clone();
        change_promise(life, |promise| promise.tiers.local.as_mut().unwrap().restore_test_days = None);
        life.world.policies = policies;
    }),
    ("Proxmox leaves a volume out", |life| {
        life.world.desired[0].volumes[0].kind = serde_json::from_value(json!({ "bulk": { "backup_to": "backup2" } })).unwrap();
        let promise = Promise::of_document(&life.world.desired[0], &life.world.policies).unwrap();
        life.world.records.protections.insert(uid(1), Arc::new(promise));
    }, |life| life.world.facts(300).mounts.values_mut().for_each(|mount| mount.backup = BackupFlag::Off)),
    ("the storage is full", NOTHING, |life| {
        let full = StorageFact::Active { total: 100 << 30, used: 100 << 30, available: 0 };
        life.world.observed.storages.insert("backup2".parse().unwrap(), full);
    }),
    ("the target is approved no more", NOTHING, |life| life.world.policy.backup_storage = None),
    ("a new point is due", NOTHING, |life| pass_hours(life, 14)),
];

#[test]
fn each_single_change_is_seen() {
    for (what, before, change) in CHANGES {
        let (mut life, mut memory) = (settled(), Memory::default());
        before(&mut life);
        let first = planned(&life, &mut memory);
        let second = planned(&life, &mut memory);
        assert!(Arc::ptr_eq(report(&first), report(&second)), "{what}: nothing changed yet");
        change(&mut life);
        let third = planned(&life, &mut memory);
        assert_ne!(third, second, "{what}: it makes a difference");
    }
}

/// A removal that failed is tried again when its wait is over, which no list says.
#[test]
fn a_guest_with_something_that_waits_is_judged_each_time() {
    let (mut life, mut memory) = (settled(), Memory::default());
    life.world.records.open.clear();
    life.world.records.attempts.push(Attempts {
        guest: uid(1),
        kind: OperationKind::PruneBackup,
        failed: 1,
        last: life.now,
        message: "the disk is slow".to_owned(),
    });
    assert!(planned(&life, &mut memory).actions.is_empty());
    pass_hours(&mut life, 1);
    assert_eq!(planned(&life, &mut memory).actions.len(), 1);
}
