//! Name and network of a guest held to the document: put right where that is safe, reported where it is not.

use super::*;
use crate::operation::Operation;

const LINE: &str = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.2/16,type=veth";

/// A settled guest whose network could be read.
fn plugged() -> World {
    let mut world = world(1);
    let address = world.desired[0].network.address;
    let facts = world.facts(300);
    facts.net = Some(LINE.parse().unwrap());
    facts.address = Some(address);
    world
}

/// The reason of the one thing that is done.
fn healed(set_up: impl Fn(&mut World)) -> String {
    let mut world = plugged();
    set_up(&mut world);
    let plan = world.plan();
    match plan.actions.as_slice() {
        [Action { operation: Operation::Reconfigure(_), reason }] => reason.clone(),
        _ => panic!("{plan}"),
    }
}

#[test]
fn name_vlan_gateway_and_bridge_are_put_right() {
    assert!(plugged().plan().actions.is_empty(), "{}", plugged().plan());
    let said = healed(|w| w.facts(300).name = Some("by-hand".to_owned()));
    assert!(said.contains("host name by-hand, wanted web-1"), "{said}");
    let said = healed(|w| w.desired[0].network.vlan = Some(7.try_into().unwrap()));
    assert!(said.contains("is not at vmbr0 as 10.66.0.2/16 VLAN 7 without a gateway"), "{said}");
    let said = healed(|w| w.desired[0].network.gateway = Some("10.66.0.1".parse().unwrap()));
    assert!(said.contains("is not at vmbr0 as 10.66.0.2/16 by 10.66.0.1"), "{said}");
    let said = healed(|w| w.facts(300).net = Some(LINE.replace("vmbr0", "vmbr55").parse().unwrap()));
    assert!(said.contains("bridge=vmbr55") && said.contains("is not at vmbr0"), "{said}");
}

/// A promise with nothing but local backups of that kind.
fn promise(consistency: &str) -> holdfast_protocol::protection::Protection {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 5, "window_min": 60 });
    let local = json!({ "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 3 } },
        "consistency": consistency });
    serde_json::from_value(json!({ "tiers": { "local": local }, "volumes": [] })).unwrap()
}

fn at(world: &mut World, address: &str) {
    world.facts(300).net = Some(LINE.replace("10.66.0.2/16", address).parse().unwrap());
    world.facts(300).address = Some(address.parse().unwrap());
}

#[test]
fn an_address_is_put_right() {
    let said = healed(|w| at(w, "10.66.9.9/16"));
    assert!(said.contains("ip=10.66.9.9/16") && said.contains("as 10.66.0.2/16"), "{said}");
    // Nobody promised backups that need its guest agent.
    let said = healed(|w| at(w, "10.99.9.9/16"));
    assert!(said.contains("is not at vmbr0 as 10.66.0.2/16"), "{said}");
}

/// A stolen hub could cut guest agents off by a document, and turn their backups into crash-consistent ones.
#[test]
fn a_move_after_which_its_guest_agent_is_not_heard_waits_where_programs_stand_still() {
    let promised = |consistency: &str| {
        let mut world = plugged();
        let uid = world.desired[0].uid;
        world.records.protections.insert(uid, std::sync::Arc::new(promise(consistency)));
        world
    };
    let moves: [fn(&mut World); 2] = [
        |w| w.desired[0].network.vlan = Some(7.try_into().unwrap()),
        |w| w.desired[0].network.address = "10.99.0.2/16".parse().unwrap(),
    ];
    for set_up in moves {
        let mut world = promised("application");
        set_up(&mut world);
        let plan = world.plan();
        let moved = |action: &Action| matches!(&action.operation, Operation::Reconfigure(_));
        assert!(!plan.actions.iter().any(moved), "{plan}");
        let held = plan.held.iter().find(|held| held.effect.contains("may not reach this host")).unwrap();
        assert!(held.report().payload.is_empty(), "no job of today does it");
        let mut world = promised("crash");
        set_up(&mut world);
        assert!(world.plan().actions.iter().any(moved), "{}", world.plan());
    }
    // Within its network it is heard as before.
    let mut world = promised("application");
    world.desired[0].network.address = "10.66.0.3/16".parse().unwrap();
    assert!(world.plan().actions.iter().any(|action| action.reason.contains("as 10.66.0.3/16")));
}

#[test]
fn what_is_not_put_right_is_reported() {
    let rows: [Situation; 3] = [
        ("the agent was given vmbr0", |w| w.desired[0].network.bridge = "vmbr9".parse().unwrap()),
        ("`pct set 300 -delete net1`", |w| w.facts(300).more_nets = BTreeSet::from([1])),
        ("`pct set 300 -delete template`", |w| w.facts(300).template = Template::Yes),
    ];
    for (words, set_up) in rows {
        let mut world = plugged();
        set_up(&mut world);
        let plan = world.plan();
        assert!(plan.actions.is_empty(), "{words}: {plan}");
        let conditions = &plan.verdicts[0].conditions;
        assert!(
            conditions.iter().any(|condition| condition.message.contains(words)),
            "{words}: {conditions:?}"
        );
    }
    // A template is not started, however it should run.
    let mut world = plugged();
    world.facts(300).template = Template::Yes;
    world.seen(300).run = Running::Stopped;
    assert!(world.plan().actions.is_empty(), "{}", world.plan());
}
