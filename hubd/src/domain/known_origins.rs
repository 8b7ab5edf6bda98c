//! Addresses from which hosts and operators were served lately.
//!
//! In: peers and the origins they were served from. Out: whether an origin is known. For each peer the newest few are
//! kept, so the number is bounded by the number of known peers. Deliberately absent: trust. A caller from a known
//! origin only waits apart from strangers until it shows who it is.

use std::collections::{BTreeMap, VecDeque};

use net::admission::Origin;

/// A host has one line or two, an operator some more.
const ORIGINS_EACH: usize = 4;

/// Places by who was served there.
#[derive(Debug)]
pub struct KnownOrigins<P> {
    by_peer: BTreeMap<P, VecDeque<Origin>>,
    origins: BTreeMap<Origin, u32>,
}

impl<P> Default for KnownOrigins<P> {
    fn default() -> Self {
        Self { by_peer: BTreeMap::new(), origins: BTreeMap::new() }
    }
}

impl<P: Ord> KnownOrigins<P> {
    /// It was served there.
    pub fn served(&mut self, peer: P, from: Origin) {
        let own = self.by_peer.entry(peer).or_default();
        if own.contains(&from) {
            return;
        }
        own.push_back(from);
        let gone = if own.len() > ORIGINS_EACH { own.pop_front() } else { None };
        *self.origins.entry(from).or_default() += 1;
        if let Some(gone) = gone {
            match self.origins.get_mut(&gone) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.origins.remove(&gone)),
            }
        }
    }

    /// Whether a peer was served there.
    #[must_use]
    pub fn knows(&self, from: Origin) -> bool {
        self.origins.contains_key(&from)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn origin(number: u8) -> Origin {
        Origin::from(IpAddr::from([10, 0, 0, number]))
    }

    #[test]
    fn the_newest_few_places_of_each_are_known() {
        let mut known_origins = KnownOrigins::default();
        assert!(!known_origins.knows(origin(1)));
        for number in 1..=5 {
            known_origins.served("box1", origin(number));
            known_origins.served("box1", origin(number));
        }
        assert_eq!([1, 2, 5].map(|number| known_origins.knows(origin(number))), [false, true, true]);
        // Two know the second; when one moves on, the other still does.
        known_origins.served("box2", origin(2));
        known_origins.served("box1", origin(6));
        assert!(known_origins.knows(origin(2)));
        for number in 7..=10 {
            known_origins.served("box2", origin(number));
        }
        assert!(!known_origins.knows(origin(2)));
        assert_eq!(known_origins.origins.len(), 8, "four origins each are all that is kept");
    }
}
