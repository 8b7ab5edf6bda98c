//! Tests of a guest agent that falls silent.

use super::*;
use crate::model::records::HelloRecord;
use crate::plan::report;
use holdfast_protocol::maintenance::RestartRule;
use holdfast_protocol::report::{Health, SilenceKind};

/// A guest whose agent last said hello so many seconds ago.
fn heard(ago_s: i64) -> World {
    let mut world = world(1);
    let hello = HelloRecord {
        reported: Default::default(),
        version: "0.1.0".to_owned(),
        health: Health::Well,
        boot_id: "b".to_owned(),
        build: None,
        at: at(-ago_s),
    };
    world.records.guests[0].hello = Some(hello);
    world.records.heard.insert(uid(1), at(-ago_s));
    world.seen(300).up_s = 86_400;
    world
}

/// What lists show, and whether it is a condition.
fn reported(world: &World) -> (Option<SilenceKind>, bool) {
    let plan = world.plan();
    let report = report::guests(&world.inputs(), &plan, (&BTreeMap::new(), 10)).remove(0);
    let is = report.controller.unwrap().silence.map(|silence| silence.is);
    let condition = report.conditions.iter().any(|condition| condition.code == ErrorCode::ControllerSilent);
    (is, condition)
}

#[test]
fn a_silent_guest_agent_is_late_and_then_needs_a_person() {
    assert_eq!(reported(&heard(60)), (None, false));
    assert_eq!(reported(&heard(200)), (Some(SilenceKind::Late), false));
    assert_eq!(reported(&heard(400)), (Some(SilenceKind::Silent), true));
}

#[test]
fn one_that_is_not_expected_to_speak_is_not_silent() {
    let settings: [fn(&mut World); 4] = [
        |w| w.seen(300).run = Running::Stopped,
        |w| w.seen(300).up_s = 30,
        |w| w.records.guests[0].access = Access::Frozen,
        |w| w.records.heard.clear(),
    ];
    for (nth, set_up) in settings.into_iter().enumerate() {
        let mut world = heard(400);
        set_up(&mut world);
        assert_eq!(reported(&world), (None, false), "{nth}");
    }
}

/// Silent for so many seconds, in a maintenance window of two hours that has been open for half an hour.
fn in_window(ago_s: i64) -> World {
    let mut world = heard(ago_s);
    let point = at(-1_800).strftime("%a %H:%M:%S").to_string();
    world.desired[0].maintenance = Some(
        serde_json::from_value(json!({ "windows":
            { "at": [point], "zone": "UTC", "jitter_min": 0, "window_min": 120 } }))
        .unwrap(),
    );
    world
}

fn next(world: &World) -> Option<(OperationKind, String)> {
    world.plan().actions.first().map(|action| (action.operation.kind(), action.reason.clone()))
}

#[test]
fn a_guest_owner_agent_stays_silent_is_restarted_once_in_its_window_and_after_three_days_no_more() {
    let (kind, reason) = next(&in_window(4_000)).unwrap();
    assert_eq!(kind, OperationKind::Stop);
    assert!(reason.contains("restarted in its maintenance window, as a last step"), "{reason}");
    let mut stopped = in_window(4_000);
    stopped.seen(300).run = Running::Stopped;
    assert_eq!(next(&stopped).unwrap().0, OperationKind::Start);
    type SetUp = fn(&mut World);
    let not: [(i64, SetUp); 7] = [
        (3_000, |_| ()),
        (3 * 86_400, |_| ()),
        // It was restarted in this window already.
        (4_000, |world| world.seen(300).up_s = 1_700),
        (4_000, |world| world.desired[0].maintenance = None),
        (4_000, |world| world.desired[0].maintenance.as_mut().unwrap().restart = RestartRule::ByHand),
        (4_000, |world| world.desired[0].maintenance.as_mut().unwrap().windows = None),
        (4_000, |world| {
            let windows = world.desired[0].maintenance.as_mut().unwrap().windows.as_mut().unwrap();
            windows.window_min = 20.try_into().unwrap();
        }),
    ];
    for (place, (ago, set_up)) in not.into_iter().enumerate() {
        let mut world = in_window(ago);
        set_up(&mut world);
        assert_eq!(next(&world), None, "{place}");
    }
}
