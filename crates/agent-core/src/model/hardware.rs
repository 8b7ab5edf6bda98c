//! The hardware address of a guest's network: `BC:24:11:EE:25:8E`.
//!
//! What comes in: the text in a `netN` line. What goes out: an address of one interface, so that two are equal when they are the
//! same however they are written. Deliberately absent: making one, which is Proxmox's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::net::NetLine;

/// An address of one interface, as Proxmox takes it (its format `mac-addr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HardwareAddress([u8; 6]);

/// Text that is no such address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a hardware address of one interface, like BC:24:11:EE:25:8E")]
pub struct HardwareAddressError(String);

impl HardwareAddress {
    /// That of a `netN` line, where it is one that is understood.
    #[must_use]
    pub fn of(line: &str) -> Option<Self> {
        line.parse::<NetLine>().ok()?.address()?.parse().ok()
    }
}

impl FromStr for HardwareAddress {
    type Err = HardwareAddressError;

    fn from_str(text: &str) -> Result<Self, HardwareAddressError> {
        let byte = |part: &str| {
            let plain = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
            plain.then(|| u8::from_str_radix(part, 16).ok()).flatten()
        };
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let address = bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
        // The lowest bit of the first byte means many interfaces; Proxmox refuses it.
        let one = address.filter(|[first, ..]| first & 1 == 0);
        one.map(Self).ok_or_else(|| HardwareAddressError(text.chars().take(32).collect()))
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02X}:{b:02X}:{c:02X}:{d:02X}:{e:02X}:{g:02X}")
    }
}

impl TryFrom<String> for HardwareAddress {
    type Error = HardwareAddressError;
    fn try_from(text: String) -> Result<Self, HardwareAddressError> {
        text.parse()
    }
}

impl From<HardwareAddress> for String {
    fn from(address: HardwareAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_the_same_however_it_is_written() {
        let own: HardwareAddress = "bc:24:11:ee:25:8e".parse().unwrap();
        assert_eq!(own.to_string(), "BC:24:11:EE:25:8E");
        assert_eq!(HardwareAddress::of("name=eth0,bridge=vmbr0,hwaddr=BC:24:11:EE:25:8E,ip=dhcp"), Some(own));
        assert_eq!(HardwareAddress::of("name=eth0,bridge=vmbr0,ip=dhcp"), None);
    }

    #[test]
    fn what_is_no_address_of_one_interface_is_refused() {
        for bad in [
            "",
            "BC:24:11:EE:25",
            "BC:24:11:EE:25:8E:00",
            "BC:24:11:EE:25:8",
            "BC-24-11-EE-25-8E",
            "BC:24:11:EE:25:8E,ip=dhcp",
            "BD:24:11:EE:25:8E",
            "+C:24:11:EE:25:8E",
            "ÄC:24:11:EE:25:8E",
        ] {
            assert!(bad.parse::<HardwareAddress>().is_err(), "{bad:?}");
        }
    }
}
