//! A guest's network, held to the document.
//!
//! What comes in: the document, the network line as it was seen. What goes out: what is put right, waits, or is reported.
//!
//! Bridge, VLAN, gateway and address of its first network are put right; so are packet size, limit, firewall flag and
//! resolver, where the document names them. A guest agent speaks to us over that network, and
//! a backup of programs that stand still needs it. So where such backups are promised, a move after which it may not reach us
//! waits for a person, like anything that lowers a promise. Nothing is taken away that somebody added by hand.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, FirewallFlag, Mtu, Resolver};
use holdfast_protocol::id::Vmid;
use holdfast_protocol::protection::Consistency;

use super::made::Made;
use super::{Context, Inputs, address};
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::gate::{Effect, Provenance, Verdict, gate};
use crate::model::net::{NetLine, NetPlace, ResolverText};
use crate::model::observed::{GuestFacts, Template};
use crate::model::records::Records;

/// Where its first network is to be plugged in, and why; nothing, where it is there, cannot be read, may not be there, or
/// waits.
pub(super) fn place(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    (facts, moves): (&GuestFacts, Option<&NetPlace>),
) -> Option<(NetPlace, String)> {
    let (place, line) = (moves?, facts.net.as_ref()?);
    let waits = cuts_off(guest, facts, line) && stands_still(inputs.records, guest);
    (!waits).then(|| (place.clone(), format!("its network {line} is not at {place}")))
}

/// The name servers that it is to use, and why, where that is another than it has.
pub(super) fn resolver(guest: &DesiredGuest, facts: &GuestFacts) -> Option<(Resolver, String)> {
    let wanted = guest.network.resolver.as_ref()?;
    let text = ResolverText::of(wanted);
    (text != facts.resolver)
        .then(|| (wanted.clone(), format!("it asks {} for names, wanted {text}", facts.resolver)))
}

/// Whether the document takes the guest from behind a firewall whose rules somebody wrote on the host.
fn opens(guest: &DesiredGuest, line: &NetLine) -> bool {
    guest.network.firewall == Some(FirewallFlag::Off) && line.firewall() == FirewallFlag::On
}

/// What waits for a person: a move that cuts the guest agent off, and a firewall that is to look no more.
pub(super) fn held(
    context: &Context<'_>,
    guest: &DesiredGuest,
    made: &Made<'_>,
    (facts, moves): (&GuestFacts, Option<&NetPlace>),
) -> Vec<PendingApproval> {
    let verdict = gate(&Effect::LowerProtection, Provenance::Document, &context.approved);
    let Verdict::NeedsSignature(reason) = verdict else { return Vec::new() };
    let open = facts.net.as_ref().filter(|line| opens(guest, line)).map(|_| PendingApproval {
        effect: format!("take the firewall's flag from the network of guest {} ({})", guest.name, made.vmid),
        reason,
        guest: guest.uid,
        remedy: Remedy::ByHand(
            "root on the host takes `firewall=1` from net0 with `pct set VMID -net0 …`, or the document is put back",
        ),
    });
    open.into_iter().chain(held_move(context, guest, made, (facts, moves))).collect()
}

/// The move that waits for a person.
fn held_move(
    context: &Context<'_>,
    guest: &DesiredGuest,
    made: &Made<'_>,
    (facts, moves): (&GuestFacts, Option<&NetPlace>),
) -> Option<PendingApproval> {
    let (place, line) = (moves?, facts.net.as_ref()?);
    if !(cuts_off(guest, facts, line) && stands_still(context.inputs.records, guest)) {
        return None;
    }
    let verdict = gate(&Effect::LowerProtection, Provenance::Document, &context.approved);
    let Verdict::NeedsSignature(reason) = verdict else { return None };
    Some(PendingApproval {
        effect: format!(
            "move the network of guest {} ({}) from {line} to {place}, where its guest agent may not reach this host and its \
             backups would be crash-consistent",
            guest.name, made.vmid
        ),
        reason,
        guest: guest.uid,
        remedy: Remedy::ByHand(
            "root on the host writes it with `pct set VMID -net0 …`, or the document is put back",
        ),
    })
}

