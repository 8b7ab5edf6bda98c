//! Addresses on the guests' bridge, from the kernel's tables.
//!
//! Input: `/proc/self/net` (`route`, `fib_trie`, `arp`). Output: the host's own addresses there, its networks and
//! routers, and who answered for which address. Deliberately absent: netlink, for which the agent's service would need
//! one more family of sockets; IPv4 is all that documents give to guests, and these tables say all of it. A table that
//! cannot be read is empty.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use holdfast_protocol::id::BridgeName;
use holdfast_protocol::net::Ipv4Cidr;

use crate::model::addresses::{Answer, BridgeNet};

/// A host with thousands of neighbours has a tenth of it.
const BYTES_MAX: u64 = 4 << 20;

/// The flags of a route in force, and of one through a router.
const UP: u32 = 1;
const BY_ROUTER: u32 = 2;

/// The flag of an entry whose hardware address is known.
const COMPLETE: u32 = 2;

/// The kernel's tables.
#[derive(Clone, Debug)]
pub struct BridgeTables {
    root: PathBuf,
}

impl BridgeTables {
    /// Those of the kernel.
    #[must_use]
    pub fn of_the_kernel() -> Self {
        Self::at("/proc/self/net")
    }

    /// The tables in a folder of the form of `/proc/net`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The networks, gateways and answers of a bridge, from the tables.
    #[must_use]
    pub fn look(&self, bridge: &BridgeName) -> BridgeNet {
        let (networks, gateways) = routes(&read(&self.root.join("route")), bridge);
        let reached = |address: &Ipv4Addr| networks.iter().any(|net: &Ipv4Cidr| net.reaches(*address));
        let own = locals(&read(&self.root.join("fib_trie"))).into_iter().filter(reached).collect();
        let answers = neighbours(&read(&self.root.join("arp")), bridge);
        BridgeNet { own, networks, gateways, answers, ..BridgeNet::default() }
    }
}

fn read(path: &Path) -> String {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
    if let Err(error) = read {
        tracing::debug!(%error, path = %path.display(), "a table of the kernel is not read");
    }
    text
}

/// The networks behind an interface, and the routers there.
fn routes(table: &str, bridge: &BridgeName) -> (BTreeSet<Ipv4Cidr>, BTreeSet<Ipv4Addr>) {
    // In the kernel's byte order, which is that of this machine.
    let address = |text: &str| Some(Ipv4Addr::from(u32::from_str_radix(text, 16).ok()?.to_ne_bytes()));
    let (mut networks, mut gateways) = (BTreeSet::new(), BTreeSet::new());
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, to, by, flags, _, _, _, mask, ..] = fields.as_slice() else { continue };
        let Ok(flags) = u32::from_str_radix(flags, 16) else { continue };
        if *interface != bridge.as_str() || flags & UP == 0 {
            continue;
        }
        let (Some(to), Some(by), Some(mask)) = (address(to), address(by), address(mask)) else { continue };
        let prefix = mask.to_bits().leading_ones();
        if flags & BY_ROUTER != 0 {
            gateways.insert(by);
        } else if (1..32).contains(&prefix) {
            networks.extend(format!("{to}/{prefix}").parse::<Ipv4Cidr>());
        }
    }
    (networks, gateways)
}

/// The host's own addresses: in the table, a line after each marks it as local.
fn locals(table: &str) -> BTreeSet<Ipv4Addr> {
    let mut last: Option<Ipv4Addr> = None;
    let mut found = BTreeSet::new();
    for line in table.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse().ok();
        } else if line.trim() == "/32 host LOCAL" {
            found.extend(last);
        }
    }
    found
}

/// Who answered for which address behind an interface.
fn neighbours(table: &str, bridge: &BridgeName) -> BTreeSet<Answer> {
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let answers = lines.filter_map(|fields| {
        let [address, _, flags, hardware, _, interface] = fields.as_slice() else { return None };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        let known = *interface == bridge.as_str() && flags & COMPLETE != 0;
        let answer = (address.parse().ok()?, hardware.parse().ok()?);
        known.then_some(answer)
    });
    answers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
vmbr0\t00000000\t01420A0A\t0003\t0\t0\t0\t00000000\t0\t0\t0
vmbr0\t00420A0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
vmbr0\t07420A0A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0
vmbr1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
";
    const TRIE: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
Local:
  +-- 0.0.0.0/0 2 0 2
     +-- 10.10.66.0/24 2 0 2
           |-- 10.10.66.2
              /32 host LOCAL
           |-- 10.10.66.255
              /32 link BROADCAST
     |-- 127.0.0.1
        /32 host LOCAL
";
    const ARP: &str = "\
IP address       HW type     Flags       HW address            Mask     Device
10.10.66.5       0x1         0x2         bc:24:11:00:00:05     *        vmbr0
10.10.66.6       0x1         0x0         00:00:00:00:00:00     *        vmbr0
10.10.66.7       0x1         0x2         bc:24:11:00:00:07     *        vmbr1
";

    /// The tables are in the order of bytes of the machine that this runs on; those above are of one that begins with the lowest.
    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_tables_are_read() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("route", ROUTE), ("fib_trie", TRIE), ("arp", ARP)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let net = BridgeTables::at(dir.path()).look(&"vmbr0".parse().unwrap());
        assert_eq!(net.networks, ["10.10.66.0/24".parse().unwrap()].into());
        assert_eq!(net.gateways, ["10.10.66.1".parse().unwrap()].into());
        assert_eq!(net.own, ["10.10.66.2".parse().unwrap()].into());
        let one = ("10.10.66.5".parse().unwrap(), "BC:24:11:00:00:05".parse().unwrap());
        assert_eq!(net.answers, [one].into());
        let nothing = BridgeTables::at(dir.path().join("none")).look(&"vmbr0".parse().unwrap());
        assert_eq!(nothing, BridgeNet::default(), "what cannot be read refuses nothing");
    }

    /// On any machine that runs this test, the kernel's tables have the parsed form.
    #[test]
    fn the_loopback_address_stands_in_this_kernels_own_table() {
        let table = read(Path::new("/proc/self/net/fib_trie"));
        assert!(table.is_empty() || locals(&table).contains(&Ipv4Addr::LOCALHOST), "{table}");
    }
}
