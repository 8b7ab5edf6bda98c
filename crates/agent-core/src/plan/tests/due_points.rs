//! Tests of what is due, and what is reported of it.

use std::sync::Arc;

use holdfast_protocol::protection::{Consistency, Schedule, Tier};
use jiff::SignedDuration;

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::records::{BackupWhy, EarlierSchedule};
use crate::model::request::{Ask, QueuedRequest};
use crate::operation::Operation;
use crate::plan::schedule::points::{Around, Purpose};

fn backups(life: &mut Life) -> &mut Vec<crate::model::records::BackupRecord> {
    Arc::make_mut(&mut life.world.records.backups)
}

fn messages(life: &Life, code: ErrorCode) -> Vec<String> {
    let of_code = |condition: &holdfast_protocol::report::Condition| condition.code == code;
    let plan = life.plan();
    plan.verdicts[0].conditions.iter().filter(|one| of_code(one)).map(|one| one.message.clone()).collect()
}

/// A promise of 14:00 that took the place of one of 02:30 in the evening of the first day.
fn raised(consistency: &str) -> Life {
    let later = json!({ "at": ["14:00"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let mut life = life(later, consistency, "2026-06-01T21:00:00Z");
    let earlier = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    life.world.records.tiers[0].earlier = Some(Box::new(EarlierSchedule {
        schedule: serde_json::from_value(earlier).unwrap(),
        consistency: Consistency::Crash,
        until: life.now,
    }));
    life
}

#[test]
fn an_earlier_promise_ends_with_a_backup_that_is_one_of_the_new_promise() {
    // Whether 02:30 is still due on the second day, after a backup of this tier and moment.
    let still_due = |consistency: &str, tier: Option<Tier>, taken: &str| {
        let mut life = raised(consistency);
        life.keep(None, tier, time(taken));
        life.now = time("2026-06-02T02:30:00Z");
        !life.plan().actions.is_empty()
    };
    assert!(!still_due("crash", Some(Tier::Local), "2026-06-01T22:00:00Z"));
    assert!(!still_due("crash", None, "2026-06-01T22:00:00Z"), "one that somebody asked for will do");
    assert!(still_due("application", None, "2026-06-01T22:00:00Z"), "nothing stood still for it");
    assert!(
        still_due("crash", Some(Tier::Local), "2026-06-01T20:00:00Z"),
        "it is older than the new promise"
    );
}

#[test]
fn a_point_of_the_new_promise_is_begun_as_itself() {
    let mut life = raised("crash");
    life.keep(Some(time("2026-06-01T02:30:00Z")), Some(Tier::Local), time("2026-06-01T02:30:00Z"));
    life.now = time("2026-06-02T14:00:00Z");
    // The earlier promise is missed by now, and caught up: then both would begin, and the new one begins first.
    let plan = life.plan();
    let Operation::Backup(backup) = &plan.actions[0].operation else { panic!("{plan}") };
    assert_eq!(backup.due.unwrap().point, time("2026-06-02T14:00:00Z"));
}

#[test]
fn the_plan_is_made_again_when_the_next_point_comes_and_not_before() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.keep(Some(time("2026-06-01T00:30:00Z")), Some(Tier::Local), time("2026-06-01T00:30:00Z"));
    let schedule = life.schedule();
    let next = Around::of(&schedule, life.now).next_begins(&schedule, uid(1), Tier::Local).unwrap();
    assert_eq!(life.plan().again_at, Some(next));
    life.now = next;
    assert_eq!(life.plan().actions.len(), 1);
    assert!(life.plan().again_at.is_none_or(|again| again > next), "{:?}", life.plan().again_at);
}

#[test]
fn backups_that_are_not_listed_are_counted_and_the_newest_is_named() {
    let mut life = life(daily(), "crash", "2026-06-08T12:00:00Z");
    for day in 6..=8 {
        let point = time(&format!("2026-06-{day:02}T00:30:00Z"));
        life.keep(Some(point), Some(Tier::Local), point);
    }
    assert!(messages(&life, ErrorCode::BackupMissing).is_empty());
    let now = life.now;
    backups(&mut life).iter_mut().take(2).for_each(|backup| backup.missing_since = Some(now));
    let newest = backups(&mut life)[1].archive.clone();
    let reported = messages(&life, ErrorCode::BackupMissing);
    let says = format!(
        "2 of its local backups are not listed by backup2 any more and protect nothing, the newest is {newest}"
    );
    assert!(reported.len() == 1 && reported[0].starts_with(&says), "{reported:?}");
}

#[test]
fn the_newest_backup_that_is_listed_must_have_the_key() {
    let key: holdfast_protocol::id::KeyFingerprint = vec!["ab"; 32].join(":").parse().unwrap();
    let mut life = life(daily(), "crash", "2026-06-08T12:00:00Z");
    let promise = Arc::make_mut(life.world.records.protections.get_mut(&uid(1)).unwrap());
    let backup = promise.tiers.local.take().unwrap();
    let off_site = holdfast_protocol::protection::OffSiteTier { key: key.clone(), verify_days: None, backup };
    promise.tiers.off_site = Some(off_site);
    life.world.records.tiers[0].tier = Tier::OffSite;
    for day in 7..=8 {
        let point = time(&format!("2026-06-{day:02}T00:30:00Z"));
        life.keep(Some(point), Some(Tier::OffSite), point);
    }
    backups(&mut life)[0].sealed = Some(key.clone());
    let newest = backups(&mut life)[1].archive.clone();
    let reported = messages(&life, ErrorCode::BackupUnsealed);
    assert!(reported.len() == 1 && reported[0].contains(newest.as_str()), "{reported:?}");
    backups(&mut life)[1].sealed = Some(key.clone());
    assert!(messages(&life, ErrorCode::BackupUnsealed).is_empty());
    // One that is gone, or of another tier, is not the newest of this one.
    backups(&mut life)[1].sealed = None;
    let now = life.now;
    backups(&mut life)[1].missing_since = Some(now);
    assert!(messages(&life, ErrorCode::BackupUnsealed).is_empty());
    backups(&mut life)[1].missing_since = None;
    backups(&mut life)[1].tier = Some(Tier::Local);
    assert!(messages(&life, ErrorCode::BackupUnsealed).is_empty());
}

#[test]
fn points_are_left_out_when_they_are_closer_than_the_distance_and_not_when_they_are_as_far() {
    let reported = |step: u32, took_s: i64| {
        let schedule =
            json!({ "at": [format!("*:0/{step}")], "zone": "UTC", "jitter_min": 0, "window_min": 5 });
        let mut life = life(schedule, "crash", "2026-06-01T12:00:00Z");
        life.world.records.tiers[0].took = Some(SignedDuration::from_secs(took_s));
        life.pass(1);
        messages(&life, ErrorCode::Unavailable).iter().any(|text| text.contains("denser"))
    };
    let distance = u32::try_from(limits::BACKUP_DISTANCE.as_mins()).unwrap();
    assert!(!reported(distance, 0), "{distance} minutes");
    assert!(reported(distance / 2, 0));
    // Half of the time at most.
    assert!(!reported(30, 15 * 60));
    assert!(reported(30, 15 * 60 + 1));
}

/// The jitter of a guest is the same for ever: what is begun twice would be begun at two times.
#[test]
fn the_jitter_of_guests_is_pinned() {
    let schedule: Schedule = serde_json::from_value(
        json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 600, "window_min": 720 }),
    )
    .unwrap();
    let around = Around::of(&schedule, time("2026-11-21T12:00:00Z"));
    let put_off = |n: u128, purpose: Purpose| {
        let guest = GuestUid::new(uuid::Uuid::from_u128(n));
        let (point, begins) = around.last_begins(&schedule, guest, purpose).unwrap();
        begins.duration_since(point).as_secs()
    };
    let of = [0x11, 0x8d3a_77f0_1111_4c55_9e21_0000_beef_0001, u128::MAX / 3].map(|n| {
        [Purpose::Tier(Tier::Local), Purpose::Tier(Tier::OffSite), Purpose::Maintenance]
            .map(|purpose| put_off(n, purpose))
    });
    assert_eq!(of, [[26_222, 5_293, 26_858], [6_068, 11_504, 11_711], [10_919, 18_261, 10_674]]);
}

