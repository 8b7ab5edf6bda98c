//! Where a guest is plugged in, held to the document: what is put right and what is only reported.
//!
//! Bridge, VLAN and gateway of its first network are put right. Its address is not: the guest agent speaks from it, and a
//! change must keep that. Nor is anything taken away that somebody added by hand. Each of these is reported.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::Vmid;

use crate::model::net::NetPlace;
use crate::model::observed::{GuestFacts, Template};
use crate::model::policy::Policy;

/// Where its first network is to be plugged in, and why; nothing, where it is there, cannot be read, or may not be there.
pub(super) fn place(policy: &Policy, guest: &DesiredGuest, facts: &GuestFacts) -> Option<(NetPlace, String)> {
    let (place, line) = (NetPlace::of(&guest.network), facts.net.as_ref()?);
    let moves = guest.network.bridge == policy.bridge && line.at(&place) != *line;
    let text = format!("its network {line} is not at {place}");
    moves.then_some((place, text))
}

/// What differs and is not put right.
pub(super) fn unlike(
    policy: &Policy,
    guest: &DesiredGuest,
    vmid: Vmid,
    facts: &GuestFacts,
) -> Vec<(ErrorCode, String)> {
    let mut found = Vec::new();
    if guest.network.bridge != policy.bridge {
        let text = format!(
            "the document puts it on bridge {}, and the agent was given {}: its network stays as it is; correct the document, or \
             `bridge` in the settings on the host",
            guest.network.bridge, policy.bridge
        );
        found.push((ErrorCode::Forbidden, text));
    }
    if let Some(seen) = facts.address.filter(|seen| *seen != guest.network.address) {
        let text = format!(
            "its address is {seen}, the document's is {}: nothing is changed, and its guest agent is not heard until the two \
             agree; change one of them by hand",
            guest.network.address
        );
        found.push((ErrorCode::Unavailable, text));
    }
    for number in &facts.more_nets {
        let text = format!(
            "it has a network net{number} that the document does not know: `pct set {vmid} -delete net{number}` takes it away"
        );
        found.push((ErrorCode::Unavailable, text));
    }
    if facts.template == Template::Yes {
        let text = format!(
            "somebody turned it into a template, which cannot be started: `pct set {vmid} -delete template` makes it a guest again"
        );
        found.push((ErrorCode::Unavailable, text));
    }
    found
}
