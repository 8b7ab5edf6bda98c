//! Addresses of the guests' bridge, and their holders.
//!
//! What comes in: what root wrote down, and what the kernel reports. What goes out: data that the plan checks documents
//! against. An empty value means unknown, and nothing is refused for an unknown value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use holdfast_protocol::id::{GuestName, Vmid};
use holdfast_protocol::net::Ipv4Cidr;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::hardware::HardwareAddress;

/// Addresses that root keeps from the guests of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedAddresses {
    /// Where the agent's local API answers.
    pub listeners: BTreeSet<Ipv4Addr>,
    /// Those that others have: a DHCP server's range, a printer.
    pub ranges: Vec<AddressRange>,
}

/// Addresses from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl AddressRange {
    /// Whether an address is one of them.
    #[must_use]
    pub fn holds(self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }
}

/// Text that is no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address, or the first and the last of a range, such as 10.11.0.100-10.11.0.199")]
pub struct AddressRangeError;

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<Self, AddressRangeError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| text.parse::<Ipv4Addr>().map_err(|_| AddressRangeError);
        let (first, last) = (address(first)?, address(last)?);
        if first <= last { Ok(Self { first, last }) } else { Err(AddressRangeError) }
    }
}

impl TryFrom<String> for AddressRange {
    type Error = AddressRangeError;
    fn try_from(text: String) -> Result<Self, AddressRangeError> {
        text.parse()
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        range.to_string()
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// An interface that answers for an address.
pub type Answer = (Ipv4Addr, HardwareAddress);

/// The guests' bridge, as the kernel reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgeNet {
    /// The host's own addresses on it.
    pub own: BTreeSet<Ipv4Addr>,
    /// The networks that the host reaches on it; none where it has no address there.
    pub networks: BTreeSet<Ipv4Cidr>,
    /// The routers that the host itself uses from there.
    pub gateways: BTreeSet<Ipv4Addr>,
    /// Who answers for which address, as the host last heard.
    pub answers: BTreeSet<Answer>,
    /// Those that should not, since when, as long as that lasted.
    pub strange: BTreeMap<Answer, Timestamp>,
    /// The guests that were seen with an address there, be they in the document or not.
    pub holders: BTreeMap<Ipv4Addr, BTreeSet<Vmid>>,
    /// The routers that the document names, each with a guest that it is named for.
    pub routers: BTreeMap<Ipv4Addr, GuestName>,
}

/// What answered for an address of which it is not the holder, over several looks.
///
/// Two interfaces that share an address replace each other in the kernel's table with every answer. So one that was
/// seen once is remembered for a while. It is reported only once it was seen over some time, since a guest that was
/// made again has another interface for a moment.
#[derive(Clone, Debug, Default)]
pub struct StrangeAnswers(BTreeMap<Answer, AnswerTimes>);

#[derive(Clone, Copy, Debug)]
struct AnswerTimes {
    first: Timestamp,
    last: Timestamp,
}

impl StrangeAnswers {
    const REMEMBERED: SignedDuration = SignedDuration::from_mins(15);
    const LASTED: SignedDuration = SignedDuration::from_mins(2);
    /// More than a table of the kernel holds by its own bound.
    const MAX: usize = 1024;

    /// Takes the result of one observation, and returns the answers that lasted.
    pub fn take(&mut self, now: BTreeSet<Answer>, at: Timestamp) -> BTreeMap<Answer, Timestamp> {
        for answer in now.into_iter().take(Self::MAX) {
            self.0.entry(answer).or_insert(AnswerTimes { first: at, last: at }).last = at;
        }
        self.0.retain(|_, seen| at.duration_since(seen.last) <= Self::REMEMBERED);
        while self.0.len() > Self::MAX {
            self.0.pop_last();
        }
        let lasted = self.0.iter().filter(|(_, seen)| seen.last.duration_since(seen.first) >= Self::LASTED);
        lasted.map(|(answer, seen)| (*answer, seen.first)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_back_and_never_turned_around() {
        let range: AddressRange = "10.11.0.100-10.11.0.199".parse().unwrap();
        assert!(range.holds("10.11.0.150".parse().unwrap()) && !range.holds("10.11.0.200".parse().unwrap()));
        assert_eq!(range.to_string(), "10.11.0.100-10.11.0.199");
        assert_eq!("10.11.0.5".parse::<AddressRange>().unwrap().to_string(), "10.11.0.5");
        for bad in
            ["", "-", "10.11.0.5-", "10.11.0.9-10.11.0.5", "10.11.0.0/24", "10.11.0.5-10.11.0.6-10.11.0.7"]
        {
            assert!(bad.parse::<AddressRange>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_takes_turns_is_reported_once_it_lasted_and_forgotten_when_it_ended() {
        let at = |minute: i64| Timestamp::from_second(1_795_305_600 + minute * 60).unwrap();
        let one: Answer = ("10.11.0.5".parse().unwrap(), "BC:24:11:00:00:09".parse().unwrap());
        let mut strange = StrangeAnswers::default();
        assert!(strange.take([one].into(), at(0)).is_empty(), "a guest that was made again");
        assert!(strange.take(BTreeSet::new(), at(3)).is_empty(), "it was seen once");
        assert_eq!(strange.take([one].into(), at(5)), [(one, at(0))].into());
        assert_eq!(strange.take(BTreeSet::new(), at(20)), [(one, at(0))].into(), "the other has its turn");
        assert!(strange.take(BTreeSet::new(), at(21)).is_empty());
    }
}
