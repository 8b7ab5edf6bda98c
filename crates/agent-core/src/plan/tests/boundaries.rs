//! Tests of schedules at the exact moments where a judgement changes.

use holdfast_protocol::protection::Tier;
use holdfast_protocol::storage::{Approval, TargetState};
use jiff::SignedDuration;

use super::raised::hello;
use super::schedule::{Life, Luck, daily, life, time};
use super::*;
use crate::model::policy::QuiesceBound;
use crate::model::records::BackupWhy;
use crate::model::request::{Ask, QueuedRequest};
use crate::model::storage::TargetRecord;
use crate::operation::Operation;
use crate::plan::guest_requests::Answer;
use crate::plan::schedule::target::is_approved;

fn says(life: &Life, code: ErrorCode, words: &str) -> bool {
    let plan = life.plan();
    plan.verdicts[0].conditions.iter().any(|one| one.code == code && one.message.contains(words))
}

#[test]
fn a_backup_is_missed_after_its_window_and_not_at_its_end() {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    // 02:30 in Berlin, and two hours.
    life.now = time("2026-06-02T02:30:00Z");
    assert_eq!(life.codes_of(ErrorCode::BackupMissed), 0, "{}", life.plan());
    life.now = time("2026-06-02T02:30:01Z");
    assert_eq!(life.codes_of(ErrorCode::BackupMissed), 1, "{}", life.plan());
}

/// The guest agent's time begins when the agent can be reached again, also when that is the window's end.
#[test]
fn an_outage_that_ends_with_the_window_leaves_the_guest_agent_its_time() {
    let at = |since: &str, now: &str| {
        let mut life = life(daily(), "application", "2026-06-01T12:00:00Z");
        (life.since, life.now) = (time(since), time(now));
        life.world.records.guests[0].hello = Some(hello(life.now));
        life.plan().actions.len()
    };
    assert_eq!(at("2026-06-02T02:29:59Z", "2026-06-02T02:30:00Z"), 1, "rather so than missed");
    assert_eq!(at("2026-06-02T02:30:00Z", "2026-06-02T02:30:00Z"), 0, "it is missed already");
    assert_eq!(at("2026-06-02T02:30:00Z", "2026-06-02T02:40:00Z"), 1);
}

/// A wait that outlasts the window is waited for to its end, and not only until the plan happens to be made again.
#[test]
fn the_plan_is_made_again_at_the_end_of_the_window_or_of_the_wait() {
    let again = |since: &str, now: &str| {
        let mut life = life(daily(), "application", "2026-06-01T12:00:00Z");
        (life.since, life.now) = (time(since), time(now));
        life.world.records.guests[0].hello = Some(hello(life.now));
        life.plan().again_at
    };
    let late = again("2026-06-02T02:31:00Z", "2026-06-02T02:32:00Z");
    assert_eq!(late, Some(time("2026-06-02T02:41:00Z")));
    let ends = again("2026-06-02T02:25:00Z", "2026-06-02T02:26:00Z");
    assert_eq!(ends, Some(time("2026-06-02T02:30:00Z")));
    // A try that failed shortly before the end: then it is missed, and the next try comes later.
    let mut failed = life(daily(), "crash", "2026-06-01T12:00:00Z");
    failed.now = time("2026-06-02T02:29:30Z");
    assert!(failed.cycle(Luck::Bad).is_some());
    failed.now = time("2026-06-02T02:29:40Z");
    assert_eq!(failed.plan().again_at, Some(time("2026-06-02T02:30:00Z")));
    failed.now = time("2026-06-02T02:30:00Z");
    assert_eq!(failed.plan().again_at, Some(time("2026-06-02T02:30:30Z")));
}

#[test]
fn points_of_which_nothing_came_are_overdue_after_three_of_them() {
    let schedule = json!({ "at": ["0/4:00"], "zone": "UTC", "jitter_min": 0, "window_min": 1440 });
    let mut life = life(schedule, "crash", "2026-06-01T12:00:00Z");
    let overdue = |life: &Life| says(life, ErrorCode::BackupMissed, "since 2026-06-01T12:00:00Z");
    life.now = time("2026-06-02T00:00:00Z");
    assert!(!overdue(&life), "{}", life.plan());
    life.now = time("2026-06-02T00:00:01Z");
    assert!(overdue(&life), "{}", life.plan());
}

