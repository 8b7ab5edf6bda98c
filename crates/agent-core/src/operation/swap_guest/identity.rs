//! The identity of a guest: tag, name, networks and autostart.
//!
//! What comes in: the identities of both as they were found. What goes out: how each looks afterwards, or why the copy
//! cannot look so. The copy keeps its own hardware addresses: the guest is still there, and two of one address must
//! never meet. Deliberately absent: reading and setting them.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{GuestName, OperationId};
use serde::{Deserialize, Serialize};

use super::Pair;
use crate::model::mark;
use crate::model::net::NetLine;

/// Whether a guest starts with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtBoot {
    Starts,
    /// It stays as it is.
    Stays,
}

/// What a guest is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestIdentity {
    pub tags: BTreeSet<String>,
    pub description: String,
    /// Its host name.
    pub hostname: GuestName,
    /// Whether it starts with the node.
    pub at_boot: AtBoot,
    /// Its networks, by number.
    pub nets: BTreeMap<u8, NetLine>,
}

/// Both, as they were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestIdentities {
    pub guest: GuestIdentity,
    pub copy: GuestIdentity,
}

/// Why a copy cannot look like its guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It has other networks.
    #[error(
        "the copy has the networks {copys:?} and the guest {guests:?}: restore a backup that was taken since its networks were \
         changed, and sign for that copy"
    )]
    Networks { guests: Vec<String>, copys: Vec<String> },
    /// It has no hardware address of its own.
    #[error("net{0} of the copy has no hardware address of its own: look at it on the node")]
    Address(u8),
    /// No name can be made for the replaced guest.
    #[error("no name can be made for what is laid aside")]
    Name,
}

impl GuestIdentities {
    /// How the guest looks once it is laid aside: marked as what it is, unplugged, and not started by the node.
    ///
    /// # Errors
    /// [`Misfit::Name`].
    pub fn demoted(&self, pair: &Pair, by: OperationId) -> Result<GuestIdentity, Misfit> {
        Ok(GuestIdentity {
            tags: mark::copy_tags(by).into(),
            description: pair.former_description(by),
            hostname: pair.former_name().ok_or(Misfit::Name)?,
            at_boot: AtBoot::Stays,
            nets: self.guest.nets.iter().map(|(number, net)| (*number, net.unplugged())).collect(),
        })
    }

    /// How the copy looks in the guest's place: in all as the guest did, but under its own hardware addresses.
    ///
    /// # Errors
    /// [`Misfit::Networks`] and [`Misfit::Address`].
    pub fn placed(&self) -> Result<GuestIdentity, Misfit> {
        let names = |identity: &GuestIdentity| -> Vec<String> {
            identity.nets.iter().map(|(number, net)| format!("net{number} {}", net.name())).collect()
        };
        let (guests, copys) = (names(&self.guest), names(&self.copy));
        if guests != copys {
            return Err(Misfit::Networks { guests, copys });
        }
        let mut nets = BTreeMap::new();
        for ((number, guests), copys) in self.guest.nets.iter().zip(self.copy.nets.values()) {
            nets.insert(*number, guests.under_the_address_of(copys).ok_or(Misfit::Address(*number))?);
        }
        Ok(GuestIdentity { nets, ..self.guest.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(hostname: &str, nets: &[(u8, &str)]) -> GuestIdentity {
        GuestIdentity {
            tags: BTreeSet::from([hostname.to_owned()]),
            description: format!("about {hostname}"),
            hostname: hostname.parse().unwrap(),
            at_boot: AtBoot::Starts,
            nets: nets.iter().map(|(number, text)| (*number, text.parse().unwrap())).collect(),
        }
    }

    const GUESTS: &str = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.66.0.20/24";
    const COPYS: &str = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=manual,link_down=1";

    #[test]
    fn the_copy_looks_as_the_guest_did_under_its_own_address() {
        let identities = GuestIdentities {
            guest: identity("web-1", &[(0, GUESTS)]),
            copy: identity("web-1-copy", &[(0, COPYS)]),
        };
        let placed = identities.placed().unwrap();
        assert_eq!(placed.nets[&0].to_string(), GUESTS.replace("00:01", "00:02"));
        assert_eq!(GuestIdentity { nets: identities.guest.nets.clone(), ..placed }, identities.guest);
    }

    #[test]
    fn other_networks_are_not_guessed_at() {
        let guest = identity("web-1", &[(0, GUESTS)]);
        for nets in [
            vec![],
            vec![(1, COPYS)],
            vec![(0, COPYS), (1, "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:00:00:03")],
        ] {
            let identities = GuestIdentities { guest: guest.clone(), copy: identity("web-1-copy", &nets) };
            assert!(matches!(identities.placed(), Err(Misfit::Networks { .. })), "{nets:?}");
        }
        let identities =
            GuestIdentities { guest, copy: identity("web-1-copy", &[(0, "name=eth0,bridge=vmbr0")]) };
        assert_eq!(identities.placed(), Err(Misfit::Address(0)));
    }
}
