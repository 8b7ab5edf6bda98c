//! Tests of scheduled snapshots.

use std::sync::Arc;

use holdfast_protocol::protection::{Posture, Tier};

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::records::TierRecord;
use crate::operation::{DuePoint, ExpiryWhy, Operation};

/// A guest whose policy has a snapshot every hour in addition to its nightly backup, or alone.
fn hourly(retention: serde_json::Value) -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    let schedule = json!({ "at": ["*:00"], "zone": "UTC", "jitter_min": 10, "window_min": 30 });
    let tier = serde_json::from_value(json!({ "schedule": schedule, "retention": retention })).unwrap();
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.snapshot = Some(tier);
    life.world.policies[0].tiers = promise.tiers.clone();
    let since = life.now;
    life.world.records.tiers.insert(0, TierRecord::new(uid(1), Tier::Snapshot, since));
    life
}

/// One that covers a point.
fn stand(life: &mut Life, n: u128, point: Timestamp) {
    let name = point.strftime("scheduled-%Y%m%dT%H%M%SZ").to_string().parse().unwrap();
    let own = SnapshotRecord {
        name,
        made_by: op(n),
        taken_by: TakenBy::Schedule,
        taken_at: point,
        expires_at: None,
        point: Some(point),
        ..snapshot(1, "s1", 60)
    };
    life.world.records.snapshots.push(own);
}

/// What is begun, done at once.
fn cycle(life: &mut Life, n: u128) -> Option<Operation> {
    let plan = life.plan();
    assert!(plan.actions.len() <= 1, "{plan}");
    let operation = plan.actions.into_iter().next()?.operation;
    match &operation {
        Operation::Snapshot(new) => {
            let DuePoint { tier, point, .. } = new.due.unwrap();
            assert_eq!((tier, new.taken_by, new.expires_at), (Tier::Snapshot, TakenBy::Schedule, None));
            stand(life, n, point);
        }
        Operation::ExpireSnapshot(gone) => {
            assert_eq!(gone.why, ExpiryWhy::OutsidePolicy);
            life.world.records.snapshots.retain(|own| own.made_by != gone.made_by);
        }
        Operation::Backup(backup) => {
            let due = backup.due.unwrap();
            life.keep(Some(due.point), Some(due.tier), life.now);
        }
        other => panic!("{other:?}"),
    }
    Some(operation)
}

#[test]
fn each_point_has_one_and_as_many_stay_as_the_retention_says() {
    let mut life = hourly(json!({ "keep": { "last": 4, "daily": 3 } }));
    // One that the guest asked for, and one that an operator took: no schedule touches them.
    life.world.records.snapshots.push(SnapshotRecord { made_by: op(1), ..snapshot(1, "own", 9_000_000) });
    let job = SnapshotRecord { made_by: op(2), taken_by: TakenBy::Job, ..snapshot(1, "job", 9_000_000) };
    life.world.records.snapshots.push(job);
    let (mut taken, mut backups) = (0, 0);
    for n in 0..4 * 24 * 6 {
        match cycle(&mut life, 100 + n) {
            Some(Operation::Snapshot(_)) => taken += 1,
            Some(Operation::Backup(_)) => backups += 1,
            _ => {}
        }
        life.pass(10);
    }
    assert_eq!((taken, backups), (4 * 24, 4), "each point once, and the nights beside them");
    let names: Vec<String> = life.world.records.snapshots.iter().map(|own| own.name.to_string()).collect();
    assert!(names.contains(&"own".to_owned()) && names.contains(&"job".to_owned()), "{names:?}");
    // The last four, and the newest of each of three days that these leave out.
    assert_eq!(names.len(), 2 + 4 + 3, "{names:?}");
    assert!(life.plan().verdicts[0].conditions.is_empty(), "{}", life.plan());
}

