//! Tests of refused and duplicate addresses.

use jiff::SignedDuration;

use super::*;
use crate::model::addresses::{Answer, StrangeAnswers};
use crate::plan::address;

type Change = fn(&mut World);

const LINE: &str = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.2/16,type=veth";

fn plan_of(world: &mut World) -> Plan {
    address::index(&mut world.observed, &world.desired, &world.policy);
    world.plan()
}

fn reported(plan: &Plan, uid: usize, code: ErrorCode) -> Option<String> {
    let verdict = plan.verdicts.iter().find(|verdict| verdict.wanted == Some(uid)).unwrap();
    verdict.conditions.iter().find(|one| one.code == code).map(|one| one.message.clone())
}

fn seen_at(world: &mut World, number: u32, line: &str) {
    let line: crate::model::net::NetLine = line.parse().unwrap();
    let facts = world.facts(number);
    facts.address = line.ip().and_then(|ip| ip.parse().ok());
    facts.hardware = line.address().and_then(|address| address.parse().ok()).into_iter().collect();
    facts.net = Some(line);
}

/// Guest 2 wants 10.66.0.3/16; each of these has it already.
const TAKEN: [(&str, Change); 8] = [
    ("the agent itself answers there", |w| {
        w.policy.kept.listeners.insert("10.66.0.3".parse().unwrap());
    }),
    ("this host's own on bridge vmbr0", |w| {
        w.observed.bridge_net.own.insert("10.66.0.3".parse().unwrap());
    }),
    ("the router by which this host reaches others", |w| {
        w.observed.bridge_net.gateways.insert("10.66.0.3".parse().unwrap());
    }),
    ("10.66.0.0-10.66.0.9 is kept for others", |w| {
        w.policy.kept.ranges.push("10.66.0.0-10.66.0.9".parse().unwrap());
    }),
    ("the gateway of guest web-1", |w| {
        w.desired[0].network.gateway = Some("10.66.0.3".parse().unwrap());
    }),
    ("bridge vmbr0 has the network 10.66.0.0/24", |w| {
        w.observed.bridge_net.networks.insert("10.66.0.0/24".parse().unwrap());
    }),
    ("guest 300 (web-1) has it", |w| seen_at(w, 300, &LINE.replace("0.2/16", "0.3/16"))),
    ("the network's own", |w| {
        w.observed.bridge_net.networks.insert("10.66.0.3/16".parse().unwrap());
        w.desired[1].network.address = "10.66.255.255/16".parse().unwrap();
    }),
];

#[test]
fn a_new_guest_is_not_made_with_an_address_that_another_has() {
    for (words, change) in TAKEN {
        let mut world = world(1);
        world.desired.push(guest(2));
        world.observed.goldens.clear();
        change(&mut world);
        let plan = plan_of(&mut world);
        let why = reported(&plan, 1, ErrorCode::AddressTaken).unwrap_or_else(|| panic!("{words}: {plan}"));
        assert!(why.contains(words), "{words}: {why}");
        let makes = |action: &Action| matches!(&action.operation, Operation::Provision(_));
        assert!(!plan.actions.iter().any(makes), "{words}: {plan}");
    }
    let mut free = world(1);
    free.desired.push(guest(2));
    assert_eq!(reported(&plan_of(&mut free), 1, ErrorCode::AddressTaken), None);
}

#[test]
fn a_guest_is_not_moved_to_an_address_that_another_has() {
    for (words, change) in TAKEN {
        let mut world = world(2);
        seen_at(&mut world, 301, &LINE.replace("0.2/16", "0.77/16").replace("00:01", "00:02"));
        change(&mut world);
        let plan = plan_of(&mut world);
        let why = reported(&plan, 1, ErrorCode::AddressTaken).unwrap_or_else(|| panic!("{words}: {plan}"));
        assert!(why.contains(words) && why.contains("its network stays as it is"), "{words}: {why}");
        let moves = |action: &Action| match &action.operation {
            Operation::Reconfigure(change) => change
                .network
                .as_ref()
                .is_some_and(|place| place.address != Some("10.66.0.2/16".parse().unwrap())),
            _ => false,
        };
        assert!(!plan.actions.iter().any(moves), "{words}: {plan}");
    }
}

/// A stopped guest outside of the document is still one; its own number, an unplugged copy and another VLAN are not.
#[test]
fn what_does_not_speak_there_holds_nothing() {
    let lines = [
        LINE.replace("0.2/16", "0.3/16,link_down=1"),
        LINE.replace("0.2/16", "0.3/16,tag=7"),
        LINE.replace("0.2/16", "0.3/16").replace("vmbr0", "vmbr9"),
    ];
    for line in lines {
        let mut world = world(2);
        world.desired.remove(0);
        seen_at(&mut world, 300, &line);
        seen_at(&mut world, 301, &LINE.replace("0.2/16", "0.3/16"));
        assert_eq!(reported(&plan_of(&mut world), 0, ErrorCode::AddressTaken), None, "{line}");
    }
    let mut world = world(2);
    world.desired.remove(0);
    world.observed.guests.get_mut(&vmid(300)).unwrap().run = Running::Stopped;
    seen_at(&mut world, 300, &LINE.replace("0.2/16", "0.3/16"));
    assert!(reported(&plan_of(&mut world), 0, ErrorCode::AddressTaken).is_some());
}

#[test]
fn on_a_vlan_a_guest_is_in_no_network_of_the_hosts() {
    let mut world = world(0);
    world.desired = vec![guest(1)];
    world.desired[0].network.vlan = Some(7.try_into().unwrap());
    world.observed.bridge_net.networks.insert("192.0.2.0/24".parse().unwrap());
    assert_eq!(reported(&plan_of(&mut world), 0, ErrorCode::AddressTaken), None);
    world.desired[0].network.vlan = None;
    assert!(reported(&plan_of(&mut world), 0, ErrorCode::AddressTaken).unwrap().contains("192.0.2.0/24"));
}

/// Two that share an address push each other out of the kernel's table; a guest that answers for a router is reported
/// as well.
#[test]
fn who_answers_for_anothers_address_is_reported_with_its_age() {
    let answer =
        |address: &str, hardware: &str| -> Answer { (address.parse().unwrap(), hardware.parse().unwrap()) };
    let look = |answers: &[Answer]| {
        let mut world = world(1);
        seen_at(&mut world, 300, LINE);
        let net = &mut world.observed.bridge_net;
        net.answers = answers.iter().copied().collect();
        net.gateways.insert("10.66.0.1".parse().unwrap());
        let mut strange = StrangeAnswers::default();
        let found = address::strange(&world.observed, &world.policy);
        assert!(strange.take(found.clone(), at(-600)).is_empty());
        world.observed.bridge_net.strange = strange.take(found, at(-600) + SignedDuration::from_mins(5));
        reported(&plan_of(&mut world), 0, ErrorCode::AddressTwice)
    };
    assert_eq!(look(&[answer("10.66.0.2", "BC:24:11:00:00:01")]), None, "its own");
    assert_eq!(
        look(&[answer("10.66.0.1", "00:11:22:33:44:55"), answer("10.66.0.9", "00:11:22:33:44:55")]),
        None
    );
    let other = look(&[answer("10.66.0.2", "00:11:22:33:44:55")]).unwrap();
    assert!(other.contains("interface 00:11:22:33:44:55 answers for its address 10.66.0.2 since"), "{other}");
    let router = look(&[answer("10.66.0.1", "BC:24:11:00:00:01")]).unwrap();
    assert!(
        router.contains("its interface BC:24:11:00:00:01 answers for the router 10.66.0.1 since"),
        "{router}"
    );
}
