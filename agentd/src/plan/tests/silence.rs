//! A guest agent that falls silent: late in lists, then a condition; none of a guest that is not expected to speak.

use super::*;
use crate::model::record::HelloRecord;
use crate::plan::report;
use holdfast_protocol::report::{Health, SilenceKind};

/// A guest whose agent last said hello so many seconds ago.
fn heard(ago_s: i64) -> World {
    let mut world = world(1);
    let hello = HelloRecord {
        told: Default::default(),
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
fn told(world: &World) -> (Option<SilenceKind>, bool) {
    let plan = world.plan();
    let report = report::guests(&world.inputs(), &plan, &BTreeMap::new()).remove(0);
    let is = report.controller.unwrap().silence.map(|silence| silence.is);
    let condition = report.conditions.iter().any(|condition| condition.code == ErrorCode::ControllerSilent);
    (is, condition)
}

#[test]
fn a_silent_guest_agent_is_late_and_then_needs_a_person() {
    assert_eq!(told(&heard(60)), (None, false));
    assert_eq!(told(&heard(200)), (Some(SilenceKind::Late), false));
    assert_eq!(told(&heard(400)), (Some(SilenceKind::Silent), true));
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
        assert_eq!(told(&world), (None, false), "{nth}");
    }
}
