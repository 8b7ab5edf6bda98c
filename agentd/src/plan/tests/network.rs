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
    assert!(said.contains("is not at vmbr0 VLAN 7 without a gateway"), "{said}");
    let said = healed(|w| w.desired[0].network.gateway = Some("10.66.0.1".parse().unwrap()));
    assert!(said.contains("is not at vmbr0 by 10.66.0.1"), "{said}");
    let said = healed(|w| w.facts(300).net = Some(LINE.replace("vmbr0", "vmbr55").parse().unwrap()));
    assert!(said.contains("bridge=vmbr55") && said.contains("is not at vmbr0"), "{said}");
}

#[test]
fn what_is_not_put_right_is_reported() {
    let rows: [Situation; 4] = [
        ("the agent was given vmbr0", |w| w.desired[0].network.bridge = "vmbr9".parse().unwrap()),
        ("its address is 10.66.9.9/16", |w| w.facts(300).address = Some("10.66.9.9/16".parse().unwrap())),
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
