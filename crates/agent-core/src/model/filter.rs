//! The address filter of a guest's first network, as observed.
//!
//! In: the options of the guest's firewall and its set `ipfilter-net0`, as they were read. Out: what is to be changed.
//! With `ipfilter`, `macfilter` and such a set, Proxmox drops what the guest sends from other addresses, and lets ARP
//! pass for these alone (`25-firewall`). Deliberately absent: whether a rule is in force, which no call of Proxmox
//! reports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use holdfast_protocol::report::AddressFilterState;
use serde::{Deserialize, Serialize};

/// The set of the first network's addresses.
pub const SET: &str = "ipfilter-net0";

/// The comment at each address that we put into it.
pub const COMMENT: &str = "holdfast";

/// Whether an option is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    On,
    /// It is not.
    Off,
}

/// Who put an address into the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryOwner {
    Ours,
    /// Another owner: it stays.
    Others,
}

/// The firewall of one guest, as Proxmox has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterFacts {
    /// Whether it is switched on for the guest.
    pub firewall: Switched,
    /// Whether other hardware addresses are dropped: `macfilter`.
    pub hardware: Switched,
    /// Whether other addresses are dropped: `ipfilter`.
    pub addresses: Switched,
    /// The entries of the set; none without the set.
    pub allowed: Option<BTreeMap<String, EntryOwner>>,
}

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FilterSeen {
    /// Not checked: the guest is not ours, or its first network could not be read.
    #[default]
    NotLooked,
    /// Its first network was read and has no firewall's flag: nothing is filtered.
    NotUsed,
    /// It could not be read, in words.
    Unknown(String),
    /// It was read.
    Read(FilterFacts),
}

/// From which addresses a guest may send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterRequest {
    /// These, and what others allowed.
    pub addresses: BTreeSet<Ipv4Addr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterChange {
    /// The set is made.
    MakeSet,
    /// An address is put into it.
    Allow(Ipv4Addr),
    /// What is not in the set is dropped from now on.
    SwitchOn,
    /// An address of ours is taken out of it.
    Forbid(Ipv4Addr),
}

impl FilterFacts {
    /// What is reported of it. Without the set nothing was recorded of what Proxmox lets through.
    const fn state(&self) -> AddressFilterState {
        match (self.firewall, self.hardware, self.addresses, &self.allowed) {
            (Switched::Off, _, _, _) => AddressFilterState::FirewallOff,
            (Switched::On, Switched::On, Switched::On, Some(_)) => AddressFilterState::Set,
            (Switched::On, _, _, _) => AddressFilterState::Incomplete,
        }
    }

    /// What is missing, in the order in which a guest is never cut off.
    #[must_use]
    pub fn missing(&self, goal: &FilterRequest) -> Vec<FilterChange> {
        let mut changes = Vec::new();
        if self.allowed.is_none() {
            changes.push(FilterChange::MakeSet);
        }
        let allowed = |address: &Ipv4Addr| {
            self.allowed.as_ref().is_some_and(|set| set.contains_key(&address.to_string()))
        };
        changes.extend(goal.addresses.iter().filter(|one| !allowed(one)).copied().map(FilterChange::Allow));
        if (self.hardware, self.addresses) != (Switched::On, Switched::On) {
            changes.push(FilterChange::SwitchOn);
        }
        let ours = self.allowed.iter().flatten().filter(|(_, owner)| **owner == EntryOwner::Ours);
        let ours = ours.filter_map(|(text, _)| text.parse::<Ipv4Addr>().ok());
        changes.extend(ours.filter(|one| !goal.addresses.contains(one)).map(FilterChange::Forbid));
        changes
    }
}

