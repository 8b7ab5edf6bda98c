//! The places from which hosts and operators were served lately.
//!
//! In: who was served, and from where. Out: whether anybody was served from a place. Of each the newest few are kept, so the
//! number is bounded by those who are known. Deliberately absent: trust. Who comes from such a place only waits apart from
//! strangers until it shows who it is.

use std::collections::{BTreeMap, VecDeque};

use holdfast_tls::admission::Origin;

/// A host has one line or two, an operator some more.
const PLACES_EACH: usize = 4;

/// Places by who was served there.
#[derive(Debug)]
pub struct Familiar<P> {
    by_peer: BTreeMap<P, VecDeque<Origin>>,
    places: BTreeMap<Origin, u32>,
}

impl<P> Default for Familiar<P> {
    fn default() -> Self {
        Self { by_peer: BTreeMap::new(), places: BTreeMap::new() }
    }
}

impl<P: Ord> Familiar<P> {
    /// It was served there.
    pub fn served(&mut self, peer: P, from: Origin) {
        let own = self.by_peer.entry(peer).or_default();
        if own.contains(&from) {
            return;
        }
        own.push_back(from);
        let gone = if own.len() > PLACES_EACH { own.pop_front() } else { None };
        *self.places.entry(from).or_default() += 1;
        if let Some(gone) = gone {
            match self.places.get_mut(&gone) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.places.remove(&gone)),
            }
        }
    }

    /// Whether anybody was served there.
    #[must_use]
    pub fn knows(&self, from: Origin) -> bool {
        self.places.contains_key(&from)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn place(number: u8) -> Origin {
        Origin::from(IpAddr::from([10, 0, 0, number]))
    }

    #[test]
    fn the_newest_few_places_of_each_are_known() {
        let mut familiar = Familiar::default();
        assert!(!familiar.knows(place(1)));
        for number in 1..=5 {
            familiar.served("box1", place(number));
            familiar.served("box1", place(number));
        }
        assert_eq!([1, 2, 5].map(|number| familiar.knows(place(number))), [false, true, true]);
        // Two know the second; when one moves on, the other still does.
        familiar.served("box2", place(2));
        familiar.served("box1", place(6));
        assert!(familiar.knows(place(2)));
        for number in 7..=10 {
            familiar.served("box2", place(number));
        }
        assert!(!familiar.knows(place(2)));
        assert_eq!(familiar.places.len(), 8, "four places each are all that is kept");
    }
}
