//! IPv4 addresses of guests with their prefix length.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Text that is not an address with prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not an IPv4 address with prefix length, such as 10.66.0.91/24")]
pub struct CidrError {
    value: String,
}

/// A guest's own address and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ipv4Cidr {
    address: Ipv4Addr,
    prefix: u8,
}

impl Ipv4Cidr {
    /// The guest's address.
    #[must_use]
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// Bits of the network, 1 to 32.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether `other` is in the same network.
    #[must_use]
    pub const fn reaches(self, other: Ipv4Addr) -> bool {
        let mask = u32::MAX << (32 - self.prefix as u32);
        self.address.to_bits() & mask == other.to_bits() & mask
    }
}

impl fmt::Display for Ipv4Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Ipv4Cidr {
    type Err = CidrError;
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            let address = Ipv4Addr::from_str(address).ok()?;
            let number =
                prefix.parse::<u8>().ok().filter(|n| (1..=32).contains(n) && n.to_string() == prefix)?;
            (!address.is_unspecified() && !address.is_multicast()).then_some(Self { address, prefix: number })
        });
        parsed.ok_or_else(|| CidrError { value: text.chars().take(64).collect() })
    }
}

impl TryFrom<String> for Ipv4Cidr {
    type Error = CidrError;
    fn try_from(text: String) -> Result<Self, CidrError> {
        Self::from_str(&text)
    }
}

impl From<Ipv4Cidr> for String {
    fn from(cidr: Ipv4Cidr) -> Self {
        cidr.to_string()
    }
}

impl JsonSchema for Ipv4Cidr {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ipv4Cidr".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,3}){3}/[0-9]{1,2}$",
            "description": "IPv4 address with prefix length, such as 10.66.0.91/24" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_its_prefix_and_nothing_more() {
        for bad in [
            "10.0.0.1",
            "10.0.0.1/0",
            "10.0.0.1/33",
            "10.0.0.1/08",
            "010.0.0.1/8",
            "0.0.0.0/8",
            "224.0.0.1/4",
            "a/8",
            "10.0.0.1/8,gw=1",
        ] {
            assert!(Ipv4Cidr::from_str(bad).is_err(), "{bad:?}");
        }
        let cidr = Ipv4Cidr::from_str("10.66.0.91/24").unwrap();
        assert!(cidr.reaches(Ipv4Addr::new(10, 66, 0, 1)) && !cidr.reaches(Ipv4Addr::new(10, 66, 1, 1)));
        assert_eq!(cidr.to_string(), "10.66.0.91/24");
    }
}