impl FilterSeen {
    /// The state to report; none where it was not checked.
    #[must_use]
    pub const fn state(&self) -> Option<AddressFilterState> {
        match self {
            Self::NotLooked => None,
            Self::NotUsed => Some(AddressFilterState::NoFlag),
            Self::Unknown(_) => Some(AddressFilterState::Unread),
            Self::Read(facts) => Some(facts.state()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(addresses: &[&str]) -> FilterRequest {
        FilterRequest { addresses: addresses.iter().map(|one| one.parse().unwrap()).collect() }
    }

    fn facts(allowed: Option<&[(&str, EntryOwner)]>, on: Switched) -> FilterFacts {
        let allowed =
            allowed.map(|all| all.iter().map(|(text, owner)| ((*text).to_owned(), *owner)).collect());
        FilterFacts { firewall: Switched::On, hardware: on, addresses: on, allowed }
    }

    #[test]
    fn what_lets_through_comes_before_the_switch_and_what_does_not_after_it() {
        let (one, two) = ("10.66.0.1".parse().unwrap(), "10.66.0.2".parse().unwrap());
        let nothing = facts(None, Switched::Off).missing(&goal(&["10.66.0.1"]));
        assert_eq!(nothing, [FilterChange::MakeSet, FilterChange::Allow(one), FilterChange::SwitchOn]);
        let moved =
            facts(Some(&[("10.66.0.1", EntryOwner::Ours)]), Switched::Off).missing(&goal(&["10.66.0.2"]));
        assert_eq!(moved, [FilterChange::Allow(two), FilterChange::SwitchOn, FilterChange::Forbid(one)]);
    }

    #[test]
    fn what_someone_else_allowed_stays() {
        let by_hand = [
            ("10.66.0.1", EntryOwner::Ours),
            ("10.66.0.9", EntryOwner::Others),
            ("fd00::/64", EntryOwner::Others),
        ];
        assert!(facts(Some(&by_hand), Switched::On).missing(&goal(&["10.66.0.1"])).is_empty());
        let theirs = [("10.66.0.1", EntryOwner::Others)];
        assert!(facts(Some(&theirs), Switched::On).missing(&goal(&["10.66.0.1"])).is_empty());
    }

    /// A number without a guest keeps what is written to it, and the next guest of that number inherits it.
    #[test]
    fn entries_of_a_former_guest_of_its_number_are_taken_out() {
        let former = "10.66.0.7".parse().unwrap();
        let inherited = [("10.66.0.1", EntryOwner::Ours), ("10.66.0.7", EntryOwner::Ours)];
        let changes = facts(Some(&inherited), Switched::On).missing(&goal(&["10.66.0.1"]));
        assert_eq!(changes, [FilterChange::Forbid(former)]);
    }

    #[test]
    fn one_of_both_filters_is_not_enough() {
        let half = FilterFacts {
            hardware: Switched::Off,
            ..facts(Some(&[("10.66.0.1", EntryOwner::Ours)]), Switched::On)
        };
        assert_eq!(half.missing(&goal(&["10.66.0.1"])), [FilterChange::SwitchOn]);
    }

    #[test]
    fn only_what_was_read_is_reported() {
        assert_eq!(FilterSeen::default().state(), None, "nobody looked");
        let entry: &[(&str, EntryOwner)] = &[("10.66.0.1", EntryOwner::Ours)];
        let off = FilterFacts { firewall: Switched::Off, ..facts(Some(entry), Switched::On) };
        let half = FilterFacts { hardware: Switched::Off, ..facts(Some(entry), Switched::On) };
        let rows = [
            (FilterSeen::NotUsed, AddressFilterState::NoFlag),
            (FilterSeen::Unknown("403".to_owned()), AddressFilterState::Unread),
            (FilterSeen::Read(off), AddressFilterState::FirewallOff),
            (FilterSeen::Read(half), AddressFilterState::Incomplete),
            (FilterSeen::Read(facts(None, Switched::On)), AddressFilterState::Incomplete),
            (FilterSeen::Read(facts(Some(entry), Switched::On)), AddressFilterState::Set),
        ];
        for (seen, state) in rows {
            assert_eq!(seen.state(), Some(state), "{seen:?}");
        }
    }
}
