//! Network interfaces: as wanted, and as seen.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// An IPv4 address with its prefix length, as in `10.66.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address itself, host bits included.
    pub address: Ipv4Addr,
    /// How many leading bits name the network.
    pub prefix: u8,
}

/// Why a text is no address with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no IPv4 address with a prefix, such as 10.66.0.1/24")]
pub struct CidrError {
    /// The refused text.
    pub text: String,
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let refuse = || CidrError { text: text.to_owned() };
        let (address, prefix) = text.split_once('/').ok_or_else(refuse)?;
        let address = address.parse().map_err(|_bad| refuse())?;
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32).ok_or_else(refuse)?;
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.prefix)
    }
}

/// Whether an interface is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Up,
    /// `link_down=1`.
    Down,
}

/// One `netN` of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Net {
    /// The interface's name inside.
    pub name: String,
    /// The bridge it hangs on.
    pub bridge: String,
    /// Its hardware address.
    pub hwaddr: String,
    /// Its fixed address; none for `manual` and `dhcp`.
    pub ip: Option<Cidr>,
    /// Its default route.
    pub gw: Option<Ipv4Addr>,
    /// Whether it is plugged in.
    pub link: Link,
}

impl Net {
    /// Whether every name in it is one that the kernel accepts and that no program takes for an option.
    pub(super) fn has_safe_names(&self) -> bool {
        let safe = |name: &str| {
            let byte_ok = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
            (1..=15).contains(&name.len()) && name.bytes().all(byte_ok) && !name.starts_with(['-', '.'])
        };
        let hardware = self.hwaddr.split(':').filter(|byte| byte.len() == 2).count() == 6
            && self.hwaddr.len() == 17
            && self.hwaddr.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
        safe(&self.name) && safe(&self.bridge) && hardware
    }
}

/// An interface as it is inside a running guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// Its hardware address, in lower case.
    pub hwaddr: String,
    /// Its addresses and their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Interface {
    /// The loopback interface that every guest has.
    pub(super) fn loopback(addresses: Vec<(IpAddr, u8)>) -> Self {
        Self { name: "lo".to_owned(), hwaddr: "00:00:00:00:00:00".to_owned(), addresses }
    }

    /// The interface as wanted, for runtimes that have no real one.
    pub(super) fn as_wanted(net: &Net) -> Self {
        Self {
            name: net.name.clone(),
            hwaddr: net.hwaddr.to_ascii_lowercase(),
            addresses: net.ip.map(|ip| (IpAddr::V4(ip.address), ip.prefix)).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly() {
        let read: Cidr = "10.66.0.91/24".parse().expect("an address");
        assert_eq!(read.to_string(), "10.66.0.91/24");
        for wrong in ["10.66.0.91", "10.66.0.91/33", "10.66.0/24", "dhcp", "::1/64", "10.66.0.91/"] {
            assert_eq!(Cidr::from_str(wrong), Err(CidrError { text: wrong.to_owned() }));
        }
    }
}
