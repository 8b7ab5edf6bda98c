//! Tests that promises raised by a stolen hub keep producing backups.

use holdfast_protocol::protection::Consistency;
use jiff::SignedDuration;

use super::schedule::{Life, Luck, daily, life, time};
use super::*;
use crate::model::records::{EarlierSchedule, HelloRecord};

/// The raise of the review: it counted as no weaker.
fn minutely() -> serde_json::Value {
    json!({ "at": ["minutely"], "zone": "UTC", "jitter_min": 0, "window_min": 1440 })
}

pub(super) fn hello(at: Timestamp) -> HelloRecord {
    HelloRecord {
        reported: Default::default(),
        version: "0.1.0".to_owned(),
        health: holdfast_protocol::report::Health::Well,
        boot_id: "boot".to_owned(),
        build: None,
        at,
    }
}

/// Lives on minute by minute. When backups were begun.
fn minutes(life: &mut Life, count: i64, luck: Luck) -> Vec<Timestamp> {
    let lived = (0..count).filter_map(|_| {
        life.pass(1);
        if let Some(said) = &mut life.world.records.guests[0].hello {
            said.at = life.now;
        }
        life.cycle(luck).map(|_| life.now)
    });
    lived.collect()
}

fn codes(life: &Life) -> Vec<ErrorCode> {
    life.plan().verdicts[0].conditions.iter().map(|condition| condition.code).collect()
}

#[test]
fn a_guest_agent_that_says_hello_and_asks_no_window_keeps_no_schedule_from_its_backups() {
    let mut life = life(minutely(), "application", "2026-06-01T12:00:00Z");
    life.world.records.guests[0].hello = Some(hello(life.now));
    let begun = minutes(&mut life, 2 * 60, Luck::Good);
    // One wait for the guest agent and one distance lie between two of them at most.
    let most = limits::CONTROLLER_GRACE + limits::BACKUP_DISTANCE + SignedDuration::from_mins(2);
    let first = time("2026-06-01T12:00:00Z");
    let gaps: Vec<SignedDuration> = std::iter::once(&first)
        .chain(&begun)
        .zip(&begun)
        .map(|(one, next)| next.duration_since(*one))
        .collect();
    assert!(begun.len() >= 5 && gaps.iter().all(|gap| *gap <= most), "{gaps:?}");
    assert!(gaps.iter().skip(1).all(|gap| *gap >= limits::BACKUP_DISTANCE), "{gaps:?}");
}

#[test]
fn points_that_come_faster_than_backups_are_left_out_and_reported() {
    let mut life = life(minutely(), "crash", "2026-06-01T12:00:00Z");
    life.world.records.tiers[0].took = Some(SignedDuration::from_mins(25));
    let begun = minutes(&mut life, 3 * 60, Luck::Good);
    let gaps = begun.iter().zip(begun.iter().skip(1)).map(|(one, next)| next.duration_since(*one).as_mins());
    assert_eq!(gaps.collect::<Vec<_>>(), [50; 3], "at most half of the time");
    let reported = &life.plan().verdicts[0].conditions[0].message;
    assert!(reported.contains("50 minutes lie between the beginnings of two"), "{reported}");

    // The usual schedule leaves nothing out, and another try of one point has waits of its own.
    let mut usual = self::life(daily(), "crash", "2026-06-01T12:00:00Z");
    usual.world.records.tiers[0].took = Some(SignedDuration::from_mins(25));
    usual.now = time("2026-06-02T00:30:00Z");
    assert_eq!(minutes(&mut usual, 119, Luck::Bad).len(), limits::BACKUP_TRIES as usize);
}

#[test]
fn a_dense_schedule_of_which_nothing_comes_is_missed() {
    let mut life = life(minutely(), "crash", "2026-06-01T12:00:00Z");
    minutes(&mut life, 50, Luck::Bad);
    assert!(!codes(&life).contains(&ErrorCode::BackupMissed), "{}", life.plan());
    assert!(minutes(&mut life, 20, Luck::Bad).len() <= 2, "tries are not denser than backups");
    assert!(codes(&life).contains(&ErrorCode::BackupMissed), "{}", life.plan());
    let plan = life.plan();
    let reported =
        plan.verdicts[0].conditions.iter().find(|one| one.code == ErrorCode::BackupMissed).unwrap();
    assert!(reported.message.contains("since 2026-06-01T12:00:00Z"), "{}", reported.message);
    minutes(&mut life, 15, Luck::Good);
    assert!(!codes(&life).contains(&ErrorCode::BackupMissed), "{}", life.plan());
}

