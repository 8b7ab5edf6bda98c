//! Tests of what a cycle leaves for conditions.

use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::Running;

use super::*;
use crate::model::condition_facts::ConditionFacts;
use crate::model::observed::Detail;
use crate::model::records::{Access, ControllerOutcome, ControllerVerdict, OpenOperation, ParkedOperation};
use crate::plan::tests::{World, op, world};

fn gathered(world: &World) -> ConditionFacts {
    facts::gather((&world.inputs(), &world.plan()), Vec::new(), None)
}

/// Two guests, of which the first is changed.
fn with(change: impl FnOnce(&mut World)) -> ConditionFacts {
    let mut world = world(2);
    change(&mut world);
    gathered(&world)
}

#[test]
fn of_a_settled_host_nothing_is_gathered() {
    assert_eq!(with(|_| {}), ConditionFacts::default());
}

#[test]
fn an_unfinished_judgement_names_its_guest() {
    let only = BTreeSet::from([uid(1)]);
    let open = with(|world| {
        let (id, kind) = (op(7), OperationKind::Backup);
        world.records.open.push(OpenOperation { id, kind, guest: uid(1) });
    });
    assert_eq!((open.unjudged, open.power_unclear), (only.clone(), only.clone()));
    let locked = with(|world| world.seen(300).lock = Some("backup".to_owned()));
    assert_eq!((locked.unjudged, locked.power_unclear), (only.clone(), BTreeSet::new()));
    let unread = with(|world| world.seen(300).detail = Detail::Unknown("timed out".to_owned()));
    assert_eq!((unread.unjudged, unread.power_unclear), (only.clone(), BTreeSet::new()));
    let dark = with(|world| world.seen(300).run = Running::Unknown);
    assert_eq!((dark.unjudged, dark.power_unclear), (BTreeSet::new(), only.clone()));
    let parked = with(|world| {
        let (guest, kind, message) = (uid(1), OperationKind::Backup, "why".to_owned());
        world.records.parked.push(ParkedOperation { id: op(7), guest, about: guest, kind, message });
    });
    assert_eq!(parked.unjudged, only);
    assert_eq!(parked.parked, BTreeMap::from([(uid(1), vec!["backup was parked: why".to_owned()])]));
}

/// It holds up no guest, and waits for an operator all the same.
#[test]
fn a_parked_restore_test_is_of_the_guest_that_it_is_about() {
    let facts = with(|world| {
        let (kind, message) = (OperationKind::RestoreTest, "why".to_owned());
        let (guest, about) = (GuestUid::new(uuid::Uuid::nil()), uid(2));
        world.records.parked.push(ParkedOperation { id: op(7), guest, about, kind, message });
    });
    assert_eq!(facts.parked.into_keys().collect::<Vec<_>>(), [uid(2)]);
    assert_eq!(facts.unjudged, BTreeSet::new());
}

#[test]
fn a_frozen_guest_is_named_also_during_an_operation() {
    let frozen = with(|world| {
        world.records.guests[0].access = Access::Frozen;
        world.records.open.push(OpenOperation { id: op(7), kind: OperationKind::Backup, guest: uid(1) });
    });
    assert_eq!(frozen.frozen, BTreeSet::from([uid(1)]));
}

#[test]
fn only_a_guest_that_had_the_wanted_build_went_back_from_it() {
    for (sha256, went) in [("cd", true), ("ef", false)] {
        let facts = with(|world| {
            let goal = json!({ "version": "1.2.0", "sha256": "cd".repeat(32) });
            world.desired[0].controller = Some(serde_json::from_value(goal).unwrap());
            world.records.controller_verdicts.push(ControllerVerdict {
                sha256: sha256.repeat(32).try_into().unwrap(),
                version: "1.2.0".to_owned().try_into().unwrap(),
                guest: uid(1),
                outcome: ControllerOutcome::Bad,
                why: "it is not well".to_owned(),
                at: at(-60),
            });
        });
        assert_eq!(facts.went_back.get(&uid(1)), went.then_some(&at(-60)), "{sha256}");
    }
}

#[test]
fn a_tier_without_an_approved_target_is_unmet() {
    let policies = json!([{ "name": "usual", "tiers": { "local": {
        "target": "backup2", "schedule": { "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 },
        "retention": { "keep": { "last": 3 } }, "consistency": "crash"
    } } }]);
    let unmet = |approved: Option<&str>| {
        with(|world| {
            world.policies = serde_json::from_value(policies.clone()).unwrap();
            world.policy.backup_storage = approved.map(|name| name.parse().unwrap());
        })
        .unmet
    };
    let lacks = unmet(None);
    assert_eq!((lacks.len(), lacks[0].tier, lacks[0].target.as_str()), (1, Tier::Local, "backup2"));
    assert_eq!(unmet(Some("backup2")), Vec::new());
}
