//! Connection slots of the local API, with reserves per guest.
//!
//! In: an address that connects. Out: a slot, or the reason for the refusal. [`net::admission`] decides; this module
//! has the numbers and how often one address may connect. A guest that was refused could not be heard meanwhile. The
//! store records this, so that the guest's silence is not held against it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;
use net::admission::{Arrived, Limits, Origin, Party, Refusal, Slot, Slots};
use net::rate::Rates;
use net::server::{Admission, CloseSignal, ConnectionSettings, Ends};
use rustls::pki_types::CertificateDer;
use tokio::sync::watch;

use super::SILENCE_MAX;
use super::guests::{KnownAddresses, Member};
use crate::api::{CONNECTIONS_EACH, Peer};
use crate::port::clock::Clock;
use crate::port::store::Store;

/// 120 guests with all their connections, and strangers. Each costs about 40 KiB with its TLS buffers: 40 MiB at worst.
/// Handshakes under way have no narrower bound: one that stalls costs no CPU, and a shared bound would let those that stall
/// hold up those that do not.
pub(super) const CONNECTIONS_ALL: u32 = 1024;
/// Addresses of no guest, together. At worst this many handshakes are ahead of a guest's: some 30 ms of CPU.
pub(super) const CONNECTIONS_STRANGERS: u32 = 64;
/// One such address: a guest that was moved by hand opens one or two before it is observed at its new address.
const CONNECTIONS_ORIGIN: u32 = 4;
/// A handshake costs the agent about as much CPU as ten requests, so one peer begins ten a second at most. A controller keeps
/// its connection for ten minutes, and each of a person's commands opens one.
pub(super) const CONNECTIONS_PER_MINUTE: u32 = 600;

/// A slot of one connection.
pub(super) type GuestSlot = Slot<Member, CloseSignal>;

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum NotAdmitted {
    /// It connects too often.
    #[error("it connects too often")]
    TooOften,
    /// There is no slot.
    #[error(transparent)]
    NoSlot(#[from] Refusal),
}

/// Which connections all listeners of the local API keep.
#[derive(Clone)]
pub(super) struct Admit(Arc<Shared>);

struct Shared {
    slots: Slots<Member, CloseSignal>,
    by_member: Rates<Member>,
    by_origin: Rates<Origin>,
    known: watch::Receiver<Arc<KnownAddresses>>,
    store: Store,
    clock: Arc<dyn Clock>,
}

impl Admit {
    pub(super) fn new(
        known: watch::Receiver<Arc<KnownAddresses>>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Shared {
            slots: Slots::new(limits(0)),
            // Two limiters: an endless number of foreign addresses must not keep a guest from having a bucket.
            by_member: Rates::per_minute(CONNECTIONS_PER_MINUTE),
            by_origin: Rates::per_minute(CONNECTIONS_PER_MINUTE),
            known,
            store,
            clock,
        }))
    }
}

impl Admission for Admit {
    type Connection = GuestSlot;
    type Refusal = NotAdmitted;

    fn admit(&self, from: IpAddr) -> Result<(GuestSlot, CloseSignal), NotAdmitted> {
        let shared = &self.0;
        let (member, members) = {
            let known = shared.known.borrow();
            (known.get(&from.to_canonical()).copied(), known.len())
        };
        shared.slots.set_limits(limits(members));
        let end = CloseSignal::default();
        let admitted = match member {
            Some(member) => shared.take(&shared.by_member, member, Party::Member(member), &end),
            None => {
                let origin = Origin::from(from);
                shared.take(&shared.by_origin, origin, Party::Stranger(origin), &end)
            }
        };
        if let (Err(_), Some(Member::Guest(guest))) = (&admitted, member) {
            shared.store.missed_guest(guest, shared.clock.now());
        }
        let Arrived { slot, displaced } = admitted?;
        if let Some(displaced) = displaced {
            displaced.notify_one();
        }
        Ok((slot, end))
    }

    fn speaks(&self, slot: &GuestSlot) {
        slot.speaks();
    }

    /// Guests show no certificate: only the token identifies a guest.
    fn known(
        &self,
        _: &GuestSlot,
        ends: Ends,
        _: &[CertificateDer<'_>],
    ) -> Result<ConnectionSettings, NotAdmitted> {
        let mut extensions = Extensions::new();
        extensions.insert(Peer { from: ends.from.ip(), to: ends.to });
        Ok(ConnectionSettings { silence_max: SILENCE_MAX, extensions })
    }

    fn accept_failed(&self) {
        self.0.store.missed_all(self.0.clock.now());
    }
}

impl Shared {
    fn take<K: Eq + std::hash::Hash>(
        &self,
        rates: &Rates<K>,
        who: K,
        party: Party<Member>,
        end: &CloseSignal,
    ) -> Result<Arrived<Member, CloseSignal>, NotAdmitted> {
        rates.take(who, self.clock.monotonic()).map_err(|_| NotAdmitted::TooOften)?;
        Ok(self.slots.arrive(party, Arc::clone(end))?)
    }
}

/// Each known guest's reserve is all that it may have, where that fits: with 120 guests it does.
fn limits(members: usize) -> Limits {
    let members = u32::try_from(members).unwrap_or(u32::MAX).max(1);
    Limits {
        total: CONNECTIONS_ALL,
        strangers: CONNECTIONS_STRANGERS,
        each_origin: CONNECTIONS_ORIGIN,
        each_member: CONNECTIONS_EACH,
        reserved: ((CONNECTIONS_ALL - CONNECTIONS_STRANGERS) / members).clamp(1, CONNECTIONS_EACH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host with more guests than connections is not valid.
    #[test]
    fn the_reserves_of_all_known_guests_fit() {
        for members in [0, 1, 119, 120, 121, 300, 960] {
            let own = limits(members);
            assert!(own.fit(u32::try_from(members).unwrap()), "{members}: {own:?}");
        }
        assert_eq!((limits(120).reserved, limits(121).reserved, limits(960).reserved), (8, 7, 1));
        assert_eq!(limits(5_000).reserved, 1);
    }
}
