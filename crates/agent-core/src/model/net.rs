//! One network of a container, as Proxmox writes it: `name=eth0,bridge=vmbr0,hwaddr=…,ip=…`.
//!
//! What comes in: the text of a `netN` line as it was read. What goes out: the same line unplugged, under another hardware
//! address, or at another place of the network; no line can be made of nothing. Two lines are equal when they say the same,
//! in whatever order. Deliberately absent: what its values mean, which is Proxmox's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use holdfast_protocol::desired::{FirewallFlag, GuestNetwork, Mtu, OwnResolver, Rate, Resolver};
use holdfast_protocol::id::BridgeName;
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::size::VlanTag;
use serde::{Deserialize, Serialize};

/// The longest line that is read: Proxmox's own have some hundred letters.
const CHARS_MAX: usize = 512;

/// A network, as it was read. Its parts are kept as one text in the order of their keys: each plan reads those of each guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NetLine(String);

/// Where a guest's network is plugged in, and its way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetPlace {
    pub bridge: BridgeName,
    /// The VLAN, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanTag>,
    /// The gateway, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Ipv4Addr>,
    /// The guest's address; none where it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Cidr>,
    /// The largest packet; none where it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// The limit; none where it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The firewall's flag; none where it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<FirewallFlag>,
}

impl NetPlace {
    /// As a document wants it. The resolver is no part of the line: see [`ResolverText`].
    #[must_use]
    pub fn of(network: &GuestNetwork) -> Self {
        let GuestNetwork {
            bridge,
            address,
            gateway,
            vlan,
            mtu,
            rate,
            firewall,
            address_filter: _,
            resolver: _,
        } = network;
        Self {
            bridge: bridge.clone(),
            vlan: *vlan,
            gateway: *gateway,
            address: Some(*address),
            mtu: *mtu,
            rate: *rate,
            firewall: *firewall,
        }
    }
}

/// The name servers of a guest, as Proxmox writes it; none of a part is the host's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolverText {
    /// `nameserver`: addresses, a blank between them.
    pub servers: Option<String>,
    /// `searchdomain`: domains, a blank between them.
    pub search: Option<String>,
}

impl ResolverText {
    /// As a document wants it.
    #[must_use]
    pub fn of(resolver: &Resolver) -> Self {
        let Resolver::Own(OwnResolver { servers, search }) = resolver else { return Self::default() };
        let servers: Vec<String> = servers.as_slice().iter().map(ToString::to_string).collect();
        let search: Vec<&str> = search.as_slice().iter().map(|domain| domain.as_str()).collect();
        Self { servers: Some(servers.join(" ")), search: (!search.is_empty()).then(|| search.join(" ")) }
    }
}

impl fmt::Display for ResolverText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.servers {
            Some(servers) => f.write_str(servers)?,
            None => f.write_str("the host's own")?,
        }
        self.search.as_ref().map_or(Ok(()), |search| write!(f, " in {search}"))
    }
}

impl fmt::Display for NetPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bridge)?;
        if let Some(address) = self.address {
            write!(f, " as {address}")?;
        }
        if let Some(vlan) = self.vlan {
            write!(f, " VLAN {}", vlan.get())?;
        }
        match self.gateway {
            Some(gateway) => write!(f, " by {gateway}")?,
            None => f.write_str(" without a gateway")?,
        }
        match self.mtu {
            Some(Mtu::Bytes(mtu)) => write!(f, " with packets of {mtu}")?,
            Some(Mtu::Bridge) => f.write_str(" with its bridge's packets")?,
            None => {}
        }
        match self.rate {
            Some(Rate::MibPerS(rate)) => write!(f, " at {rate}")?,
            Some(Rate::Unlimited) => f.write_str(" without a limit")?,
            None => {}
        }
        match self.firewall {
            Some(FirewallFlag::On) => f.write_str(" behind the firewall"),
            Some(FirewallFlag::Off) => f.write_str(" without the firewall"),
            None => Ok(()),
        }
    }
}

