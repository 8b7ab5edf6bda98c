//! Tests of the address filter behind Proxmox's firewall.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use holdfast_protocol::desired::AddressFilter;
use holdfast_protocol::report::AddressFilterState;

use super::*;
use crate::model::filter::{FilterFacts, FilterSeen, Switched};
use crate::operation::Operation;

const LINE: &str = "name=eth0,bridge=vmbr0,firewall=1,hwaddr=BC:24:11:00:00:01,ip=10.66.0.2/16,type=veth";

/// Root switched the firewall on for it, and wrote nothing else.
fn walled() -> FilterFacts {
    let (on, off) = (Switched::On, Switched::Off);
    FilterFacts { firewall: on, hardware: on, addresses: off, allowed: None }
}

/// A settled guest with this firewall.
fn behind(filter: FilterSeen, set_up: impl Fn(&mut World)) -> World {
    let mut world = world(1);
    let address = world.desired[0].network.address;
    let facts = world.facts(300);
    facts.net = Some(LINE.parse().unwrap());
    (facts.address, facts.filter) = (Some(address), filter);
    set_up(&mut world);
    world
}

/// From which addresses it may send after what is done next.
fn held_to(world: &World) -> Option<BTreeSet<Ipv4Addr>> {
    let plan = world.plan();
    match plan.actions.as_slice() {
        [] => None,
        [Action { operation: Operation::Reconfigure(change), .. }] => {
            change.filter.as_ref().map(|goal| goal.addresses.clone())
        }
        _ => panic!("{plan}"),
    }
}

fn addresses(all: &[&str]) -> Option<BTreeSet<Ipv4Addr>> {
    Some(all.iter().map(|one| one.parse().unwrap()).collect())
}

#[test]
fn a_guest_is_held_to_its_address_and_while_it_moves_to_both() {
    let world = behind(FilterSeen::Read(walled()), |_| {});
    let own = world.desired[0].network.address.address().to_string();
    assert_eq!(held_to(&world), addresses(&[&own]));
    let moving = behind(FilterSeen::Read(walled()), |w| {
        w.desired[0].network.address = "10.66.0.77/16".parse().unwrap();
    });
    assert_eq!(held_to(&moving), addresses(&[&own, "10.66.0.77"]));
}

#[test]
fn where_the_firewall_is_not_used_or_the_document_says_so_nothing_is_done() {
    let off = FilterFacts { firewall: Switched::Off, ..walled() };
    let quiet = |world: World| {
        let plan = world.plan();
        assert!(plan.actions.is_empty() && plan.verdicts[0].conditions.is_empty(), "{plan}");
    };
    for filter in [FilterSeen::NotUsed, FilterSeen::Read(off)] {
        quiet(behind(filter, |_| {}));
    }
    quiet(behind(FilterSeen::Read(walled()), |w| {
        w.desired[0].network.address_filter = Some(AddressFilter::AsItIs);
    }));
}

#[test]
fn a_guest_owner_addresses_are_not_all_known_is_left_and_reported() {
    let rows: [Situation; 3] = [
        ("further networks", |w| w.facts(300).more_nets = BTreeSet::from([1])),
        ("an IPv6 address", |w| w.facts(300).net = Some(format!("{LINE},ip6=auto").parse().unwrap())),
        ("cannot be read: 403", |w| w.facts(300).filter = FilterSeen::Unknown("403".to_owned())),
    ];
    for (words, set_up) in rows {
        let world = behind(FilterSeen::Read(walled()), set_up);
        assert_eq!(held_to(&world), None, "{words}");
        let conditions = world.plan().verdicts[0].conditions.clone();
        assert!(conditions.iter().any(|one| one.message.contains(words)), "{words}: {conditions:?}");
    }
}

/// What the report says of each, and that it says nothing of a guest that was not checked or is not ours.
#[test]
fn the_report_says_what_was_read_and_nothing_else() {
    let off = FilterFacts { firewall: Switched::Off, ..walled() };
    let rows = [
        (FilterSeen::NotLooked, None),
        (FilterSeen::NotUsed, Some(AddressFilterState::NoFlag)),
        (FilterSeen::Read(off), Some(AddressFilterState::FirewallOff)),
        (FilterSeen::Read(walled()), Some(AddressFilterState::Incomplete)),
    ];
    for (filter, state) in rows {
        let world = behind(filter.clone(), |_| {});
        assert_eq!(world.reports()[0].address_filter, state, "{filter:?}");
    }
    let stranger = behind(FilterSeen::NotUsed, |w| {
        w.records.guests.clear();
        w.desired.clear();
    });
    let reports = stranger.reports();
    assert!(!reports.is_empty() && reports.iter().all(|one| one.address_filter.is_none()), "{reports:?}");
}