/// What was due before a raise is due, and missed, as before, until what is promised now produced a backup.
#[test]
fn an_old_promise_is_due_until_the_new_one_produced_a_backup() {
    let raised = |earlier: bool| {
        let mut life = life(
            json!({ "at": ["02:30", "14:00"], "zone": "Europe/Berlin", "jitter_min": 0, "window_min": 1440 }),
            "application",
            "2026-06-01T21:00:00Z",
        );
        life.world.records.guests[0].hello = Some(hello(life.now));
        if earlier {
            let schedule =
                json!({ "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 0, "window_min": 120 });
            life.world.records.tiers[0].earlier = Some(Box::new(EarlierSchedule {
                schedule: serde_json::from_value(schedule).unwrap(),
                consistency: Consistency::Crash,
                until: life.now,
            }));
        }
        life
    };
    let at = |earlier: bool, now: &str| {
        let mut life = raised(earlier);
        life.now = time(now);
        life.world.records.guests[0].hello = Some(hello(life.now));
        life
    };
    assert!(at(true, "2026-06-02T00:29:00Z").plan().actions.is_empty(), "nothing is due");
    assert_eq!(at(true, "2026-06-02T00:30:00Z").plan().actions.len(), 1, "the old one waits for nobody");
    assert!(at(false, "2026-06-02T00:30:00Z").plan().actions.is_empty(), "the new one alone waits");
    for (earlier, missed) in [(true, 1), (false, 0)] {
        let life = at(earlier, "2026-06-02T03:00:00Z");
        let count = codes(&life).iter().filter(|code| **code == ErrorCode::BackupMissed).count();
        assert_eq!(count, missed, "the new window is a day: {}", life.plan());
    }
    // Once the new one produced a backup, nothing of the old one is due any more.
    let mut after = raised(true);
    after.keep(
        Some(time("2026-06-01T12:00:00Z")),
        Some(holdfast_protocol::protection::Tier::Local),
        after.now,
    );
    after.now = time("2026-06-02T00:30:00Z");
    after.world.records.guests[0].hello = Some(hello(after.now));
    assert!(after.plan().actions.is_empty(), "{}", after.plan());
}

/// Whatever is promised, and signed for: programs stand still for their budget, and backups go on without.
#[test]
fn programs_stand_still_for_their_budget_and_no_longer() {
    let at = |stood_min: i64| {
        let mut life = life(daily(), "application", "2026-06-01T12:00:00Z");
        life.now = time("2026-06-02T01:16:00Z");
        life.world.records.guests[0].hello = Some(hello(life.now));
        life.world.records.stood_still.insert(uid(1), SignedDuration::from_mins(stood_min));
        life
    };
    assert_eq!(at(58).codes_of(ErrorCode::Quota), 0);
    let mut spent = at(60);
    assert_eq!(spent.codes_of(ErrorCode::Quota), 1, "{}", spent.plan());
    assert_eq!(spent.plan().actions.len(), 1, "nobody is waited for: {}", spent.plan());
    // More minutes by the operators' policy, or none at all.
    spent.world.records.backup_limits.still_min_per_day = 120;
    assert_eq!(spent.codes_of(ErrorCode::Quota), 0);
    let mut none = at(0);
    none.world.records.backup_limits.still_min_per_day = 0;
    assert_eq!(none.plan().actions.len(), 1, "{}", none.plan());
    // A tier that needs no programs to stand still is not concerned.
    let mut crash = life(daily(), "crash", "2026-06-01T12:00:00Z");
    crash.world.records.stood_still.insert(uid(1), SignedDuration::from_mins(600));
    assert_eq!(crash.codes_of(ErrorCode::Quota), 0);
}

#[test]
fn a_backup_is_not_begun_where_it_has_no_room() {
    use crate::model::observed::StorageFact;
    let filled = |available_gib: u64, last_gib: u64| {
        let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
        life.keep(
            Some(time("2026-06-01T00:30:00Z")),
            Some(holdfast_protocol::protection::Tier::Local),
            life.now,
        );
        std::sync::Arc::make_mut(&mut life.world.records.backups)[0].bytes = last_gib << 30;
        life.now = time("2026-06-02T01:20:00Z");
        let total = 1_000 << 30;
        let available = available_gib << 30;
        let fact = StorageFact::Active { total, used: total - available, available };
        life.world.observed.storages.insert("backup2".parse().unwrap(), fact);
        life
    };
    // A twentieth stays free, and the next one is a tenth larger than the last.
    for (available, last, begins) in
        [(500, 100, true), (160, 100, true), (159, 100, false), (50, 0, true), (49, 0, false), (0, 0, false)]
    {
        let life = filled(available, last);
        assert_eq!(life.plan().actions.len(), usize::from(begins), "{available} {last}: {}", life.plan());
        assert_eq!(life.codes_of(ErrorCode::StorageFull), usize::from(!begins), "{}", life.plan());
    }
    let reported = filled(49, 100).plan().verdicts[0].conditions[0].message.clone();
    assert!(
        reported.contains("49 GiB of 1000 GiB are available there, the next backup takes about 110 GiB"),
        "{reported}"
    );
    // The first backup on a storage is as large as those on others; the largest of the last three counts.
    let mut elsewhere = filled(159, 100);
    std::sync::Arc::make_mut(&mut elsewhere.world.records.backups)[0].storage = "other".parse().unwrap();
    assert_eq!(elsewhere.codes_of(ErrorCode::StorageFull), 1, "{}", elsewhere.plan());
    let kept = elsewhere.world.records.backups.to_vec();
    let (here, other) = ("backup2".parse().unwrap(), "other".parse().unwrap());
    let takes = crate::plan::schedule::space::takes;
    assert_eq!((takes(&kept, &here, 7), takes(&kept, &other, 7)), (110 << 30, 110 << 30));
    assert_eq!(takes(&[], &here, 20 << 30), 22 << 30, "what it is known to hold, where it has none at all");
    // Where no fill level is reported, no backup is held back.
    let mut unknown = filled(0, 0);
    unknown.world.observed.storages.insert("backup2".parse().unwrap(), StorageFact::Unknown);
    assert_eq!(unknown.plan().actions.len(), 1);
}
