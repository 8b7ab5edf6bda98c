//! Tests of promises over a year, outages and wrong clocks.

use std::sync::Arc;

use holdfast_protocol::protection::{Protection as Promise, Schedule, Tier};
use jiff::SignedDuration;

use super::*;
use crate::model::records::{BackupRecord, BackupWhy, HelloRecord, PointAttempt, TierRecord};
use crate::operation::{Begun, DuePoint, Operation};
use crate::plan::schedule::points::Around;

/// More backups than any promise here keeps.
const KEPT: usize = 12;

/// How a year is lived.
pub(super) struct Life {
    pub(super) world: World,
    pub(super) now: Timestamp,
    pub(super) since: Timestamp,
    serial: u128,
}

/// What becomes of a backup that is begun.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    Good,
    Bad,
}

pub(super) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A host of one guest, which is promised a local tier.
pub(super) fn life(schedule: serde_json::Value, consistency: &str, from: &str) -> Life {
    let mut world = world(1);
    world.policy.backup_storage = Some("backup2".parse().unwrap());
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 3 } }, "consistency": consistency
    });
    world.policies =
        serde_json::from_value(json!([{ "name": "usual", "tiers": { "local": local } }])).unwrap();
    world.desired[0].policy = Some("usual".parse().unwrap());
    let promise = Promise::of_document(&world.desired[0], &world.policies).unwrap();
    world.records.protections.insert(uid(1), Arc::new(promise));
    let (now, since) = (time(from), time(from));
    world.records.tiers.push(TierRecord::new(uid(1), Tier::Local, since));
    Life { world, now, since, serial: 0 }
}

