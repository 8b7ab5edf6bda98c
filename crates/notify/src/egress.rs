//! Addresses that deliveries may go to.
//!
//! A URL of a receiver is a setting, and its name is resolved by a server of others. Without a rule it could lead a
//! delivery to a service of the hub's own network or to the metadata service of a cloud. In: an address and the policy.
//! Out: whether a connection is allowed. [`crate::send`] connects to the very address that was judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// How far deliveries may reach, as the operator sets it. Each reaches further than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressPolicy {
    /// Public addresses.
    #[default]
    Public,
    /// Private networks, too.
    Private,
    /// This machine, too.
    Loopback,
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    Public,
    /// Of a private network, or shared behind a provider.
    Private,
    Loopback,
    /// The metadata service of a cloud, which gives out the machine's own credentials.
    Metadata,
    LinkLocal,
    /// "Any address" and broadcast; a connection to it reaches this machine.
    Unspecified,
    Multicast,
    /// For documentation, tests, or nothing yet.
    Reserved,
}

/// An address that deliveries do not go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {class:?}, and the policy for deliveries is {policy:?}")]
pub struct EgressError {
    pub address: IpAddr,
    pub class: AddressClass,
    pub policy: EgressPolicy,
}

impl EgressPolicy {
    /// Judges an address.
    ///
    /// # Errors
    /// [`EgressError`].
    pub fn check(self, address: IpAddr) -> Result<(), EgressError> {
        let class = classify(address);
        let reaches = match class {
            AddressClass::Public => true,
            AddressClass::Private => self >= Self::Private,
            AddressClass::Loopback => self >= Self::Loopback,
            AddressClass::Metadata
            | AddressClass::LinkLocal
            | AddressClass::Unspecified
            | AddressClass::Multicast
            | AddressClass::Reserved => false,
        };
        if reaches { Ok(()) } else { Err(EgressError { address, class, policy: self }) }
    }
}

/// Says what an address is. An IPv4 address inside of an IPv6 address counts as itself.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => classify_v4(inner),
            None => classify_v6(address),
        },
    }
}

/// Services that answer any process of a machine with its credentials: of AWS, Google and Azure (link-local), Azure's
/// agent, Alibaba, Oracle.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// Of AWS and Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.octets() {
        [0, ..] | [255, 255, 255, 255] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => AddressClass::Private,
        [224..=239, ..] => AddressClass::Multicast,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressClass::Reserved
        }
        [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x2001, 0..=0x1ff, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Reserved,
        // All public addresses so far are of 2000::/3.
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_their_ranges() {
        use AddressClass as C;
        for (class, addresses) in [
            (
                C::Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 192.169.0.1",
            ),
            (C::Public, "2606:4700::1111 2a01:4f8::1 ::ffff:1.1.1.1 64:ff9b::101:101 2002:101:101::1"),
            (
                C::Private,
                "10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 fd00::1 fc00::1",
            ),
            (C::Private, "::ffff:10.0.0.1 64:ff9b::a00:1 2002:c0a8:1::1"),
            (C::Loopback, "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1 2002:7f00:1::"),
            (
                C::Metadata,
                "169.254.169.254 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd20:ce::254",
            ),
            (C::Metadata, "::ffff:169.254.169.254 64:ff9b::a9fe:a9fe ::169.254.169.254"),
            (C::LinkLocal, "169.254.0.1 169.254.255.255 fe80::1 febf::1"),
            (C::Unspecified, "0.0.0.0 0.1.2.3 255.255.255.255 :: ::ffff:0.0.0.0"),
            (C::Multicast, "224.0.0.1 239.255.255.255 ff02::1"),
            (
                C::Reserved,
                "192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 240.0.0.1 2001:db8::1 fec0::1 100::1",
            ),
            (C::Reserved, "2001::1 3fff::1 64:ff9b:1::1 4000::1 192.88.99.1"),
        ] {
            for address in addresses.split(' ') {
                assert_eq!(classify(address.parse().unwrap()), class, "{address}");
            }
        }
    }

    #[test]
    fn a_policy_reaches_as_far_as_it_says() {
        use EgressPolicy as P;
        let of = |policy: P, address: &str| policy.check(address.parse().unwrap()).is_ok();
        for (address, reached) in [
            ("1.1.1.1", [true, true, true]),
            ("10.0.0.1", [false, true, true]),
            ("::1", [false, false, true]),
            ("169.254.169.254", [false, false, false]),
            ("fd00:ec2::254", [false, false, false]),
            ("fe80::1", [false, false, false]),
            ("0.0.0.0", [false, false, false]),
            ("224.0.0.1", [false, false, false]),
            ("192.0.2.1", [false, false, false]),
        ] {
            assert_eq!(
                [P::Public, P::Private, P::Loopback].map(|policy| of(policy, address)),
                reached,
                "{address}"
            );
        }
    }
}
