//! Who exchanges its controller, and what keeps everybody else.

use holdfast_protocol::desired::ControllerWish;
use holdfast_protocol::job::act::ReleaseKind;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::Health;
use jiff::SignedDuration;

use super::*;
use crate::model::record::{BadController, HelloRecord, ReleaseRecord};

const NEW: &str = "cd";

fn wish(version: &str, pair: &str) -> ControllerWish {
    let sha256 = pair.repeat(32).try_into().unwrap();
    ControllerWish { version: version.to_owned().try_into().unwrap(), sha256 }
}

fn digest(pair: &str) -> crate::model::policy::Sha256Hex {
    pair.repeat(32).try_into().unwrap()
}

/// So many guests that speak, wished a controller that may run and lies on the box.
fn world(count: u32) -> World {
    let mut world = super::world(count);
    for (guest, record) in world.desired.iter_mut().zip(&mut world.records.guests) {
        guest.controller = Some(wish("0.2.0", NEW));
        record.hello = Some(HelloRecord {
            told: Default::default(),
            version: "0.1.0".to_owned(),
            health: Health::Well,
            boot_id: "b".to_owned(),
            build: Some(digest("ab")),
            at: at(0),
        });
    }
    for (version, pair) in [("0.2.0", NEW), ("0.1.0", "ab")] {
        let (kind, version) = (ReleaseKind::Controller, version.to_owned().try_into().unwrap());
        world.records.releases.push(ReleaseRecord { kind, version, sha256: digest(pair) });
    }
    world.observed.controllers.insert(digest(NEW), 9);
    world
}

fn updates(plan: &Plan) -> Vec<GuestUid> {
    let is = |action: &&Action| action.operation.kind() == OperationKind::UpdateController;
    plan.actions.iter().filter(is).map(|action| action.operation.uid()).collect()
}

fn told(plan: &Plan, code: ErrorCode) -> Vec<String> {
    let all = plan.verdicts.iter().flat_map(|verdict| &verdict.conditions);
    all.filter(|condition| condition.code == code).map(|condition| condition.message.clone()).collect()
}

#[test]
fn one_guest_at_a_time_on_a_box_the_first_one_first() {
    let mut w = world(3);
    let plan = w.plan();
    assert_eq!(updates(&plan), [uid(1)]);
    assert!(told(&plan, ErrorCode::ControllerWaits).is_empty(), "who waits for its turn is no news");
    let Operation::UpdateController(update) = &plan.actions[0].operation else { panic!("{plan}") };
    assert_eq!((update.sha256.clone(), update.pace_s), (digest(NEW), 60));
    assert!(update.snapshot.expires_at.is_some());
    w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::UpdateController, guest: uid(1) });
    assert!(updates(&w.plan()).is_empty(), "while one tries it, nobody else does");
    w.records.open.clear();
    w.records.guests[0].hello.as_mut().unwrap().build = Some(digest(NEW));
    assert_eq!(updates(&w.plan()), [uid(2)], "the next one when it came up");
}

#[test]
fn a_build_that_did_not_come_up_is_nobodys_any_more() {
    let mut w = world(2);
    let bad = BadController {
        sha256: digest(NEW),
        version: "0.2.0".to_owned().try_into().unwrap(),
        guest: uid(1),
        why: "silent".to_owned(),
        at: at(0),
    };
    w.records.bad_controllers.push(bad);
    let plan = w.plan();
    assert!(updates(&plan).is_empty());
    let words = told(&plan, ErrorCode::ControllerBad);
    let first = w.records.guests[0].name.as_str();
    assert!(words.len() == 2 && words[1].contains(&format!("in guest {first} (silent)")), "{words:?}");
    // Another one is another one.
    w.desired[1].controller = Some(wish("0.2.0", "ef"));
    w.records.releases[0].sha256 = digest("ef");
    w.observed.controllers.insert(digest("ef"), 9);
    assert_eq!(updates(&w.plan()), [uid(2)]);
}

#[test]
fn what_nobody_signed_for_is_held_with_what_to_sign() {
    let mut w = world(1);
    w.records.releases.remove(0);
    let plan = w.plan();
    assert!(updates(&plan).is_empty());
    assert!(told(&plan, ErrorCode::ControllerUnapproved)[0].contains(&NEW.repeat(32)));
    let draft = match &plan.held[0].remedy {
        crate::gate::held::Remedy::Sign(draft) => draft.to_json().unwrap(),
        other => panic!("{other:?}"),
    };
    assert!(draft.contains("approve_release") && draft.contains(&NEW.repeat(32)), "{draft}");
}

/// What keeps a guest, and whether a person is told.
#[test]
fn who_cannot_come_back_or_cannot_be_told_newer_is_left_as_it_is() {
    let kept = |change: fn(&mut World), words: &str| {
        let mut w = world(1);
        change(&mut w);
        let plan = w.plan();
        assert!(updates(&plan).is_empty(), "{words}: {plan}");
        let told = told(&plan, ErrorCode::ControllerWaits).join("; ");
        assert!(told.contains(words) && told.is_empty() == words.is_empty(), "{words}: {told}");
    };
    kept(|w| w.observed.controllers.clear(), "agentd release import");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().version = "0.3.0".to_owned(), "is older than 0.3.0");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().version = "main".to_owned(), "cannot be told");
    kept(
        |w| {
            let bulk = serde_json::json!({ "name": "media", "mount": "/srv/media", "size_gib": 1,
                "kind": { "bulk": { "none": "rebuilt from the origin" } } });
            w.desired[0].volumes.push(serde_json::from_value(bulk).unwrap());
        },
        "volume media",
    );
    kept(|w| w.records.guests[0].hello = None, "");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().at = at(0) - SignedDuration::from_hours(1), "");
    kept(|w| w.records.guests[0].hello.as_mut().unwrap().build = None, "");
    kept(|w| w.seen(300).lock = Some("backup".to_owned()), "");
    kept(
        |w| w.records.open.push(OpenOperation { id: op(9), kind: OperationKind::Backup, guest: uid(1) }),
        "",
    );
    kept(
        |w| {
            let parked = ParkedOperation {
                id: op(9),
                kind: OperationKind::UpdateController,
                guest: uid(2),
                message: "look".to_owned(),
            };
            w.records.parked.push(parked);
        },
        "",
    );
    kept(
        |w| {
            let failed = Attempts {
                guest: uid(1),
                kind: OperationKind::UpdateController,
                failed: 3,
                last: at(0),
                message: "a storage without snapshots".to_owned(),
            };
            w.records.attempts.push(failed);
        },
        "a storage without snapshots",
    );
}

#[test]
fn a_guest_that_came_back_silent_is_told_as_that_and_kept_as_any() {
    let mut world = super::world(2);
    world.records.silent.insert(uid(1), "no hello came".to_owned());
    let plan = world.plan();
    assert_eq!(told(&plan, ErrorCode::ControllerSilent), ["no hello came"]);
    assert!(plan.actions.is_empty(), "{plan}");
}
