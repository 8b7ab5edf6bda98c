//! The content of one firewall file as a value.
use std::collections::BTreeMap;

use crate::fail::{Fallible, Refusal};

/// One entry of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `10.10.10.201`, `10.10.10.0/24` or the name of an alias.
    pub cidr: String,
    /// Taken out of the set.
    pub nomatch: bool,
    /// Free text, or nothing.
    pub comment: String,
}

/// A set of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IpSet {
    /// Free text, or nothing.
    pub comment: String,
    /// In their order.
    pub entries: Vec<Entry>,
}

/// A named address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The address or network that it names.
    pub cidr: String,
    /// Free text, or nothing.
    pub comment: String,
}

/// A rule: its fields by their names (`type`, `action`, `enable`, `iface`, `source`, …).
pub type Rule = BTreeMap<String, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Options by name.
    pub options: BTreeMap<String, String>,
    /// Sets by name.
    pub sets: BTreeMap<String, IpSet>,
    /// Aliases by name.
    pub aliases: BTreeMap<String, Alias>,
    /// Rules, the first that fits wins.
    pub rules: Vec<Rule>,
}

impl Config {
    /// Whether nothing is left that a file would be for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A set.
    ///
    /// # Errors
    /// `no such IPSet 'x'`
    pub fn set(&mut self, name: &str) -> Fallible<&mut IpSet> {
        self.sets.get_mut(name).ok_or_else(|| Refusal::die(format!("no such IPSet '{name}'")))
    }

    /// The place of a rule.
    ///
    /// # Errors
    /// `no rule at position 9`
    pub fn position(&self, at: &str) -> Fallible<usize> {
        let found = at.parse::<usize>().ok().filter(|at| *at < self.rules.len());
        found.ok_or_else(|| Refusal::die(format!("no rule at position {at}")))
    }

    /// Moves a rule before another one, or to the end.
    pub fn reorder(&mut self, from: usize, to: usize) {
        if from < self.rules.len() {
            let rule = self.rules.remove(from);
            let to = if to > from { to - 1 } else { to };
            self.rules.insert(to.min(self.rules.len()), rule);
        }
    }
}

impl IpSet {
    /// Adds an entry in its place.
    ///
    /// # Errors
    /// When it is there already.
    pub fn add(&mut self, entry: Entry) -> Fallible<()> {
        if self.entries.iter().any(|held| held.cidr == entry.cidr) {
            return Err(Refusal::param("cidr", format!("address '{}' already exists", entry.cidr)));
        }
        self.entries.push(entry);
        self.entries.sort_by(|a, b| a.cidr.cmp(&b.cidr));
        Ok(())
    }
}
