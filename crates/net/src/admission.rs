//! Admission of connections when a listener is full.
//!
//! Input: the arriving connection and the open ones. Output: a slot, a slot in place of another connection, or a
//! refusal. A *member* is a peer that the listener knows: a guest by its address, a host by its certificate. A
//! *stranger* is known by its [`Origin`] alone.
//!
//! | arrives | with room | without |
//! | --- | --- | --- |
//! | a member below its reserve | admitted | a stranger is closed; where there is none, the oldest of the member furthest above its reserve |
//! | a member above its reserve | admitted up to its limit | a stranger is closed, or the member is refused |
//! | a stranger | admitted | a stranger of the origin with the most connections is closed; one of its own origin, where that is at its limit |
//!
//! So a member below its reserve is always admitted, whatever strangers and other members do, as long as the reserves
//! of all connected members fit ([`Limits::fit`]). Ages are counted in arrivals. Deliberately absent: sockets, clocks,
//! and who is a member.

mod slots;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

pub use slots::{Arrived, Slot, Slots};

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub total: u32,
    /// Of strangers together.
    pub strangers: u32,
    /// Of one origin's strangers.
    pub each_origin: u32,
    pub each_member: u32,
    /// Of one member, whatever others do.
    pub reserved: u32,
}

impl Limits {
    /// Whether the reserves of so many members fit in addition to the strangers.
    #[must_use]
    pub const fn fit(&self, members: u32) -> bool {
        members.saturating_mul(self.reserved).saturating_add(self.strangers) <= self.total
    }
}

/// Where a stranger comes from: an IPv4 address, or an IPv6 network of 64 bits, which is the network of one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(IpAddr);

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party<M> {
    /// A known peer.
    Member(M),
    /// A peer that is not known, or not yet.
    Stranger(Origin),
}

/// One connection among all there ever were. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// How far a stranger has come. One that has sent nothing is removed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Silent,
    Speaks,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The member has as many as it may.
    #[error("it holds as many connections as one peer may")]
    OfOne,
    /// All slots are taken by connections that are not closed for this one.
    #[error("all connections are taken")]
    Full,
}

/// The open connections, each with the value that its owner needs to end it.
#[derive(Debug)]
pub struct Table<M, C> {
    limits: Limits,
    next: u64,
    here: BTreeMap<ConnectionId, (Party<M>, C)>,
    members: BTreeMap<M, BTreeSet<ConnectionId>>,
    strangers: BTreeMap<Origin, BTreeMap<ConnectionId, Stage>>,
}

impl<M: Ord + Clone, C> Table<M, C> {
    /// No connection is open yet.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, next: 0, here: BTreeMap::new(), members: BTreeMap::new(), strangers: BTreeMap::new() }
    }

    /// Other limits, for those who arrive from now on.
    pub const fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes a slot. A connection that was displaced is removed from the table; its value is returned, so that it can
    /// be closed.
    ///
    /// # Errors
    /// [`Refusal`]; nothing changed then.
    pub fn arrive(&mut self, party: Party<M>, value: C) -> Result<(ConnectionId, Option<C>), Refusal> {
        let displaced = self.decide(&party)?.and_then(|id| self.leave(id));
        let id = ConnectionId(self.next);
        self.next += 1;
        match &party {
            Party::Member(member) => {
                self.members.entry(member.clone()).or_default().insert(id);
            }
            Party::Stranger(origin) => {
                self.strangers.entry(*origin).or_default().insert(id, Stage::Silent);
            }
        }
        self.here.insert(id, (party, value));
        Ok((id, displaced))
    }

    /// The connection that is closed for a newcomer, if one must be.
    fn decide(&self, newcomer: &Party<M>) -> Result<Option<ConnectionId>, Refusal> {
        let is_full = count(self.here.len()) >= self.limits.total;
        match newcomer {
            Party::Member(member) => {
                let own = self.held_by(member);
                if own >= self.limits.each_member {
                    return Err(Refusal::OfOne);
                }
                if !is_full {
                    return Ok(None);
                }
                let borrowed = || (own < self.limits.reserved).then(|| self.most_borrowed()).flatten();
                self.most_crowded().or_else(borrowed).map(Some).ok_or(Refusal::Full)
            }
            Party::Stranger(origin) => {
                let own = self.strangers.get(origin);
                if let Some(own) = own.filter(|own| count(own.len()) >= self.limits.each_origin) {
                    return Ok(first_to_go(own));
                }
                if is_full || self.strangers() >= self.limits.strangers {
                    return self.most_crowded().map(Some).ok_or(Refusal::Full);
                }
                Ok(None)
            }
        }
    }

    /// The first stranger to close, of the origin with the most connections; among several, of the origin that arrived
    /// first.
    fn most_crowded(&self) -> Option<ConnectionId> {
        let crowd =
            |held: &&BTreeMap<ConnectionId, Stage>| (held.len(), Reverse(held.keys().next().copied()));
        self.strangers.values().max_by_key(crowd).and_then(first_to_go)
    }

    /// The oldest connection of the member that is furthest above its reserve.
    fn most_borrowed(&self) -> Option<ConnectionId> {
        let most = self.members.values().max_by_key(|held| (held.len(), Reverse(held.first().copied())))?;
        if count(most.len()) > self.limits.reserved { most.first().copied() } else { None }
    }

    /// A stranger sent something.
    pub fn speaks(&mut self, id: ConnectionId) {
        let Some((Party::Stranger(origin), _)) = self.here.get(&id) else { return };
        if let Some(stage) = self.strangers.get_mut(origin).and_then(|held| held.get_mut(&id)) {
            *stage = Stage::Speaks;
        }
    }

    /// An open connection showed that it is this member.
    ///
    /// # Errors
    /// [`Refusal::OfOne`] when the member has as many as it may; the connection keeps its former party.
    pub fn is_member(&mut self, id: ConnectionId, member: M) -> Result<(), Refusal> {
        let Some((party, _)) = self.here.get(&id) else { return Ok(()) };
        if matches!(party, Party::Member(before) if *before == member) {
            return Ok(());
        }
        if self.held_by(&member) >= self.limits.each_member {
            return Err(Refusal::OfOne);
        }
        let Some(value) = self.leave(id) else { return Ok(()) };
        self.members.entry(member.clone()).or_default().insert(id);
        self.here.insert(id, (Party::Member(member), value));
        Ok(())
    }

    /// A connection is over. One that made room before is not here, which is no mistake.
    pub fn leave(&mut self, id: ConnectionId) -> Option<C> {
        let (party, value) = self.here.remove(&id)?;
        match party {
            Party::Member(member) => {
                if let Some(held) = self.members.get_mut(&member) {
                    held.remove(&id);
                    if held.is_empty() {
                        self.members.remove(&member);
                    }
                }
            }
            Party::Stranger(origin) => {
                if let Some(held) = self.strangers.get_mut(&origin) {
                    held.remove(&id);
                    if held.is_empty() {
                        self.strangers.remove(&origin);
                    }
                }
            }
        }
        Some(value)
    }

    fn held_by(&self, member: &M) -> u32 {
        self.members.get(member).map_or(0, |held| count(held.len()))
    }

    fn strangers(&self) -> u32 {
        count(self.strangers.values().map(BTreeMap::len).sum())
    }
}

/// Of one origin: the oldest of those that sent nothing, else the oldest.
fn first_to_go(held: &BTreeMap<ConnectionId, Stage>) -> Option<ConnectionId> {
    held.iter().min_by_key(|(id, stage)| (**stage, **id)).map(|(id, _)| *id)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