pub(super) fn daily() -> serde_json::Value {
    json!({ "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 45, "window_min": 120 })
}

impl Life {
    pub(super) fn plan(&self) -> Plan {
        let time = TrustedTime { at: self.now, since: self.since, steady: Steady::Yes };
        plan(&Inputs { now: self.now, time, ..self.world.inputs() })
    }

    pub(super) fn schedule(&self) -> Schedule {
        let promise = &self.world.records.protections[&uid(1)];
        promise.tiers.local.as_ref().unwrap().schedule.clone()
    }

    /// One cycle: what is begun ends at once, well or not.
    pub(super) fn cycle(&mut self, luck: Luck) -> Option<DuePoint> {
        let plan = self.plan();
        assert!(plan.actions.len() <= 1, "{plan}");
        let Operation::Backup(backup) = &plan.actions.first()?.operation else { return None };
        let due = backup.due.unwrap();
        self.open(&due);
        if luck == Luck::Good {
            self.keep(Some(due.point), Some(due.tier), self.now);
        }
        Some(due)
    }

    /// As the store does when the operation is opened.
    fn open(&mut self, due: &DuePoint) {
        let record = &mut self.world.records.tiers[0];
        let before = record.tried.filter(|tried| tried.point == due.point);
        let late = u32::from(due.begun == Begun::Late);
        record.tried = Some(PointAttempt {
            point: due.point,
            times: before.map_or(1, |tried| tried.times + 1),
            late: before.map_or(late, |tried| tried.late + late),
            last: due.at,
        });
    }

    pub(super) fn keep(&mut self, point: Option<Timestamp>, tier: Option<Tier>, taken_at: Timestamp) {
        self.serial += 1;
        let record = BackupRecord {
            archive: VolumeId::new(format!("backup2:backup/{}", self.serial)),
            guest: uid(1),
            vmid: vmid(300),
            storage: "backup2".parse().unwrap(),
            bytes: 1 << 20,
            taken_at,
            taken_by: op(1_000 + self.serial),
            why: BackupWhy::Schedule,
            tier,
            point,
            sealed: None,
            missing_since: None,
            took: None,
            label: None,
            mounts: None,
            hardware: None,
            disks: None,
        };
        let all = Arc::make_mut(&mut self.world.records.backups);
        all.push(record);
        all.sort_by_key(|backup| backup.taken_at);
        // Retention has deleted the oldest; a plan looks at each that is there.
        let first = all.len().saturating_sub(KEPT);
        all.drain(..first);
    }

    pub(super) fn pass(&mut self, minutes: i64) {
        self.now = self.now.checked_add(SignedDuration::from_mins(minutes)).unwrap();
    }

    pub(super) fn codes_of(&self, code: ErrorCode) -> usize {
        self.codes().into_iter().filter(|one| *one == code).count()
    }

    fn codes(&self) -> Vec<ErrorCode> {
        self.plan().verdicts[0].conditions.iter().map(|condition| condition.code).collect()
    }
}

/// A generator of numbers by which a test is the same each time.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Day by day over both changes of the clocks: one backup for each point, begun within its window. On the day on which
/// the clocks leap over 02:30 there is no such point, and when 02:30 comes twice it counts once.
#[test]
fn a_year_has_a_backup_for_each_of_its_points_and_no_other() {
    let mut life = life(daily(), "crash", "2026-01-01T12:00:00Z");
    let (schedule, end) = (life.schedule(), time("2027-01-01T12:00:00Z"));
    let mut begun = Vec::new();
    while life.now < end {
        if let Some(due) = life.cycle(Luck::Good) {
            assert_eq!(due.begun, Begun::InTime, "{due:?}");
            assert!(
                life.now.duration_since(due.point) < SignedDuration::from_mins(45 + 18),
                "{due:?} at {}",
                life.now
            );
            begun.push(due.point);
        }
        if begun.len() % 30 == 0 {
            assert!(life.codes().is_empty(), "{}", life.plan());
        }
        life.pass(17);
    }
    let next = |after: &Timestamp| schedule.next(*after);
    let points: Vec<Timestamp> = std::iter::successors(next(&time("2026-01-01T12:00:00Z")), next)
        .take_while(|point| *point < end)
        .collect();
    assert_eq!(points.len(), 364, "365 nights, one of them without 02:30");
    assert_eq!(begun, points);
}

/// Years lived by chance: outages of any length, tries that fail, cycles at any time. CI runs another year each time.
#[test]
fn no_point_has_two_backups_and_no_outage_more_than_one_catch_up() {
    let turn: u64 = std::env::var("HOLDFAST_CI_TURN").map_or(1, |text| text.parse().unwrap());
    for seed in [1 + turn] {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let mut life = life(daily(), "crash", "2026-01-01T12:00:00Z");
        let (mut good, mut late) = (BTreeMap::<Timestamp, u32>::new(), BTreeMap::<Timestamp, u32>::new());
        while life.now < time("2026-12-31T00:00:00Z") {
            let luck = if dice.below(3) == 0 { Luck::Bad } else { Luck::Good };
            if let Some(due) = life.cycle(luck) {
                *good.entry(due.point).or_default() += u32::from(luck == Luck::Good);
                *late.entry(due.point).or_default() += u32::from(due.begun == Begun::Late);
            }
            if dice.below(400) == 0 {
                let before = life.schedule().last(life.now);
                life.pass(i64::try_from(dice.below(9 * 24 * 60)).unwrap());
                life.since = life.now;
                let last = life.schedule().last(life.now);
                let begun = (0..600).filter_map(|_| {
                    life.pass(1);
                    life.cycle(Luck::Good).filter(|due| Some(due.point) == last)
                });
                assert!(begun.count() <= 1, "seed {seed}: slept from {before:?} to {last:?}");
            }
            life.pass(i64::try_from(1 + dice.below(20)).unwrap());
        }
        assert!(good.len() > 80 && good.values().all(|times| *times <= 1), "seed {seed}: {good:?}");
        assert!(late.values().all(|times| *times <= limits::BACKUP_TRIES), "seed {seed}: {late:?}");
    }
}

#[test]
fn what_was_slept_through_is_reported_and_caught_up_once() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.pass(3 * 24 * 60);
    assert_eq!(life.codes(), [ErrorCode::BackupMissed]);
    let due = life.cycle(Luck::Good).unwrap();
    assert_eq!((due.begun, due.point), (Begun::Late, time("2026-06-04T00:30:00Z")));
    for _ in 0..700 {
        assert_eq!(life.cycle(Luck::Good), None, "once");
        life.pass(1);
    }
    life.pass(100);
    assert_eq!(life.cycle(Luck::Good).unwrap().begun, Begun::InTime, "the next point is another");
    assert!(life.codes().is_empty());
}

/// An outage after which the first try fails is not a week without a backup.
#[test]
fn what_is_caught_up_and_fails_is_tried_again_for_an_hour() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.pass(3 * 24 * 60);
    let began = life.now;
    let mut tries = Vec::new();
    for _ in 0..700 {
        if let Some(due) = life.cycle(Luck::Bad) {
            assert_eq!((due.begun, due.point), (Begun::Late, time("2026-06-04T00:30:00Z")));
            tries.push(life.now.duration_since(began).as_mins());
        }
        assert_eq!(life.codes(), [ErrorCode::BackupMissed], "{}", life.plan());
        life.pass(1);
    }
    assert_eq!(tries, [0, 4, 12, 28, 60]);
    assert!(life.plan().verdicts[0].conditions[0].message.contains("came to nothing"), "{}", life.plan());
    life.pass(100);
    assert_eq!(life.cycle(Luck::Good).unwrap().begun, Begun::InTime, "the next point is another");
    assert!(life.codes().is_empty());
}

