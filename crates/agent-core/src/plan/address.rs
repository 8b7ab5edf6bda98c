//! Addresses that a document may not give to a guest.
//!
//! What comes in: the document, the observation, root's settings. What goes out: why an address is not given, in words,
//! and the report on addresses that two interfaces answer for. Without this check, a document that a stolen hub wrote
//! could put a guest in the place of the agent's local API or of a router. Unknown data refuses nothing. On a VLAN of
//! its own a guest is in no network of the host's.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::net::Ipv4Cidr;

use super::Inputs;
use super::made::Made;
use crate::model::addresses::Answer;
use crate::model::mark::Mark;
use crate::model::net::NetLine;
use crate::model::observed::{Detail, GuestFacts, Observed};
use crate::model::policy::Policy;
use crate::model::records::Place;

/// Why a guest does not get the document's address; none when it may have it.
pub(super) fn taken(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<String> {
    let owner = of_the_host(inputs, guest).or_else(|| of_another(inputs, guest))?;
    Some(format!(
        "address {} is not given to a guest: {owner}; choose another network.address in the document",
        guest.network.address
    ))
}

fn of_the_host(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<String> {
    let (wanted, bridge) = (guest.network.address, &inputs.policy.bridge);
    let (address, kept, net) = (wanted.address(), &inputs.policy.kept, &inputs.observed.bridge_net);
    if kept.listeners.contains(&address) {
        return Some("the agent itself answers there (local_api.listen in the settings)".to_owned());
    }
    if net.own.contains(&address) {
        return Some(format!("it is this host's own on bridge {bridge}"));
    }
    if net.gateways.contains(&address) {
        return Some("it is the router by which this host reaches others".to_owned());
    }
    let speech = inputs.policy.scratch.as_ref().and_then(|scratch| scratch.speech.as_ref());
    if speech.is_some_and(|speech| speech.guest.reaches(address)) {
        return Some("it lies in the network on which backups are tried".to_owned());
    }
    if let Some(range) = kept.ranges.iter().find(|range| range.holds(address)) {
        return Some(format!("{range} is kept for others (reserved_addresses in the settings)"));
    }
    if let Some(other) = net.routers.get(&address) {
        return Some(format!("it is the gateway of guest {other}"));
    }
    // A VLAN of its own is a network of its own.
    if guest.network.vlan.is_some() || net.networks.is_empty() {
        return None;
    }
    let is_here = |one: &&Ipv4Cidr| one.prefix() == wanted.prefix() && one.reaches(address);
    if !net.networks.iter().any(|one| is_here(&one)) {
        let networks: Vec<String> = net.networks.iter().map(ToString::to_string).collect();
        return Some(format!("bridge {bridge} has the network {}", networks.join(" and ")));
    }
    is_an_end(wanted).then(|| "it is the network's own, or the one of all".to_owned())
}

/// The first and the last address of a network with more than two.
fn is_an_end(address: Ipv4Cidr) -> bool {
    let hosts = u32::MAX.checked_shr(u32::from(address.prefix())).unwrap_or(0);
    hosts > 1 && [0, hosts].contains(&(address.address().to_bits() & hosts))
}

/// A guest that is seen with it, in the document or not; not the guest itself.
fn of_another(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<String> {
    let holders = inputs.observed.bridge_net.holders.get(&guest.network.address.address())?;
    let vlan = guest.network.vlan.map(|tag| tag.get().to_string());
    // Mostly the guest alone has it, which its mark says.
    holders.iter().find_map(|vmid| {
        let seen = inputs.observed.guests.get(vmid)?;
        let Detail::Known(facts) = &seen.detail else { return None };
        let here = facts.net.as_ref().is_none_or(|line| line.vlan() == vlan.as_deref());
        let is_other = facts.mark != Mark::Of(guest.uid) && here && Some(*vmid) != made(inputs, guest);
        is_other.then(|| format!("guest {vmid} ({}) has it", seen.name))
    })
}

/// Under which number a guest was made.
fn made(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<Vmid> {
    let own = inputs.records.guests.binary_search_by_key(&guest.uid, |record| record.uid).ok()?;
    match &inputs.records.guests.get(own)?.place {
        Place::Made { vmid, .. } => Some(*vmid),
        Place::Nowhere | Place::Making { .. } | Place::Gone { .. } => None,
    }
}

/// What every guest is asked against, once for all of them: who has which address, and which routers the document names.
pub fn index(observed: &mut Observed, desired: &[DesiredGuest], policy: &Policy) {
    let mut holders: BTreeMap<Ipv4Addr, BTreeSet<Vmid>> = BTreeMap::new();
    for (vmid, seen) in &observed.guests {
        let Detail::Known(facts) = &seen.detail else { continue };
        // A copy that is not plugged in holds nothing, and one on another bridge nothing of this one.
        let plugged = |line: &NetLine| line.bridge() == Some(policy.bridge.as_str()) && !line.is_unplugged();
        if let Some(address) = facts.address.filter(|_| facts.net.as_ref().is_none_or(plugged)) {
            holders.entry(address.address()).or_default().insert(*vmid);
        }
    }
    observed.bridge_net.holders = holders;
    let routers = desired.iter().filter_map(|guest| Some((guest.network.gateway?, guest.name.clone())));
    observed.bridge_net.routers = routers.collect();
}

/// Whether a guest has the document's address already, so that nothing of it is moved.
pub(super) fn has(guest: &DesiredGuest, line: &NetLine) -> bool {
    line.has_address(guest.network.address)
}

/// Who answers for an address that a guest of the bridge has, or for a router's, and should not.
#[must_use]
pub fn strange(observed: &Observed, policy: &Policy) -> BTreeSet<Answer> {
    let known = observed.guests.values().filter_map(|seen| match &seen.detail {
        Detail::Known(facts) => Some(facts),
        Detail::Unknown(_) => None,
    });
    let (mut holders, mut ours) = (BTreeMap::new(), BTreeSet::new());
    for facts in known {
        ours.extend(facts.hardware.iter().copied());
        // Without a known interface, no other can be distinguished from it.
        if let Some(address) = held(facts, policy).filter(|_| !facts.hardware.is_empty()) {
            holders.insert(address, &facts.hardware);
        }
    }
    let net = &observed.bridge_net;
    let is_strange = |(address, hardware): &&Answer| {
        if net.gateways.contains(address) {
            ours.contains(hardware)
        } else {
            holders.get(address).is_some_and(|its| !its.contains(hardware))
        }
    };
    net.answers.iter().filter(is_strange).copied().collect()
}

/// The address that a guest has on the bridge of the guests, where it is plugged in there and in no VLAN.
fn held(facts: &GuestFacts, policy: &Policy) -> Option<Ipv4Addr> {
    let line = facts.net.as_ref()?;
    let here = line.bridge() == Some(policy.bridge.as_str()) && line.vlan().is_none() && !line.is_unplugged();
    here.then_some(facts.address?.address())
}

/// What is reported of a guest whose address two answer for, or that answers for a router.
pub(super) fn reported(inputs: &Inputs<'_>, made: &Made<'_>, facts: &GuestFacts) -> Vec<(ErrorCode, String)> {
    let (bridge, net) = (&inputs.policy.bridge, &inputs.observed.bridge_net);
    if net.strange.is_empty() {
        return Vec::new();
    }
    let held = held(facts, inputs.policy);
    let reported = net.strange.iter().filter_map(|((address, hardware), since)| {
        let text = if net.gateways.contains(address) {
            facts.hardware.contains(hardware).then(|| {
                format!(
                    "its interface {hardware} answers for the router {address} since {since:.0}: look into the guest, or stop it \
                     (`pct stop {}`)",
                    made.vmid
                )
            })
        } else {
            (held == Some(*address)).then(|| {
                format!(
                    "interface {hardware} answers for its address {address} since {since:.0}, and is not its own: find whose it is \
                     (`bridge fdb show br {bridge}`, `grep -ri {hardware} /etc/pve`), and give that machine another address"
                )
            })
        };
        Some((ErrorCode::AddressTwice, text?))
    });
    reported.collect()
}