/// Text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network of the form name=…,bridge=…,…")]
pub struct NetLineError(String);

impl NetLine {
    /// What it is called inside the container.
    #[must_use]
    pub fn name(&self) -> &str {
        self.get("name").unwrap_or_default()
    }

    /// Its hardware address.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.get("hwaddr")
    }

    /// The bridge that it is plugged in to.
    #[must_use]
    pub fn bridge(&self) -> Option<&str> {
        self.get("bridge")
    }

    /// The same with its plug pulled.
    #[must_use]
    pub fn unplugged(&self) -> Self {
        self.with("link_down", "1")
    }

    /// Whether its plug is pulled.
    #[must_use]
    pub fn is_unplugged(&self) -> bool {
        self.get("link_down") == Some("1")
    }

    /// The same under the hardware address of another; none when that has none.
    #[must_use]
    pub fn under_the_address_of(&self, other: &Self) -> Option<Self> {
        Some(self.with("hwaddr", other.address()?))
    }

    /// The guest's address with prefix, `dhcp` or `manual`.
    #[must_use]
    pub fn ip(&self) -> Option<&str> {
        self.get("ip")
    }

    /// Its VLAN, as Proxmox writes it.
    #[must_use]
    pub fn vlan(&self) -> Option<&str> {
        self.get("tag")
    }

    /// The same at this place. Its hardware address stays: a line without one gets a new one from Proxmox.
    #[must_use]
    pub fn at(&self, place: &NetPlace) -> Self {
        let mut line = self.with("bridge", place.bridge.as_str());
        if let Some(address) = place.address {
            line = line.with("ip", &address.to_string());
        }
        line = match place.vlan {
            Some(tag) => line.with("tag", &tag.get().to_string()),
            None => line.without("tag"),
        };
        line = match place.gateway {
            Some(gateway) => line.with("gw", &gateway.to_string()),
            None => line.without("gw"),
        };
        line = match place.mtu {
            Some(Mtu::Bytes(mtu)) => line.with("mtu", &mtu.get().to_string()),
            Some(Mtu::Bridge) => line.without("mtu"),
            None => line,
        };
        line = match place.rate {
            Some(Rate::MibPerS(rate)) => line.with("rate", &rate.get().to_string()),
            Some(Rate::Unlimited) => line.without("rate"),
            None => line,
        };
        match place.firewall {
            Some(FirewallFlag::On) => line.with("firewall", "1"),
            // Written out or left out, it is the same.
            Some(FirewallFlag::Off) if line.get("firewall") != Some("0") => line.without("firewall"),
            Some(FirewallFlag::Off) | None => line,
        }
    }

    /// Whether the firewall looks at it.
    #[must_use]
    pub fn firewall(&self) -> FirewallFlag {
        if self.get("firewall") == Some("1") { FirewallFlag::On } else { FirewallFlag::Off }
    }

    /// Whether its packets are of this size.
    #[must_use]
    pub fn has(&self, mtu: Mtu) -> bool {
        match mtu {
            Mtu::Bridge => self.get("mtu").is_none(),
            Mtu::Bytes(bytes) => self.says("mtu", bytes.get()),
        }
    }

    /// Whether the guest's address is this one.
    #[must_use]
    pub fn has_address(&self, address: Ipv4Cidr) -> bool {
        self.ip().is_some_and(|text| is_address(text, address))
    }

    /// Whether it is in this VLAN, or in none.
    #[must_use]
    pub fn is_in(&self, vlan: Option<VlanTag>) -> bool {
        vlan.map_or_else(|| self.vlan().is_none(), |tag| self.says("tag", tag.get()))
    }

    /// Whether it is as a document wants it: at that place ([`Self::at`]) it would be the same.
    #[must_use]
    pub fn is_at(&self, network: &GuestNetwork) -> bool {
        let GuestNetwork {
            bridge,
            address,
            gateway,
            vlan,
            mtu,
            rate,
            firewall,
            address_filter: _,
            resolver: _,
        } = network;
        let (mut on_bridge, mut under_address, mut by_gateway, mut in_vlan) =
            (false, false, gateway.is_none(), vlan.is_none());
        // The parts are walked once.
        for (key, value) in self.parts() {
            match key {
                "bridge" => on_bridge = value == bridge.as_str(),
                "ip" => under_address = is_address(value, *address),
                "gw" => by_gateway = gateway.is_some_and(|gateway| value.parse() == Ok(gateway)),
                "tag" => in_vlan = vlan.is_some_and(|tag| is_text_of(value, tag.get())),
                _ => {}
            }
        }
        let rate = match rate {
            Some(Rate::MibPerS(rate)) => self.says("rate", rate.get()),
            Some(Rate::Unlimited) => self.get("rate").is_none(),
            None => true,
        };
        let firewall = match firewall {
            Some(FirewallFlag::On) => self.get("firewall") == Some("1"),
            Some(FirewallFlag::Off) => matches!(self.get("firewall"), None | Some("0")),
            None => true,
        };
        let there = on_bridge && under_address && by_gateway && in_vlan;
        there && rate && firewall && mtu.is_none_or(|mtu| self.has(mtu))
    }

    /// One of its values by its key, as Proxmox writes it.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.get(key)
    }

    fn says(&self, key: &str, value: impl fmt::Display) -> bool {
        self.get(key).is_some_and(|text| is_text_of(text, value))
    }

    fn parts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split(',').filter_map(|part| part.split_once('='))
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.parts().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    fn without(&self, key: &str) -> Self {
        Self::of(&self.parts().filter(|(own, _)| *own != key).collect())
    }

    fn with(&self, key: &str, value: &str) -> Self {
        Self::of(&self.parts().chain([(key, value)]).collect())
    }

    fn of(parts: &BTreeMap<&str, &str>) -> Self {
        let parts: Vec<String> = parts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self(parts.join(","))
    }
}