#[test]
fn a_try_that_fails_is_repeated_with_waits_and_not_for_ever() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.now = time("2026-06-02T00:30:00Z");
    let tries: Vec<Timestamp> = (0..119)
        .filter_map(|_| {
            life.pass(1);
            life.cycle(Luck::Bad).map(|_| life.now)
        })
        .collect();
    assert_eq!(tries.len(), limits::BACKUP_TRIES as usize, "{tries:?}");
    assert_eq!(life.codes(), [ErrorCode::BackupMissed], "{}", life.plan());
}

fn hello(at: Timestamp) -> HelloRecord {
    HelloRecord {
        reported: Default::default(),
        version: "0.1.0".to_owned(),
        health: holdfast_protocol::report::Health::Well,
        boot_id: "boot".to_owned(),
        build: None,
        at,
    }
}

/// A window that is shorter than a controller has: the backup is rather taken without it than missed.
#[test]
fn a_controller_is_waited_for_until_a_short_window_ends_and_no_longer() {
    let short = json!({ "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 0, "window_min": 5 });
    let mut life = life(short, "application", "2026-06-01T12:00:00Z");
    let begins = time("2026-06-02T00:30:00Z");
    let ends = begins + SignedDuration::from_mins(5);
    for (now, actions) in [(ends - SignedDuration::from_secs(1), 0), (ends, 1)] {
        life.now = now;
        life.world.records.guests[0].hello = Some(hello(now));
        assert_eq!(life.plan().actions.len(), actions, "{now}: {}", life.plan());
    }
}

/// It says hello every ten minutes: after two that did not come it is not waited for, whatever the programs request.
#[test]
fn a_controller_that_missed_two_hellos_is_not_waited_for() {
    let mut life = life(daily(), "application", "2026-06-01T12:00:00Z");
    let schedule = life.schedule();
    let around = Around::of(&schedule, time("2026-06-02T00:30:00Z"));
    let (_, begins) = around.last_begins(&schedule, uid(1), Tier::Local).unwrap();
    life.now = begins;
    let silent = SignedDuration::from_mins(25);
    for (heard, actions) in [(begins - silent + SignedDuration::from_secs(1), 0), (begins - silent, 1)] {
        life.world.records.guests[0].hello = Some(hello(heard));
        assert_eq!(life.plan().actions.len(), actions, "heard {heard}: {}", life.plan());
    }
}

/// The programs shall stand still: the controller has its time to ask for that, but only where there is one.
#[test]
fn the_controller_is_waited_for_within_the_window() {
    let mut life = life(daily(), "application", "2026-06-01T12:00:00Z");
    let schedule = life.schedule();
    let around = Around::of(&schedule, time("2026-06-02T00:30:00Z"));
    let (_, begins) = around.last_begins(&schedule, uid(1), Tier::Local).unwrap();
    let second = SignedDuration::from_secs(1);
    for (now, actions) in [
        (begins - second, 0),
        (begins, 0),
        (begins + limits::CONTROLLER_GRACE - second, 0),
        (begins + limits::CONTROLLER_GRACE, 1),
    ] {
        life.now = now;
        life.world.records.guests[0].hello = Some(hello(now));
        assert_eq!(life.plan().actions.len(), actions, "{now}: {}", life.plan());
    }
    // A backup that somebody asked for holds no programs that stood still; one that was taken in a window does.
    life.keep(None, None, life.now);
    assert_eq!(life.plan().actions.len(), 1);
    life.keep(None, Some(Tier::Local), life.now);
    assert!(life.plan().actions.is_empty(), "{}", life.plan());

    let mut silent = self::life(daily(), "application", "2026-06-01T12:00:00Z");
    silent.now = time("2026-06-02T01:16:00Z");
    silent.world.records.guests[0].hello = Some(hello(time("2026-06-02T00:30:00Z")));
    assert_eq!(silent.plan().actions.len(), 1, "nobody is there who could be waited for");
}

/// A backup of a time to come was taken by a clock that was wrong. It keeps no other from being taken.
#[test]
fn what_was_taken_in_a_future_settles_nothing() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.keep(Some(time("2031-06-02T00:30:00Z")), Some(Tier::Local), time("2031-06-02T00:31:00Z"));
    life.world.records.tiers[0].since = time("2031-06-01T12:00:00Z");
    life.now = time("2026-06-02T01:20:00Z");
    assert!(life.cycle(Luck::Good).is_some(), "{}", life.plan());
    assert_eq!(life.cycle(Luck::Good), None);
}

#[test]
fn nothing_is_begun_where_it_may_not_go_or_on_a_guest_that_is_busy() {
    let due = || {
        let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
        life.now = time("2026-06-02T01:20:00Z");
        life
    };
    assert_eq!(due().plan().actions.len(), 1);
    type Case = (fn(&mut World), &'static [ErrorCode]);
    let cases: [Case; 6] = [
        (|w| w.policy.backup_storage = None, &[ErrorCode::StorageGone]),
        (
            |w| {
                w.observed
                    .storages
                    .insert("backup2".parse().unwrap(), crate::model::observed::StorageFact::Inactive);
            },
            &[ErrorCode::StorageGone],
        ),
        (
            |w| w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::Start, guest: uid(1) }),
            &[],
        ),
        (|w| w.seen(300).lock = Some("backup".to_owned()), &[ErrorCode::Locked]),
        (|w| w.facts(300).mark = mark::Mark::None, &[ErrorCode::ForeignGuest]),
        (
            |w| {
                w.records.protections.clear();
                w.desired[0].policy = None;
            },
            &[],
        ),
    ];
    for (nth, (change, codes)) in cases.into_iter().enumerate() {
        let mut life = due();
        change(&mut life.world);
        assert!(life.plan().actions.is_empty(), "case {nth}: {}", life.plan());
        assert_eq!(life.codes(), codes, "case {nth}: {}", life.plan());
    }
    // What a document asks for and the brake holds keeps no backup from a guest, nor does taking it out of the document.
    let mut life = due();
    life.world.desired.clear();
    assert_eq!(life.plan().actions.len(), 1, "{}", life.plan());
}

/// The try that is counted when it is opened is not reported as one that failed, neither while it is under way nor once
/// it is done.
#[test]
fn a_try_is_reported_when_it_failed_and_not_before() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.now = time("2026-06-02T01:20:00Z");
    let due = life.cycle(Luck::Bad).expect("one is due");
    life.now = time("2026-06-02T01:20:05Z");
    let reported = |life: &Life| {
        let plan = life.plan();
        let messages = plan.verdicts[0].conditions.iter().map(|condition| condition.message.clone());
        messages.filter(|message| message.contains("was tried")).collect::<Vec<_>>()
    };
    let (id, kind) = (op(5), OperationKind::Backup);
    life.world.records.open.push(OpenOperation { id, kind, guest: uid(1) });
    assert_eq!(reported(&life), Vec::<String>::new(), "under way");
    life.world.records.open.clear();
    assert!(reported(&life)[0].contains("was tried once, next at"), "{:?}", reported(&life));
    life.keep(Some(due.point), Some(due.tier), life.now);
    assert_eq!(reported(&life), Vec::<String>::new(), "done");
}
