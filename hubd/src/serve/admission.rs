//! Admission of connections: slots for known peers and for strangers.
//!
//! In: an origin that connects; later the host or operator that it shows itself to be. Out: a slot, or a refusal.
//! [`net::admission`] decides. This module holds the numbers, and the known origins: those from which hosts and
//! operators were served since the hub began. Their connections wait apart from strangers until they show who they are.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Extensions;
use holdfast_protocol::id::{HostId, OperatorName};
use net::admission::{Arrived, Limits, Origin, Party, Refusal, Slot, Slots};
use net::server::{CloseSignal, ConnectionSettings, Ends};
use rustls::pki_types::CertificateDer;

use super::{AGENT_WAIT, STRANGER_WAIT, presented};
use crate::domain::known_origins::KnownOrigins;

/// Strangers at a time. Each may have sent 64 KiB of a body, so 64 MiB together. At most this many handshakes are ahead
/// of that of a host from a known origin: half a second of one core.
pub const STRANGERS_MAX: u32 = 1024;

/// Of one place: several hosts and operators behind one address, before they show who they are.
const EACH_ORIGIN: u32 = 64;

/// Per host, operator or known origin. An agent has a long poll and a few other calls; those of a line
/// that was cut stay for a minute.
const EACH_MEMBER: u32 = 32;

/// One connection for each host, whatever others do: that is its check-in. Ten thousand fit.
const RESERVED: u32 = 1;

/// A peer that the hub knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KnownPeer {
    /// By its certificate.
    Host(HostId),
    /// By a token.
    Operator(OperatorName),
    /// Not yet, from a place where others were served.
    Origin(Origin),
}

/// What all connections share.
#[derive(Clone)]
pub(super) struct Admission {
    slots: Slots<KnownPeer, CloseSignal>,
    known_origins: Arc<Mutex<KnownOrigins<KnownPeer>>>,
}

/// One connection: its slot and origin. Handlers add its identity.
#[derive(Clone)]
pub struct AdmittedConnection(Arc<ConnectionState>);

struct ConnectionState {
    slot: Slot<KnownPeer, CloseSignal>,
    from: Origin,
    admission: Admission,
}

impl Admission {
    pub(super) fn new(connections_max: usize) -> Self {
        Self { slots: Slots::new(limits(connections_max)), known_origins: Arc::default() }
    }
}

impl net::server::Admission for Admission {
    type Connection = AdmittedConnection;
    type Refusal = Refusal;

    fn admit(&self, from: IpAddr) -> Result<(AdmittedConnection, CloseSignal), Refusal> {
        let (from, end) = (Origin::from(from), CloseSignal::default());
        let is_known_origin = self.known_origins.lock().unwrap_or_else(PoisonError::into_inner).knows(from);
        let take = |party| self.slots.arrive(party, Arc::clone(&end));
        let stranger = || take(Party::Stranger(from));
        let admitted = match is_known_origin {
            // Beyond its own limit a known origin counts as a stranger.
            true => take(Party::Member(KnownPeer::Origin(from))).or_else(|_| stranger()),
            false => stranger(),
        };
        let Arrived { slot, displaced } = admitted?;
        if let Some(displaced) = displaced {
            displaced.notify_one();
        }
        Ok((AdmittedConnection(Arc::new(ConnectionState { slot, from, admission: self.clone() })), end))
    }

    fn speaks(&self, connection: &AdmittedConnection) {
        connection.0.slot.speaks();
    }

    fn known(
        &self,
        connection: &AdmittedConnection,
        _: Ends,
        certificates: &[CertificateDer<'_>],
    ) -> Result<ConnectionSettings, Refusal> {
        let mut extensions = Extensions::new();
        extensions.insert(connection.clone());
        let Some(peer) = presented(certificates) else {
            return Ok(ConnectionSettings { silence_max: STRANGER_WAIT, extensions });
        };
        connection.is_host(peer.host)?;
        extensions.insert(peer);
        Ok(ConnectionSettings { silence_max: AGENT_WAIT, extensions })
    }

    /// The hub keeps no record of failed accepts: an agent connects again.
    fn accept_failed(&self) {}
}

impl AdmittedConnection {
    /// Where it comes from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.from
    }

    /// Its certificate names this host.
    ///
    /// # Errors
    /// When the host has as many connections as it may.
    fn is_host(&self, host: HostId) -> Result<(), Refusal> {
        self.0.slot.is_member(KnownPeer::Host(host))
    }

    /// This host's certificate was found good, by the store: others of its place wait apart from strangers.
    pub fn served_host(&self, host: HostId) {
        self.served(KnownPeer::Host(host));
    }

    /// Its token is this operator's.
    ///
    /// # Errors
    /// When the operator has as many connections as one may.
    pub fn is_operator(&self, name: &OperatorName) -> Result<(), Refusal> {
        self.0.slot.is_member(KnownPeer::Operator(name.clone()))?;
        self.served(KnownPeer::Operator(name.clone()));
        Ok(())
    }

    fn served(&self, member: KnownPeer) {
        self.0
            .admission
            .known_origins
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .served(member, self.0.from);
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
