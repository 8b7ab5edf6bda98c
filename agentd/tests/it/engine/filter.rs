//! Tests of the address filter behind Proxmox's firewall.

use std::time::Duration;

use agentd::model::filter::{EntryOwner, FilterFacts, Switched};
use agentd::model::view::HostSnapshot;
use agentd::port::pve::{ConfigChange, ConfigUpdate};
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::report::AddressFilterState;
use serde_json::json;

use super::drift::{report, serves, start};
use super::world::{World, guest};

/// A guest whose network has the firewall's flag.
fn walled(address: &str, filter: &str) -> DesiredGuest {
    let mut wanted = guest(1);
    let network =
        json!({ "bridge": "vmbr0", "address": address, "firewall": "on", "address_filter": filter });
    wanted.network = serde_json::from_value(network).unwrap();
    wanted
}

/// Changes its memory by hand: the agent reads its configuration again, and corrects that, too.
async fn touched(world: &World, vmid: Vmid) {
    let digest = world.pve().guest_config(vmid).await.unwrap().digest;
    let change = ConfigUpdate::new(digest, vec![ConfigChange::Memory(128.try_into().unwrap())]).unwrap();
    world.pve().configure(vmid, &change).await.unwrap();
}

async fn until(world: &World, vmid: Vmid, what: &str, is: impl Fn(&FilterFacts) -> bool) -> FilterFacts {
    let pve = world.pve();
    let looking = async {
        loop {
            let seen = pve.guest_filter(vmid).await.unwrap();
            if is(&seen) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), looking).await {
        Ok(seen) => seen,
        Err(_) => panic!("never {what}: {:?}", pve.guest_filter(vmid).await),
    }
}

/// The set holds this address of ours and no other, and what was allowed by hand.
fn holds(seen: &FilterFacts, address: &str) -> bool {
    let allowed = seen.allowed.iter().flatten().map(|(text, owner)| (text.as_str(), *owner));
    allowed.eq([(address, EntryOwner::Ours), ("10.66.0.99", EntryOwner::Others)])
        && (seen.hardware, seen.addresses) == (Switched::On, Switched::On)
}

fn reported(view: &HostSnapshot, state: AddressFilterState) -> bool {
    report(view, 1).is_some_and(|report| report.address_filter == Some(state))
}

/// The report shows that nothing filters, and where the setting for it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_without_the_flag_is_reported() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![guest(1)]).await;
    agent
        .until("that nothing filters it is reported", |view| reported(view, AddressFilterState::NoFlag))
        .await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_behind_the_firewall_is_held_to_its_addresses_and_follows_the_document() {
    let world = World::start().await;
    let mut agent = start(&world).await;
    agent.goal(1, vec![walled("10.66.0.1/24", "own")]).await;
    let view = agent.until("a guest that serves", |view| serves(view, 1)).await;
    let vmid = report(&view, 1).unwrap().vmid.unwrap();
    let before = world.pve().guest_filter(vmid).await.unwrap();
    assert_eq!((before.firewall, before.addresses, before.allowed), (Switched::Off, Switched::Off, None));

    agent
        .until("that its firewall is off is reported", |view| reported(view, AddressFilterState::FirewallOff))
        .await;

    // Root uses the firewall, without the filters, and allows one address more.
    let path = format!("/nodes/pve1/lxc/{vmid}/firewall");
    let by_hand = |method: &str, tail: &str, parameters: &[(&str, &str)]| {
        assert_eq!(world.by_hand(method, &format!("{path}{tail}"), parameters), 200, "{tail}");
    };
    by_hand("POST", "/ipset", &[("name", "ipfilter-net0")]);
    by_hand("POST", "/ipset/ipfilter-net0", &[("cidr", "10.66.0.99")]);
    by_hand("PUT", "/options", &[("enable", "1"), ("policy_in", "ACCEPT"), ("macfilter", "0")]);
    touched(&world, vmid).await;
    let seen = until(&world, vmid, "held to its address", |seen| holds(seen, "10.66.0.1")).await;
    assert_eq!(seen.firewall, Switched::On);
    agent.until("nothing is left to tell", |view| serves(view, 1)).await;
    agent.until("the report says so", |view| reported(view, AddressFilterState::Set)).await;

    // The guest moves: its set moves with it, and its former address belongs to no guest.
    agent.goal(2, vec![walled("10.66.0.2/24", "own")]).await;
    until(&world, vmid, "held to its new address", |seen| holds(seen, "10.66.0.2")).await;
    let config = world.pve().guest_config(vmid).await.unwrap();
    assert!(config.nets[&0].contains("ip=10.66.0.2/24"), "{:?}", config.nets);

    // A document that leaves it to root.
    agent.goal(3, vec![walled("10.66.0.2/24", "as_it_is")]).await;
    agent.until("it serves at its new address", |view| serves(view, 1)).await;
    // Before the second round the document is the one in use.
    for round in ["in use", "left"] {
        if round == "left" {
            by_hand("PUT", "/options", &[("ipfilter", "0")]);
        }
        touched(&world, vmid).await;
        agent.until("its memory is seen", |view| !serves(view, 1)).await;
        agent.until("its memory is put right", |view| serves(view, 1)).await;
    }
    let left = world.pve().guest_filter(vmid).await.unwrap();
    assert_eq!((left.firewall, left.addresses), (Switched::On, Switched::Off));
    agent.stop().await;
}
