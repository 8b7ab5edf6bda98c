//! Addresses of firewall sets.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a set may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address or a network, in the form in which it is kept.
    Network(String),
    /// All addresses there are, which a set may not hold.
    Everything,
    /// The name of an alias.
    Alias(String),
}

/// Reads what the API takes for an address, a network or an alias; `None` when it is none of them.
#[must_use]
pub fn read(text: &str) -> Option<Address> {
    let (ip, bits) = match text.split_once('/') {
        Some((ip, bits)) => (ip, Some(bits.parse::<u32>().ok()?)),
        None => (text, None),
    };
    match ip.parse::<IpAddr>() {
        Ok(ip) => {
            let most = if ip.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(most);
            (bits <= most).then(|| network(ip, bits, most))
        }
        Err(_) => is_name(text).then(|| Address::Alias(text.to_owned())),
    }
}

/// A name of a set or an alias.
#[must_use]
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() >= 2
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Bits behind the prefix are cut off; a single address has no prefix.
fn network(ip: IpAddr, bits: u32, most: u32) -> Address {
    if bits == 0 {
        return Address::Everything;
    }
    let cut = match ip {
        IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & (u32::MAX << (32 - bits)))),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << (128 - bits)))),
    };
    Address::Network(if bits == most { cut.to_string() } else { format!("{cut}/{bits}") })
}

/// Which version of addresses a text speaks of, if one.
#[must_use]
pub fn version(text: &str) -> Option<u8> {
    let first = text.split(['/', ',', '-']).next()?;
    first.parse::<IpAddr>().ok().map(|ip| if ip.is_ipv4() { 4 } else { 6 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_kept_as_recorded() {
        let kept = |text: &str| match read(text) {
            Some(Address::Network(text)) => text,
            other => format!("{other:?}"),
        };
        assert_eq!(kept("10.10.10.202/32"), "10.10.10.202");
        assert_eq!(kept("10.10.10.205/24"), "10.10.10.0/24");
        assert_eq!(kept("fd00:1::2"), "fd00:1::2");
        assert_eq!(read("0.0.0.0/0"), Some(Address::Everything));
        assert_eq!(read("nosuchalias"), Some(Address::Alias("nosuchalias".into())));
        assert_eq!((read("10.10.10.300"), read("10.10.10.1-10.10.10.9")), (None, None));
    }
}
