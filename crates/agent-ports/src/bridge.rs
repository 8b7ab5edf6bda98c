//! Bridges of this host, as the kernel shows them.
//!
//! Input: `/sys/class/net`. Output: the names of a bridge's ports, and its largest packet. Deliberately absent: making
//! or changing one, which takes root (`systemd/holdfast-test-bridge.service`), and firewall rules, which only root can
//! read. Whether those rules hold is tested from inside the scratch guest (`guestd`).

use std::io;
use std::path::PathBuf;

use holdfast_protocol::id::BridgeName;

use super::bridge_net::BridgeTables;
use crate::model::addresses::BridgeNet;

/// The bridges, as the kernel shows them.
#[derive(Clone, Debug)]
pub struct Bridges {
    root: PathBuf,
    tables: BridgeTables,
}

/// Why a bridge's ports are not known.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// It is not there.
    #[error("there is no bridge {0}: run `systemctl restart holdfast-test-bridge`")]
    Absent(BridgeName),
    /// The kernel does not say.
    #[error("the kernel does not show what is plugged into {bridge}")]
    Unreadable {
        bridge: BridgeName,
        #[source]
        source: io::Error,
    },
}

impl Bridges {
    /// Those of the kernel.
    #[must_use]
    pub fn of_the_kernel() -> Self {
        Self { tables: BridgeTables::of_the_kernel(), ..Self::at("/sys/class/net") }
    }

    /// The bridges in a folder of the form of `/sys/class/net`, with the tables stored there, if any.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { tables: BridgeTables::at(&root), root }
    }

    /// Addresses on a bridge.
    #[must_use]
    pub fn net(&self, bridge: &BridgeName) -> BridgeNet {
        self.tables.look(bridge)
    }

    /// The ports plugged into a bridge, sorted.
    ///
    /// # Errors
    /// [`BridgeError`].
    pub fn ports(&self, bridge: &BridgeName) -> Result<Vec<String>, BridgeError> {
        let unreadable = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => BridgeError::Absent(bridge.clone()),
            _ => BridgeError::Unreadable { bridge: bridge.clone(), source },
        };
        let folder = self.root.join(bridge.as_str()).join("brif");
        let entries = std::fs::read_dir(folder).map_err(unreadable)?;
        let names =
            entries.map(|entry| Ok(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<Result<Vec<_>, _>>()?;
        names.sort();
        Ok(names)
    }

    /// The largest packet of a bridge in bytes, where the kernel says it.
    #[must_use]
    pub fn mtu(&self, bridge: &BridgeName) -> Option<u32> {
        let text = std::fs::read_to_string(self.root.join(bridge.as_str()).join("mtu")).ok()?;
        text.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_what_stands_in_brif() {
        let dir = tempfile::tempdir().unwrap();
        let bridges = Bridges::at(dir.path());
        let name: BridgeName = "hftest0".parse().unwrap();
        assert!(matches!(bridges.ports(&name), Err(BridgeError::Absent(_))));
        let brif = dir.path().join("hftest0/brif");
        std::fs::create_dir_all(&brif).unwrap();
        assert_eq!(bridges.ports(&name).unwrap(), Vec::<String>::new());
        for port in ["veth901i0", "enp1s0"] {
            std::fs::write(brif.join(port), "").unwrap();
        }
        assert_eq!(bridges.ports(&name).unwrap(), ["enp1s0", "veth901i0"]);
        assert_eq!(bridges.mtu(&name), None);
        std::fs::write(dir.path().join("hftest0/mtu"), "9000\n").unwrap();
        assert_eq!(bridges.mtu(&name), Some(9000));
    }
}
