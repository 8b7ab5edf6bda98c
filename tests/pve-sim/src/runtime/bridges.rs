//! The bridges of the node, out of its `/etc/network/interfaces`.

use super::net::{Cidr, CidrError};

/// A bridge and the node's own addresses on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    pub name: String,
    /// The node's addresses.
    pub addresses: Vec<Cidr>,
}

/// Why the file could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the interfaces file is refused")]
pub struct BridgesError {
    /// Counted from one.
    pub line: usize,
    /// What is wrong with it.
    #[source]
    pub reason: CidrError,
}

/// Reads the bridges: the stanzas that name `bridge-ports` or `bridge_ports`.
pub fn bridges_of_interfaces(text: &str) -> Result<Vec<Bridge>, BridgesError> {
    let mut bridges = Vec::new();
    let mut stanza: Option<(Bridge, bool)> = None;
    let mut close = |stanza: Option<(Bridge, bool)>| {
        if let Some((bridge, true)) = stanza {
            bridges.push(bridge);
        }
    };
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("iface"), Some(name)) => {
                close(stanza.take());
                stanza = Some((Bridge { name: name.to_owned(), addresses: Vec::new() }, false));
            }
            (Some("auto" | "allow-hotplug" | "source" | "mapping"), _) => close(stanza.take()),
            (Some("bridge-ports" | "bridge_ports"), _) => {
                if let Some((_, is_bridge)) = &mut stanza {
                    *is_bridge = true;
                }
            }
            (Some("address"), Some(address)) if !address.contains(':') => {
                let cidr = address.parse().map_err(|reason| BridgesError { line: index + 1, reason })?;
                if let Some((bridge, _)) = &mut stanza {
                    bridge.addresses.push(cidr);
                }
            }
            _ => {}
        }
    }
    close(stanza);
    Ok(bridges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bridges_are_found() {
        let text = "auto lo\niface lo inet loopback\n\nauto eno1\niface eno1 inet static\n\taddress 192.0.2.1/24\n\n\
                    auto vmbr0\niface vmbr0 inet static\n\taddress 10.66.0.1/24\n\tbridge-ports none\n";
        let bridges = bridges_of_interfaces(text).expect("readable");
        let address = "10.66.0.1/24".parse().expect("an address");
        assert_eq!(bridges, [Bridge { name: "vmbr0".to_owned(), addresses: vec![address] }]);
    }

    #[test]
    fn a_bad_address_names_its_line() {
        let error =
            bridges_of_interfaces("iface vmbr0 inet static\n\taddress 10.66.0.1\n").expect_err("refused");
        assert_eq!(error.line, 2);
    }
}
