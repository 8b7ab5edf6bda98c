//! Start order of units with dependencies.
//!
//! In: the dependencies between units, as systemd reported them. Out: a rank for each unit. A unit that needs another
//! starts after it, so it stops before it and is waited for. A unit that belongs to another starts before it: it is up
//! when the other is started, and stops last.

use std::collections::{BTreeMap, BTreeSet};

/// How one unit is tied to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tie {
    /// It is a part of it.
    Belongs,
    /// It does not run without it.
    Needs,
}

/// Where a unit comes: behind how many others that it needs, before how many others that it belongs to, and when it was met.
pub type Rank = (usize, std::cmp::Reverse<usize>, usize);

/// Units, and how they are tied.
pub struct Ties {
    own: Vec<String>,
    met: Vec<String>,
    ties: BTreeSet<(String, String, Tie)>,
}

impl Ties {
    /// Of a stack's own units, whose order a person gave.
    pub fn new(own: Vec<String>) -> Self {
        Self { met: own.clone(), own, ties: BTreeSet::new() }
    }

    /// `other` is tied to `unit`.
    pub fn tie(&mut self, unit: &str, other: &str, tie: Tie) {
        if !self.own.iter().any(|own| own == other) {
            self.ties.insert((unit.to_owned(), other.to_owned(), tie));
        }
    }

    /// Whether this unit was not met before.
    pub fn meet(&mut self, unit: &str) -> bool {
        let new = !self.met.iter().any(|met| met == unit);
        if new {
            self.met.push(unit.to_owned());
        }
        new
    }

    /// The ranks of all of them. Units that are tied in a circle have some order.
    pub fn order(&self) -> BTreeMap<String, Rank> {
        let mut places: BTreeMap<&str, (usize, usize)> =
            self.met.iter().map(|unit| (unit.as_str(), (0, 0))).collect();
        // The longest way from an own unit has no more ties than there are units.
        for _ in &self.met {
            for (unit, other, tie) in &self.ties {
                let (behind, before) = places.get(unit.as_str()).copied().unwrap_or_default();
                let wanted = match tie {
                    Tie::Belongs => (behind, before + 1),
                    Tie::Needs => (behind + 1, 0),
                };
                if let Some(paths) = places.get_mut(other.as_str()) {
                    *paths = wanted.max(*paths);
                }
            }
        }
        let rank = |(at, unit): (usize, &String)| {
            let (behind, before) = places.get(unit.as_str()).copied().unwrap_or_default();
            (unit.clone(), (behind, std::cmp::Reverse(before), at))
        };
        self.met.iter().enumerate().map(rank).collect()
    }
}
