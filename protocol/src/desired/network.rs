//! The network settings of a guest in the document.
//!
//! Bridge, address, gateway and VLAN always apply: when they are left out, a guest has no gateway and no VLAN. The
//! other settings apply where they are written: when they are left out, they stay as they are on the host. So a
//! document from before these fields changes nothing, and a setting made by hand stays. Each setting has a value for
//! the host's own way, which takes a written value back.

use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::BridgeName;
use crate::net::Ipv4Cidr;
use crate::size::{MtuBytes, RateMib, VlanTag};
use crate::text::texts;

/// The resolver of a C library queries three servers at most.
pub const NAME_SERVERS_MAX: usize = 3;

/// The domains that old C libraries search.
pub const SEARCH_DOMAINS_MAX: usize = 6;

/// A guest's place on a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestNetwork {
    /// The bridge.
    pub bridge: BridgeName,
    /// The guest's address with prefix.
    pub address: Ipv4Cidr,
    /// Its way out, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Ipv4Addr>,
    /// A VLAN, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanTag>,
    /// The largest packet of its interface. Left out, it stays as it is. A running guest has it from its next start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// How much its interface lets through in each direction. Left out, it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Whether Proxmox's firewall is on for its interface. Left out, it stays as it is; `off` where it is on waits for
    /// a person. Rules are not part of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<FirewallFlag>,
    /// Whether Proxmox's firewall, where it is used for the guest, holds it to its addresses. Left out, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_filter: Option<AddressFilter>,
    /// The name servers that it uses. Left out, they stay as they are. A running guest has them from its next start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<Resolver>,
}

/// The largest packet of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mtu {
    /// As its bridge has it.
    Bridge,
    /// So many bytes; at most what its bridge has.
    Bytes(MtuBytes),
}

/// How much an interface lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// As much as comes.
    Unlimited,
    /// So many MiB a second, which Proxmox calls MB/s.
    MibPerS(RateMib),
}

/// Whether Proxmox's firewall is on for an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FirewallFlag {
    /// It does, where it is switched on for the guest and for the cluster.
    On,
    /// It does not.
    Off,
}

/// Whether a guest is held to its addresses where Proxmox's firewall is used for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressFilter {
    /// It is: `macfilter`, `ipfilter` and a set of its addresses are put right.
    #[default]
    Own,
    /// The setting in Proxmox is left: a router, or a guest with addresses of its own making.
    AsItIs,
}

/// The name servers that a guest uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resolver {
    /// Those of the host.
    Host,
    /// These.
    Own(OwnResolver),
}

/// Name servers of a guest's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnResolver {
    /// The servers, queried in this order.
    pub servers: NameServers,
    /// The domains in which a short name is looked for; without any, the host's own.
    #[serde(default, skip_serializing_if = "SearchDomains::is_empty")]
    pub search: SearchDomains,
}

/// One to three name servers, each once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<IpAddr>", into = "Vec<IpAddr>")]
pub struct NameServers(#[schemars(length(min = 1, max = 3))] Vec<IpAddr>);

/// At most six domains, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<DomainName>", into = "Vec<DomainName>")]
pub struct SearchDomains(#[schemars(length(max = 6))] Vec<DomainName>);

texts! {
    /// A domain, such as `lan.example`: labels of lower-case letters, digits and inner hyphens.
    DomainName, 1..=253, "a domain is made of labels of lower-case letters, digits and inner hyphens, such as lan.example",
        |text| text.split('.').all(label);
}

fn label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl NameServers {
    /// The servers, in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[IpAddr] {
        &self.0
    }
}

impl SearchDomains {
    /// The domains, in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[DomainName] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn once<T: PartialEq>(list: &[T]) -> bool {
    list.iter().enumerate().all(|(at, one)| !list.iter().take(at).any(|before| before == one))
}

impl TryFrom<Vec<IpAddr>> for NameServers {
    type Error = &'static str;
    fn try_from(list: Vec<IpAddr>) -> Result<Self, &'static str> {
        let single = |address: &IpAddr| !address.is_unspecified() && !address.is_multicast();
        if (1..=NAME_SERVERS_MAX).contains(&list.len()) && list.iter().all(single) && once(&list) {
            Ok(Self(list))
        } else {
            Err("name servers are one to three addresses of single machines, each once")
        }
    }
}

impl From<NameServers> for Vec<IpAddr> {
    fn from(list: NameServers) -> Self {
        list.0
    }
}

impl TryFrom<Vec<DomainName>> for SearchDomains {
    type Error = &'static str;
    fn try_from(list: Vec<DomainName>) -> Result<Self, &'static str> {
        if list.len() <= SEARCH_DOMAINS_MAX && once(&list) {
            Ok(Self(list))
        } else {
            Err("search domains are at most six, each once")
        }
    }
}

impl From<SearchDomains> for Vec<DomainName> {
    fn from(list: SearchDomains) -> Self {
        list.0
    }
}
