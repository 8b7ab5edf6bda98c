//! The node's bridges, and the guests' interfaces on them.

use std::net::IpAddr;

use serde::Deserialize;

use super::namespace;
use super::tool::{ip, ip_if_there};
use crate::runtime::bridges::Bridge;
use crate::runtime::error::RuntimeError;
use crate::runtime::net::{Interface, Link, Net};
use crate::runtime::spec::GuestSpec;

/// The node's network namespace with its bridges.
pub(super) struct Network {
    namespace: String,
    bridges: Vec<String>,
}

impl Network {
    /// Makes the namespace and the bridges in it.
    pub(super) fn create(name: &str, bridges: &[Bridge]) -> Result<Self, RuntimeError> {
        namespace::create(name)?;
        for (index, bridge) in bridges.iter().enumerate() {
            let hwaddr = bridge_address(index);
            ip(&[
                "-n",
                name,
                "link",
                "add",
                &bridge.name,
                "address",
                &hwaddr,
                "type",
                "bridge",
                "forward_delay",
                "0",
            ])?;
            for address in &bridge.addresses {
                ip(&["-n", name, "address", "add", &address.to_string(), "dev", &bridge.name])?;
            }
            ip(&["-n", name, "link", "set", &bridge.name, "up"])?;
        }
        let bridges = bridges.iter().map(|bridge| bridge.name.clone()).collect();
        Ok(Self { namespace: name.to_owned(), bridges })
    }

    /// Makes a guest's namespace with its interfaces, each put on its bridge. Nothing is left of it on failure.
    pub(super) fn plug(&self, guest_namespace: &str, guest: &GuestSpec) -> Result<(), RuntimeError> {
        if let Some(net) = guest.nets.iter().find(|net| !self.bridges.contains(&net.bridge)) {
            return Err(RuntimeError::NoBridge { bridge: net.bridge.clone() });
        }
        namespace::create(guest_namespace)?;
        for (index, net) in guest.nets.iter().enumerate() {
            if let Err(error) = self.plug_one(guest_namespace, &outside_name(guest.vmid, index), net) {
                self.unplug(guest_namespace, guest.vmid)?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn plug_one(&self, inside: &str, outer: &str, net: &Net) -> Result<(), RuntimeError> {
        let node = self.namespace.as_str();
        let hwaddr = net.hwaddr.as_str();
        ip_if_there(&["-n", node, "link", "delete", outer])?;
        ip(&[
            "-n", node, "link", "add", outer, "type", "veth", "peer", "name", &net.name, "address", hwaddr,
            "netns", inside,
        ])?;
        ip(&["-n", node, "link", "set", outer, "master", &net.bridge])?;
        if let Some(address) = net.ip {
            ip(&["-n", inside, "address", "add", &address.to_string(), "dev", &net.name])?;
        }
        ip(&["-n", inside, "link", "set", &net.name, "up"])?;
        if net.link == Link::Up {
            ip(&["-n", node, "link", "set", outer, "up"])?;
        }
        // As with LXC, a route needs an address, but the gateway need not lie in its network.
        if let (Some(_), Some(gateway)) = (net.ip, net.gw) {
            ip(&[
                "-n",
                inside,
                "route",
                "add",
                "default",
                "via",
                &gateway.to_string(),
                "dev",
                &net.name,
                "onlink",
            ])?;
        }
        Ok(())
    }

    /// Removes a guest's namespace and interfaces.
    pub(super) fn unplug(&self, guest_namespace: &str, vmid: u32) -> Result<(), RuntimeError> {
        namespace::remove(guest_namespace)?;
        // The kernel removes a namespace's interfaces a little later; a guest started at once needs the name now.
        for index in 0..NETS_MAX {
            let outer = outside_name(vmid, index);
            if ip(&["-n", &self.namespace, "link", "show", "dev", &outer]).is_err() {
                break;
            }
            ip_if_there(&["-n", &self.namespace, "link", "delete", &outer])?;
        }
        Ok(())
    }
}

/// The hardware address of a bridge. Without one of its own a bridge takes the lowest of its guests' interfaces, which
/// changes when a guest starts or stops, and then all others send to an address that is gone. On a host the network
/// card gives the bridge an address that stays.
fn bridge_address(index: usize) -> String {
    let [.., high, low] = index.to_be_bytes();
    format!("02:00:00:00:{high:02x}:{low:02x}")
}

/// Proxmox allows net0 to net31.
const NETS_MAX: usize = 32;

fn outside_name(vmid: u32, index: usize) -> String {
    format!("veth{vmid}i{index}")
}

/// What `ip -json address` says of one interface; it says much more.
#[derive(Deserialize)]
struct SeenInterface {
    ifname: String,
    address: String,
    #[serde(default)]
    addr_info: Vec<SeenAddress>,
}

#[derive(Deserialize)]
struct SeenAddress {
    local: IpAddr,
    prefixlen: u8,
}

/// The interfaces inside a guest's namespace, as they are now.
pub(super) fn interfaces(guest_namespace: &str) -> Result<Vec<Interface>, RuntimeError> {
    let text = ip(&["-n", guest_namespace, "-json", "address", "show"])?;
    let seen: Vec<SeenInterface> = serde_json::from_slice(&text)
        .map_err(std::io::Error::from)
        .map_err(RuntimeError::system("reading the interfaces", namespace::path_of(guest_namespace)))?;
    Ok(seen
        .into_iter()
        .map(|interface| Interface {
            name: interface.ifname,
            hwaddr: interface.address,
            addresses: interface.addr_info.into_iter().map(|found| (found.local, found.prefixlen)).collect(),
        })
        .collect())
}
