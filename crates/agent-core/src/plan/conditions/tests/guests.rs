//! Tests of conditions of guests.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::ConditionCode;
use holdfast_protocol::envelope::ErrorBody;

use super::*;
use crate::model::condition_facts::Blocked;

fn stated(status: &str, code: &str) -> Value {
    json!({ "status": status, "conditions": [{ "code": code, "message": "the facts" }] })
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    let silence = json!({ "is": "silent", "since": at(-600) });
    let controller =
        json!({ "version": "1.0.0", "hello_at": at(-600), "health": "well", "silence": silence });
    let mut frozen = Box7::well();
    frozen.view.facts.frozen.insert(uid(1));
    let mut lost = Box7::with_guest(stated("foreign", "FOREIGN_GUEST"));
    lost.view.facts.lost.insert(uid(1));
    let mut went_back = Box7::with_guest(stated("managed", "CONTROLLER_BAD"));
    went_back.view.facts.went_back.insert(uid(1), at(-60));
    let hosts = [
        ("GUEST_CRASHED", Box7::with_guest(json!({ "run": "stopped" }))),
        ("GUEST_BROKEN GUEST_CRASHED", Box7::with_guest(json!({ "status": "broken", "run": "stopped" }))),
        ("GUEST_MISSING", Box7::with_guest(stated("missing", "NOT_FOUND"))),
        ("GUEST_MISSING", Box7::with_guest(stated("missing", "RESTORING"))),
        ("GUEST_PARKED", Box7::with_guest(stated("parked", "PARKED"))),
        ("CONTROLLER_SILENT", Box7::with_guest(json!({ "controller": controller }))),
        ("CONTROLLER_SILENT", Box7::with_guest(stated("managed", "CONTROLLER_SILENT"))),
        ("CONTROLLER_UNAPPROVED", Box7::with_guest(stated("managed", "CONTROLLER_UNAPPROVED"))),
        ("UPDATE_HELD", Box7::with_guest(stated("managed", "CONTROLLER_WAITS"))),
        ("UPDATE_HELD", Box7::with_guest(stated("managed", "CONTROLLER_BAD"))),
    ];
    let mut parked = Box7::well();
    parked.view.facts.parked.insert(uid(1), vec!["restore_test was parked: why".to_owned()]);
    let more = [
        ("GUEST_PARKED", parked),
        ("GUEST_FROZEN", frozen),
        ("GUEST_MISSING", lost),
        ("UPDATE_ROLLED_BACK", went_back),
    ];
    hosts.into_iter().chain(more).collect()
}

#[test]
fn what_is_not_observed_is_not_stated() {
    for fields in [
        json!({ "run": "unknown" }),
        json!({ "run": "stopped", "wanted": "stopped" }),
        json!({ "run": "stopped", "status": "absent", "vmid": null }),
        json!({ "run": "stopped", "wanted": null }),
        stated("missing", "UNAVAILABLE"),
        stated("foreign", "FOREIGN_GUEST"),
        stated("managed", "BROKEN"),
        json!({ "uid": null, "run": "stopped" }),
    ] {
        assert_eq!(Box7::with_guest(fields.clone()).codes(), [""; 0], "{fields}");
    }
}

#[test]
fn a_message_has_the_guest_and_the_facts() {
    let host = Box7::with_guest(stated("parked", "PARKED"));
    assert_eq!(host.found()[0].message, "web-1: the facts");
}

/// Its guests were well when they were last seen, and one was not.
#[test]
fn while_proxmox_is_away_nothing_else_is_said_of_guests() {
    let mut host = Box7::well();
    host.view.guests.push(guest(2, json!({ "run": "stopped" })));
    let before = host.after(&[]);
    assert_eq!(names(&before), ["GUEST_CRASHED"]);
    host.now = at(60);
    host.view.unobserved_since = Some(at(0));
    host.view.blocked = Some(Blocked::ByProxmox);
    host.view.problems = vec![ErrorBody::new(ErrorCode::Unavailable, "it does not answer")];
    let away = host.after(&before);
    assert_eq!(names(&away), ["GUEST_CRASHED", "PROXMOX_AWAY"]);
    assert_eq!((away[0].since, away[1].since), (at(0), at(0)));
    assert_eq!(away[1].message.as_str(), "Proxmox was last read at 2027-01-15T08:00:00Z: it does not answer");
}

#[test]
fn an_operation_suspends_what_it_may_change() {
    let crashed = Box7::with_guest(json!({ "run": "stopped" }));
    let before = crashed.after(&[]);
    // A start is under way: it has not come up yet.
    let mut starting = Box7::with_guest(json!({ "run": "stopped" }));
    starting.view.facts.power_unclear.insert(uid(1));
    assert_eq!(names(&starting.after(&before)), ["GUEST_CRASHED"]);
    assert_eq!(names(&starting.after(&[])), [""; 0], "our own stop is no crash");
    assert_eq!(names(&Box7::well().after(&before)), [""; 0]);
}

#[test]
fn what_was_not_judged_anew_stays() {
    let broken = Box7::with_guest(json!({ "status": "broken" })).after(&[]);
    let mut busy = Box7::well();
    busy.view.facts.unjudged.insert(uid(1));
    assert_eq!(names(&busy.after(&broken)), ["GUEST_BROKEN"]);
    let mut other = Box7::well();
    other.view.facts.unjudged.insert(uid(2));
    assert_eq!(names(&other.after(&broken)), [""; 0]);
    assert_eq!(broken[0].code, ConditionCode::GuestBroken);
}