/// Whether a text is that of an address. There is one text of each, and reading it is quicker than writing it.
fn is_address(text: &str, address: Ipv4Cidr) -> bool {
    text.split_once('/').is_some_and(|(own, prefix)| {
        own.parse().is_ok_and(|own: Ipv4Addr| own == address.address())
            && is_text_of(prefix, address.prefix())
    })
}

/// Whether a text is that of a value. Nothing is allocated: each plan asks this of each guest.
fn is_text_of(text: &str, value: impl fmt::Display) -> bool {
    let mut rest = Rest(text);
    fmt::write(&mut rest, format_args!("{value}")).is_ok() && rest.0.is_empty()
}

/// The rest of a text, while another is written against it.
struct Rest<'a>(&'a str);

impl fmt::Write for Rest<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
        Ok(())
    }
}

impl FromStr for NetLine {
    type Err = NetLineError;

    fn from_str(text: &str) -> Result<Self, NetLineError> {
        let refused = || NetLineError(text.chars().take(CHARS_MAX).collect());
        if text.chars().count() > CHARS_MAX {
            return Err(refused());
        }
        let mut parts = BTreeMap::new();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(refused)?;
            let plain = key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            let fine = !key.is_empty() && plain && value.bytes().all(|b| b.is_ascii_graphic());
            if !fine || parts.insert(key, value).is_some() {
                return Err(refused());
            }
        }
        if parts.contains_key("name") { Ok(Self::of(&parts)) } else { Err(refused()) }
    }
}

impl fmt::Display for NetLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name={}", self.name())?;
        self.parts()
            .filter(|(key, _)| *key != "name")
            .try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

impl TryFrom<String> for NetLine {
    type Error = NetLineError;
    fn try_from(text: String) -> Result<Self, NetLineError> {
        text.parse()
    }
}

impl From<NetLine> for String {
    fn from(line: NetLine) -> Self {
        line.to_string()
    }
}

#[cfg(test)]
mod tests;