/// The place that it should have, where its line differs from it.
pub(super) fn moves(inputs: &Inputs<'_>, guest: &DesiredGuest, facts: &GuestFacts) -> Option<NetPlace> {
    let line = facts.net.as_ref()?;
    // Mostly it is where it should be, and nothing of what follows is worked out.
    if line.is_at(&guest.network) {
        return None;
    }
    let mut place = NetPlace::of(&guest.network);
    // The rest of its place does not wait for a size of packets that its bridge cannot carry. One that is there already is not
    // written down as new: a guest has it from its next start alone.
    let there = place.mtu.is_some_and(|mtu| line.has(mtu));
    if there || too_large(inputs, guest).is_some() {
        place.mtu = None;
    }
    if opens(guest, line) {
        place.firewall = None;
    }
    // It stays where it is: another's address is not taken, nor half of a place.
    let may_go = address::has(guest, line) || address::taken(inputs, guest).is_none();
    let moves = guest.network.bridge == inputs.policy.bridge && may_go && line.at(&place) != *line;
    moves.then_some(place)
}

/// Why packets of the document's size are not set: the bridge carries no such.
pub(super) fn too_large(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Option<String> {
    let (Some(Mtu::Bytes(wanted)), Some(carried)) = (guest.network.mtu, inputs.observed.bridge_mtu) else {
        return None;
    };
    (wanted.get() > carried).then(|| {
        format!(
            "the document wants packets of {wanted}, and bridge {} carries {carried}: correct network.mtu in the document, or the \
             bridge on the host",
            guest.network.bridge
        )
    })
}

/// Whether its guest agent may reach us no more after the move: it leaves its VLAN or its network.
fn cuts_off(guest: &DesiredGuest, facts: &GuestFacts, line: &NetLine) -> bool {
    let wanted = &guest.network;
    let stays = facts.address.is_none_or(|seen| {
        seen == wanted.address
            || (seen.reaches(wanted.address.address()) && wanted.address.reaches(seen.address()))
    });
    !line.is_in(wanted.vlan) || !stays
}

/// Whether backups are promised for which its programs stand still.
fn stands_still(records: &Records, guest: &DesiredGuest) -> bool {
    let Some(promise) = records.protections.get(&guest.uid) else { return false };
    let off_site = promise.tiers.off_site.as_ref().map(|tier| &tier.backup);
    let mut tiers = promise.tiers.local.iter().chain(off_site);
    tiers.any(|tier| tier.consistency == Consistency::Application)
}

/// The guest as it can be made now: packets that its bridge cannot carry do not keep a lost one away.
pub(super) fn carried(inputs: &Inputs<'_>, guest: &DesiredGuest) -> DesiredGuest {
    let mut guest = guest.clone();
    if too_large(inputs, &guest).is_some() {
        guest.network.mtu = None;
    }
    guest
}

/// What differs and is not put right.
pub(super) fn unlike(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    vmid: Vmid,
    facts: &GuestFacts,
) -> Vec<(ErrorCode, String)> {
    let policy = inputs.policy;
    let mut found = Vec::new();
    if facts.net.is_none() {
        let text = format!(
            "it has no first network that can be read: nothing of its network is put right; look at net0 with `pct config {vmid}`"
        );
        found.push((ErrorCode::Unavailable, text));
    }
    if let Some(why) = too_large(inputs, guest) {
        found.push((ErrorCode::Range, format!("{why}; its packets stay as they are")));
    }
    if guest.network.bridge != policy.bridge {
        let text = format!(
            "the document puts it on bridge {}, and the agent was given {}: its network stays as it is; correct the document, or \
             `bridge` in the settings on the host",
            guest.network.bridge, policy.bridge
        );
        found.push((ErrorCode::Forbidden, text));
    }
    if let Some(why) = address::taken(inputs, guest) {
        let has = facts.net.as_ref().is_some_and(|line| address::has(guest, line));
        let text = if has {
            format!("it has an address that it may not have: {why}")
        } else {
            format!("{why}; its network stays as it is")
        };
        found.push((ErrorCode::AddressTaken, text));
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
