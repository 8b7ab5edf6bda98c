//! Who gets a connection at the hub: whoever shows who it is keeps it, strangers share a part.
//!
//! In: a place that connects; later the host or operator that it shows itself to be. Out: a slot, or a refusal. The decision is
//! [`holdfast_tls::admission`]'s; here are the numbers, and which places are familiar: from where hosts and operators were
//! served since the hub began. They wait apart from strangers until they show who they are.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_protocol::id::{HostId, OperatorName};
use holdfast_tls::admission::{Arrived, Limits, Origin, Party, Refusal, Slot, Slots};
use tokio::sync::Notify;

use crate::domain::familiar::Familiar;

/// Strangers at a time. Each may have sent 64 KiB of a body, so 64 MiB together; and as few handshakes stand before that of
/// a host from a familiar place: half a second of one core.
pub const STRANGERS_MAX: u32 = 1024;

/// Of one place: several hosts and operators behind one address, before they show who they are.
const EACH_ORIGIN: u32 = 64;

/// Of one host, operator or familiar place. An agent has a check-in that is held and a few calls beside it; those of a line
/// that was cut stay for a minute.
const EACH_MEMBER: u32 = 32;

/// One connection for each host, whatever others do: that is its check-in. Ten thousand fit.
const RESERVED: u32 = 1;

/// Whom the hub knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Member {
    /// By its certificate.
    Host(HostId),
    /// By a token.
    Operator(OperatorName),
    /// Not yet, from a place where others were served.
    Familiar(Origin),
}

/// Ends a connection that makes room.
pub(super) type End = Arc<Notify>;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Admit {
    slots: Slots<Member, End>,
    familiar: Arc<Mutex<Familiar<Member>>>,
}

/// One connection: its slot, and where it comes from. Handlers say who it turned out to be.
#[derive(Clone)]
pub struct Visitor(Arc<Seen>);

struct Seen {
    slot: Slot<Member, End>,
    from: Origin,
    admit: Admit,
}

impl Admit {
    pub(super) fn new(connections_max: usize) -> Self {
        Self { slots: Slots::new(limits(connections_max)), familiar: Arc::default() }
    }

    /// Takes a slot, and ends the connection that made room for it.
    pub(super) fn admit(&self, from: IpAddr) -> Result<(Visitor, End), Refusal> {
        let (from, end) = (Origin::from(from), End::default());
        let is_familiar = self.familiar.lock().unwrap_or_else(PoisonError::into_inner).knows(from);
        let take = |party| self.slots.arrive(party, Arc::clone(&end));
        let stranger = || take(Party::Stranger(from));
        let admitted = match is_familiar {
            // Beyond what a familiar place may have it is a place as any other.
            true => take(Party::Member(Member::Familiar(from))).or_else(|_| stranger()),
            false => stranger(),
        };
        let Arrived { slot, displaced } = admitted?;
        if let Some(displaced) = displaced {
            displaced.notify_one();
        }
        Ok((Visitor(Arc::new(Seen { slot, from, admit: self.clone() })), end))
    }
}

impl Visitor {
    /// Where it comes from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.from
    }

    pub(super) fn speaks(&self) {
        self.0.slot.speaks();
    }

    /// Its certificate names this host.
    ///
    /// # Errors
    /// When the host has as many connections as it may.
    pub(super) fn is_host(&self, host: HostId) -> Result<(), Refusal> {
        self.0.slot.is_member(Member::Host(host))
    }

    /// This host's certificate was found good, by the store: others of its place wait apart from strangers.
    pub fn served_host(&self, host: HostId) {
        self.served(Member::Host(host));
    }

    /// Its token is this operator's.
    ///
    /// # Errors
    /// When the operator has as many connections as one may.
    pub fn is_operator(&self, name: &OperatorName) -> Result<(), Refusal> {
        self.0.slot.is_member(Member::Operator(name.clone()))?;
        self.served(Member::Operator(name.clone()));
        Ok(())
    }

    fn served(&self, member: Member) {
        self.0.admit.familiar.lock().unwrap_or_else(PoisonError::into_inner).served(member, self.0.from);
    }
}

/// An eighth for strangers, up to their bound.
fn limits(connections_max: usize) -> Limits {
    let total = u32::try_from(connections_max).unwrap_or(u32::MAX).max(1);
    let strangers = (total / 8).clamp(1, STRANGERS_MAX);
    Limits {
        total,
        strangers,
        each_origin: EACH_ORIGIN.min(strangers),
        each_member: EACH_MEMBER,
        reserved: RESERVED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_that_the_hub_is_made_for_fit() {
        let usual = limits(12_000);
        assert!(usual.fit(10_000) && usual.strangers == STRANGERS_MAX, "{usual:?}");
        let least = limits(1);
        assert_eq!((least.total, least.strangers, least.each_origin), (1, 1, 1));
    }
}
