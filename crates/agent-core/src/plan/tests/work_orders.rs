//! Tests of work orders in the plan.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::work_order::RestartTiming;

use super::*;
use crate::model::request::{Ask, Ordered, OrderedAct, QueuedRequest};
use crate::plan::guest_requests::Answer;

fn ordered(act: OrderedAct) -> Ask {
    Ask::Ordered(Ordered { act, expires_at: at(600) })
}

fn request(serial: u64, n: u32, ask: Ask) -> QueuedRequest {
    QueuedRequest { serial, id: op(u128::from(serial)), guest: uid(n), ask, asked_at: at(-60) }
}

/// The answer to one order of guest 1; none where it waits.
fn answer(act: OrderedAct, change: impl FnOnce(&mut World)) -> Option<Result<OperationKind, ErrorCode>> {
    let mut world = world(2);
    world.policy.backup_storage = Some("backup2".parse().unwrap());
    world.records.requests.push(request(1, 1, ordered(act)));
    change(&mut world);
    let decision = world.plan().asked.into_iter().find(|decision| decision.request == op(1))?;
    Some(match decision.answer {
        Answer::Begin(action) => Ok(action.operation.kind()),
        Answer::Refuse(problem) => Err(problem.code),
    })
}

const AT_ONCE: OrderedAct = OrderedAct::Restart { timing: RestartTiming::AtOnce };

fn snapshot() -> OrderedAct {
    OrderedAct::Snapshot { name: "s-1".parse().unwrap(), keep_s: Some(60) }
}

#[test]
fn each_order_becomes_its_operation() {
    let unchanged = |_: &mut World| {};
    assert_eq!(answer(OrderedAct::Backup { tier: None }, unchanged), Some(Ok(OperationKind::Backup)));
    assert_eq!(answer(snapshot(), unchanged), Some(Ok(OperationKind::Snapshot)));
    assert_eq!(answer(AT_ONCE, unchanged), Some(Ok(OperationKind::RestartGuest)));
    let in_window = OrderedAct::Restart { timing: RestartTiming::InWindow };
    assert_eq!(answer(in_window, unchanged), Some(Ok(OperationKind::RestartGuest)), "it has no windows");
}

#[test]
fn an_order_waits_for_what_passes_until_its_time_is_over() {
    let busy = |world: &mut World| {
        world.records.open.push(OpenOperation {
            id: op(9),
            kind: OperationKind::QuiescedBackup,
            guest: uid(1),
        });
    };
    for act in [OrderedAct::Backup { tier: None }, snapshot(), AT_ONCE] {
        assert_eq!(answer(act.clone(), busy), None, "{act:?} behind a window");
        assert_eq!(answer(act, |world| world.seen(300).lock = Some("backup".to_owned())), None);
    }
    let over = |world: &mut World| {
        busy(world);
        world.records.requests[0].ask = Ask::Ordered(Ordered { act: AT_ONCE, expires_at: at(0) });
    };
    assert_eq!(answer(AT_ONCE, over), Some(Err(ErrorCode::Unavailable)));
}

#[test]
fn a_restart_needs_a_guest_that_runs_and_keeps_to_its_windows() {
    let stopped = |world: &mut World| world.seen(300).run = Running::Stopped;
    assert_eq!(answer(AT_ONCE, stopped), Some(Err(ErrorCode::Unavailable)));
    let unwanted = |world: &mut World| world.desired[0].run = RunState::Stopped;
    assert_eq!(answer(AT_ONCE, unwanted), Some(Err(ErrorCode::Unavailable)));
    // 1,800,000,000 is Friday, 2027-01-15, 08:00 UTC.
    let window = |weekday: &str, hour: &str| {
        let text = json!({ "windows": { "at": [format!("{weekday} {hour}")], "zone": "UTC", "jitter_min": 0, "window_min": 120 } });
        move |world: &mut World| world.desired[0].maintenance = Some(serde_json::from_value(text).unwrap())
    };
    let in_window = OrderedAct::Restart { timing: RestartTiming::InWindow };
    assert_eq!(answer(in_window.clone(), window("Sun", "03:00")), None, "two days later");
    assert_eq!(answer(in_window, window("Fri", "07:30")), Some(Ok(OperationKind::RestartGuest)));
    assert_eq!(answer(AT_ONCE, window("Sun", "03:00")), Some(Ok(OperationKind::RestartGuest)));
}

#[test]
fn what_an_order_cannot_have_is_refused_with_its_reason() {
    let no_storage = |world: &mut World| world.policy.backup_storage = None;
    assert_eq!(answer(OrderedAct::Backup { tier: None }, no_storage), Some(Err(ErrorCode::Unavailable)));
    let unchanged = |_: &mut World| {};
    let as_tier = OrderedAct::Backup { tier: Some(Tier::Snapshot) };
    assert_eq!(answer(as_tier, unchanged), Some(Err(ErrorCode::Unsupported)));
    let test = OrderedAct::RestoreTest { tier: None };
    assert_eq!(answer(test, unchanged), Some(Err(ErrorCode::Unavailable)), "no place for tests");
    let frozen = |world: &mut World| world.records.guests[0].access = Access::Frozen;
    assert_eq!(answer(snapshot(), frozen), Some(Err(ErrorCode::Frozen)));
    let strange = |world: &mut World| world.facts(300).mark = mark::Mark::None;
    assert_eq!(answer(AT_ONCE, strange), Some(Err(ErrorCode::ForeignGuest)));
}

#[test]
fn an_ordered_test_keeps_no_request_of_its_guest_waiting() {
    let mut world = world(1);
    world.records.requests.push(request(1, 1, ordered(OrderedAct::RestoreTest { tier: None })));
    world.records.requests.push(request(2, 1, Ask::Snapshot { name: "s-2".parse().unwrap(), keep_s: None }));
    let decided: Vec<_> = world.plan().asked.into_iter().map(|decision| decision.request).collect();
    assert_eq!(decided, [op(1), op(2)]);
}

#[test]
fn an_ordered_snapshot_is_kept_an_hour_at_least_and_is_not_its_guests() {
    let mut world = world(1);
    world.records.requests.push(request(1, 1, ordered(snapshot())));
    let Some(Answer::Begin(action)) = world.plan().asked.pop().map(|decision| decision.answer) else {
        panic!("it begins")
    };
    let crate::operation::Operation::Snapshot(taken) = action.operation else { panic!("a snapshot") };
    assert_eq!((taken.taken_by, taken.expires_at), (TakenBy::Job, Some(at(3_600))));
}