#[test]
fn a_snapshot_is_no_backup() {
    let mut life = hourly(json!({ "keep": { "last": 4 } }));
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    promise.tiers.local = None;
    life.world.records.tiers.truncate(1);
    life.pass(75);
    assert!(matches!(cycle(&mut life, 100), Some(Operation::Snapshot(_))));
    let plan = life.plan();
    let reported = plan.verdicts[0].protection.as_ref().unwrap().posture.clone().unwrap();
    assert_eq!(reported.is, Posture::Unprotected, "{reported:?}");
    assert!(
        reported.why[0].contains("gone with it") && reported.why[1].contains("scheduled-20260601T13"),
        "{reported:?}"
    );
    // What was missed is reported, and is no backup that was missed.
    life.world.seen(300).lock = Some("backup".to_owned());
    life.pass(90);
    let plan = life.plan();
    let codes: Vec<ErrorCode> = plan.verdicts[0].conditions.iter().map(|reported| reported.code).collect();
    assert!(codes.contains(&ErrorCode::Unavailable) && !codes.contains(&ErrorCode::BackupMissed), "{plan}");
}

#[test]
fn nothing_goes_by_a_clock_that_jumped_nor_what_is_of_a_time_to_come() {
    let mut life = hourly(json!({ "keep": { "last": 1 } }));
    life.now = time("2026-06-01T15:50:00Z");
    for (n, hour) in [(100, 13), (101, 14), (102, 15)] {
        stand(&mut life, n, time(&format!("2026-06-01T{hour}:00:00Z")));
    }
    stand(&mut life, 103, time("2031-06-01T15:00:00Z"));
    let unsteady = TrustedTime { at: life.now, since: life.since, steady: Steady::No };
    let none = plan(&Inputs { now: life.now, time: unsteady, ..life.world.inputs() });
    assert!(none.actions.is_empty(), "{none}");
    for left in [3, 2] {
        assert!(matches!(cycle(&mut life, 200), Some(Operation::ExpireSnapshot(_))), "{}", life.plan());
        assert_eq!(life.world.records.snapshots.len(), left);
    }
    assert_eq!(cycle(&mut life, 200), None, "the newest stays, and so does what nobody can date");
}

#[test]
fn a_retention_that_keeps_too_many_is_reported_and_a_tier_that_was_signed_away_keeps_none() {
    let mut life = hourly(json!("keep_all"));
    let first = time("2026-05-31T00:00:00Z");
    for n in 0..limits::SCHEDULED_SNAPSHOTS_PER_GUEST {
        let hours = SignedDuration::from_hours(i64::try_from(n).unwrap());
        stand(&mut life, 100 + u128::try_from(n).unwrap(), first.checked_add(hours).unwrap());
    }
    life.pass(59);
    life.pass(60);
    let plan = life.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    assert!(plan.verdicts[0].conditions.iter().any(|reported| reported.code == ErrorCode::Quota), "{plan}");
    Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap()).tiers.snapshot = None;
    life.world.records.tiers.remove(0);
    for _ in 0..limits::SCHEDULED_SNAPSHOTS_PER_GUEST {
        assert!(matches!(cycle(&mut life, 500), Some(Operation::ExpireSnapshot(_))), "{}", life.plan());
    }
    assert!(life.world.records.snapshots.is_empty() && life.plan().actions.is_empty());
}

#[test]
fn a_scheduled_snapshot_under_another_number_stays() {
    let mut life = hourly(json!({ "keep": { "last": 1 } }));
    for (n, hour) in [(10, 9), (11, 10), (12, 11)] {
        stand(&mut life, n, time(&format!("2026-06-01T{hour:02}:00:00Z")));
    }
    let goes = |life: &Life| match life.plan().actions.first().map(|action| action.operation.clone()) {
        Some(Operation::ExpireSnapshot(gone)) => Some(gone.made_by),
        _ => None,
    };
    assert_eq!(goes(&life), Some(op(10)));
    life.world.records.snapshots[0].vmid = vmid(398);
    assert_eq!(goes(&life), None);
}
