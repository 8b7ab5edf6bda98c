//! The address filter that a guest behind Proxmox's firewall lacks.
//!
//! What comes in: the document, and the guest's firewall as it was seen. What goes out: from which addresses it may send, and
//! what a person should see to. Used is the firewall where the flag is on the guest's first network and the guest's own switch
//! is on: that switch is root's, since without rules of root's it would cut the guest off. A guest whose addresses this agent
//! does not know all is left as it is.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{AddressFilter, DesiredGuest};
use holdfast_protocol::id::Vmid;

use crate::model::filter::{FilterFacts, FilterRequest, FilterSeen, Switched};
use crate::model::net::NetPlace;
use crate::model::observed::GuestFacts;

/// From which addresses it may send from now on, and why; nothing, where it is so. Until a move is done both its addresses are
/// good.
pub(super) fn goal(
    guest: &DesiredGuest,
    facts: &GuestFacts,
    place: Option<&NetPlace>,
) -> Option<(FilterRequest, String)> {
    let seen = used(guest, facts)?;
    if hindered(facts).is_some() {
        return None;
    }
    let has = facts.address.map(|address| address.address());
    let comes = place.and_then(|place| place.address).map(|address| address.address());
    let goal = FilterRequest { addresses: has.into_iter().chain(comes).collect() };
    let why = "Proxmox's firewall is used for it and does not hold it to its addresses".to_owned();
    (!seen.missing(&goal).is_empty()).then_some((goal, why))
}

/// Its firewall, where it is used and the document wants it held to its addresses.
fn used<'a>(guest: &DesiredGuest, facts: &'a GuestFacts) -> Option<&'a FilterFacts> {
    match (&facts.filter, guest.network.address_filter.unwrap_or_default()) {
        (FilterSeen::Read(seen), AddressFilter::Own) if seen.firewall == Switched::On => Some(seen),
        (FilterSeen::NotLooked | FilterSeen::Read(_) | FilterSeen::NotUsed | FilterSeen::Unknown(_), _) => {
            None
        }
    }
}

/// Why not all its addresses are known here.
fn hindered(facts: &GuestFacts) -> Option<&'static str> {
    let six = facts.net.as_ref().and_then(|line| line.value("ip6"));
    if facts.address.is_none() {
        Some("its address is not a fixed one")
    } else if !facts.more_nets.is_empty() {
        Some("it has further networks")
    } else if six.is_some_and(|six| six != "manual") {
        Some("it has an IPv6 address")
    } else {
        None
    }
}

/// What a person should see to.
pub(super) fn unlike(guest: &DesiredGuest, vmid: Vmid, facts: &GuestFacts) -> Vec<(ErrorCode, String)> {
    if let FilterSeen::Unknown(why) = &facts.filter {
        let text = format!("whether Proxmox's firewall holds it to its addresses cannot be read: {why}");
        return vec![(ErrorCode::Unavailable, text)];
    }
    let filters = |seen: &FilterFacts| (seen.hardware, seen.addresses) == (Switched::On, Switched::On);
    let open = used(guest, facts).filter(|seen| !filters(seen)).and_then(|_| hindered(facts));
    let text = open.map(|why| {
        format!(
            "Proxmox's firewall is used for it and does not hold it to its addresses, and neither does the agent: {why}; root writes \
             a set `ipfilter-netN` for each of its networks and sets `ipfilter` in the firewall's options of {vmid}, or the document \
             says `\"address_filter\": \"as_it_is\"`"
        )
    });
    text.map(|text| (ErrorCode::Unavailable, text)).into_iter().collect()
}