#[test]
fn a_window_may_be_as_short_as_its_least_and_what_stood_still_is_said() {
    let after = |stood: SignedDuration| {
        let mut life = life(daily(), "application", "2026-06-01T12:00:00Z");
        life.world.records.stood_still.insert(uid(1), stood);
        life
    };
    let most = SignedDuration::from_mins(
        after(SignedDuration::ZERO).world.records.backup_limits.still_min_per_day.into(),
    );
    let least = SignedDuration::from_secs(QuiesceBound::MIN_S.into());
    assert_eq!(after(most - least).codes_of(ErrorCode::Quota), 0);
    let spent = after(most - least + SignedDuration::from_secs(1));
    let words = format!("for {} minutes within 24 hours, of {}", most.as_mins(), most.as_mins());
    assert!(says(&spent, ErrorCode::Quota, &words), "{}", spent.plan());
}

/// A backup that a guest asks for, naming no tier, is the schedule's where a point is due, and else its own.
#[test]
fn a_backup_that_is_asked_for_while_a_point_is_due_stands_for_it() {
    let asked = |now: &str, settled: bool| {
        let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
        life.now = time(now);
        let ask = Ask::QuiescedBackup { tier: None, bound: QuiesceBound::usual() };
        let request = QueuedRequest { serial: 1, id: op(1), guest: uid(1), ask, asked_at: life.now };
        life.world.records.guests[0].hello = Some(hello(life.now));
        life.world.records.requests.push(request);
        if settled {
            life.keep(Some(time("2026-06-02T00:30:00Z")), Some(Tier::Local), time("2026-06-02T00:31:00Z"));
        }
        let plan = life.plan();
        let Answer::Begin(action) = &plan.asked[0].answer else { panic!("{plan}") };
        let Operation::QuiescedBackup(window) = &action.operation else { panic!("{plan}") };
        (window.backup.why, window.backup.due.map(|due| due.point))
    };
    let point = time("2026-06-02T00:30:00Z");
    assert_eq!(asked("2026-06-02T01:29:00Z", false), (BackupWhy::Schedule, Some(point)));
    assert_eq!(asked("2026-06-02T01:29:00Z", true), (BackupWhy::Asked, None));
    assert_eq!(asked("2026-06-01T20:00:00Z", false), (BackupWhy::Asked, None));
}

#[test]
fn a_target_is_approved_by_its_name_its_role_and_its_state() {
    let mut world = world(1);
    let (usb, server, settings) =
        ("usb1".parse().unwrap(), "pbs1".parse().unwrap(), "backup2".parse().unwrap());
    let target = |name: &str, role: &str, state: &str| TargetRecord {
        approval: Approval::of(
            &serde_json::from_value(json!({ "name": name, "class": "slow", "role": role,
                "backend": { "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a01" } },
                "state": state, "label": "blue", "default": false, "schedulable": false }))
            .unwrap(),
        ),
        status: if state == "attached" { TargetState::Attached } else { TargetState::Disconnected },
        mark: serde_json::from_value(json!(uid(9))).unwrap(),
        marked: None,
        entry: None,
    };
    world.policy.backup_storage = Some(settings);
    let approved = |world: &World, tier, name| is_approved(&world.policy, &world.records, tier, name);
    let of_settings = world.policy.backup_storage.clone().unwrap();
    assert!(approved(&world, Tier::Local, &of_settings));
    assert!(!approved(&world, Tier::Local, &usb));
    world.records.storage.push(target("usb1", "local-backup", "attached"));
    assert!(approved(&world, Tier::Local, &usb));
    assert!(!approved(&world, Tier::OffSite, &usb), "it has another role");
    assert!(!approved(&world, Tier::Snapshot, &usb));
    assert!(!approved(&world, Tier::Local, &server), "another target's approval");
    world.records.storage[0] = target("usb1", "local-backup", "disconnected");
    assert!(!approved(&world, Tier::Local, &usb));
    world.records.storage[0] = target("pbs1", "offsite-backup", "attached");
    assert!(approved(&world, Tier::OffSite, &server) && !approved(&world, Tier::Local, &server));
}
