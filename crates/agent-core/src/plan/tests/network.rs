//! Tests of name and network held to the document.

use holdfast_protocol::desired::{FirewallFlag, Mtu, Rate};

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
        [Action { operation: Operation::Reconfigure(_), reason, .. }] => reason.clone(),
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

fn own_resolver() -> holdfast_protocol::desired::Resolver {
    serde_json::from_value(json!({ "own": { "servers": ["9.9.9.9", "fd00::1"], "search": ["lan.example"] } }))
        .unwrap()
}

#[test]
fn packets_limit_firewall_and_resolver_are_put_right_where_they_are_named() {
    let by_hand = |w: &mut World| {
        w.facts(300).net = Some(format!("{LINE},mtu=1400,rate=2.5,firewall=1").parse().unwrap());
        w.facts(300).resolver.servers = Some("192.0.2.1".to_owned());
    };
    let mut left = plugged();
    by_hand(&mut left);
    assert!(left.plan().actions.is_empty(), "what no document names stays: {}", left.plan());
    let rows: [(Situation, &str); 3] = [
        (
            ("mtu", |w| w.desired[0].network.mtu = Some(Mtu::Bytes(1300.try_into().unwrap()))),
            "with packets of 1300 bytes",
        ),
        (("rate", |w| w.desired[0].network.rate = Some(Rate::Unlimited)), "without a limit"),
        (
            ("resolver", |w| w.desired[0].network.resolver = Some(own_resolver())),
            "it asks 192.0.2.1 for names, wanted 9.9.9.9 fd00::1 in lan.example",
        ),
    ];
    for ((_, goal), words) in rows {
        let said = healed(|w| {
            by_hand(w);
            goal(w);
        });
        assert!(said.contains(words), "{said}");
    }
    let said = healed(|w| {
        by_hand(w);
        w.desired[0].network.resolver = Some(holdfast_protocol::desired::Resolver::Host);
    });
    assert!(said.contains("wanted the host's own"), "{said}");
}

/// A stolen hub could take guests from behind rules that an operator wrote; on the other side nothing is lost.
#[test]
fn a_firewall_is_put_before_a_guest_by_documents_and_taken_away_by_a_person() {
    let firewall = |line: &str, flag: FirewallFlag| {
        let mut world = plugged();
        world.facts(300).net = Some(line.parse().unwrap());
        world.desired[0].network.firewall = Some(flag);
        world.desired[0].network.rate = Some(Rate::MibPerS(9.try_into().unwrap()));
        world.plan()
    };
    let on = firewall(LINE, FirewallFlag::On);
    assert!(on.actions[0].reason.contains("behind the firewall") && on.held.is_empty(), "{on}");
    let off = firewall(&format!("{LINE},firewall=1"), FirewallFlag::Off);
    assert!(off.held[0].effect.contains("take the firewall's flag from the network of guest web-1"), "{off}");
    assert!(!off.actions[0].reason.contains("firewall,") && off.actions[0].reason.contains("9 MiB"), "{off}");
    let Operation::Reconfigure(change) = &off.actions[0].operation else { panic!("{off}") };
    assert_eq!(change.network.as_ref().unwrap().firewall, None, "the rest does not wait for it");
    assert!(firewall(LINE, FirewallFlag::Off).held.is_empty());
}

/// Proxmox takes the size, and the guest does not start with it.
#[test]
fn packets_that_the_bridge_does_not_carry_are_refused() {
    let large = |w: &mut World| {
        w.desired[0].network.mtu = Some(Mtu::Bytes(9000.try_into().unwrap()));
        w.observed.bridge_mtu = Some(1500);
    };
    let mut world = plugged();
    large(&mut world);
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let reported = |plan: &Plan| {
        let found = plan.verdicts[0].conditions.iter().find(|one| one.code == ErrorCode::Range).cloned();
        found.unwrap_or_else(|| panic!("{plan}")).message
    };
    assert!(reported(&plan).contains("packets of 9000 bytes, and bridge vmbr0 carries 1500"), "{plan}");
    // The rest of its network does not wait for that.
    let said = healed(|w| {
        large(w);
        w.desired[0].network.vlan = Some(7.try_into().unwrap());
    });
    assert!(said.contains("VLAN 7") && !said.contains("packets"), "{said}");
    // One that is not there is not made.
    let mut new = world_without_guest();
    large(&mut new);
    let plan = new.plan();
    assert!(plan.actions.is_empty() && reported(&plan).contains("it is not made until then"), "{plan}");
}

/// The document names one guest, and none is there.
fn world_without_guest() -> World {
    let mut world = world(0);
    world.desired = vec![guest(1)];
    world
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
    // No promise is in force for backups that need its guest agent.
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
    let rows: [Situation; 4] = [
        ("net0 with `pct config 300`", |w| w.facts(300).net = None),
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