/// A guest that asks for a backup, with a promise of a local one.
fn asking(tier: Option<Tier>) -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.now = time("2026-06-02T00:00:00Z");
    let ask = Ask::Backup { tier };
    let request = QueuedRequest { serial: 1, id: op(1), guest: uid(1), ask, asked_at: life.now };
    life.world.records.requests.push(request);
    life
}

#[test]
fn a_backup_that_is_asked_for_stands_for_no_point() {
    // In the window of a point that is due, whose own backup is the schedule's.
    let mut life = asking(Some(Tier::Local));
    life.now = time("2026-06-02T01:29:00Z");
    let asked = life.plan().asked;
    let begun = format!("{asked:#?}");
    assert!(begun.contains("why: Asked") && begun.contains("due: None"), "{begun}");
    assert!(!begun.contains(&format!("{:?}", BackupWhy::Schedule)), "{begun}");
}

#[test]
fn a_snapshot_is_no_backup_to_ask_for() {
    let refused = format!("{:?}", asking(Some(Tier::Snapshot)).plan().asked);
    assert!(refused.contains("a snapshot is no backup"), "{refused}");
}

#[test]
fn what_a_storage_takes_is_seen_by_what_is_listed_there() {
    use crate::plan::schedule::space::{Room, fits, takes};
    let mut life = life(daily(), "crash", "2026-06-08T12:00:00Z");
    for (day, gib) in [(5, 400), (6, 50), (7, 100), (8, 90)] {
        let point = time(&format!("2026-06-{day:02}T00:30:00Z"));
        life.keep(Some(point), Some(Tier::Local), point);
        backups(&mut life).last_mut().unwrap().bytes = gib << 30;
    }
    let here = "backup2".parse().unwrap();
    assert_eq!(takes(backups(&mut life), &here, 0), 110 << 30, "the largest of the last three");
    // A backup that is gone says nothing, and one on this storage says more than one elsewhere.
    let now = life.now;
    backups(&mut life)[2].missing_since = Some(now);
    assert_eq!(takes(backups(&mut life), &here, 0), 440 << 30);
    backups(&mut life)[0].storage = "other".parse().unwrap();
    assert_eq!(takes(backups(&mut life), &here, 0), 99 << 30);
    let said = |available| fits(&here, Room { total: 100 << 30, available }, 7 << 20).unwrap_err().message;
    assert!(said(100 << 20).contains("100 MiB of 100 GiB are available"), "{}", said(100 << 20));
    assert!(said(4 << 30).contains("4 GiB of 100 GiB are available"), "{}", said(4 << 30));
    assert!(said((4 << 30) - 1).contains("4096 MiB of 100 GiB"), "{}", said((4 << 30) - 1));
}
