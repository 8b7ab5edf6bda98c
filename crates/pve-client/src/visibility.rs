//! Proof that we would see a thing if it were there.
//!
//! Proxmox filters lists by permission and answers 200, so an empty list may mean *none* or *not visible to you*.
//! Input: our own effective permissions on exact paths. Output: a [`SightProof`] that a caller must hold to conclude
//! that something is gone, or the list of missing privileges. Deliberately absent: any conclusion.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use holdfast_protocol::id::{BridgeName, NodeName, PoolName, StorageName, Vmid};
use holdfast_protocol::size::VlanTag;
use serde_json::Value;

use super::wire::{Row, Unreadable};

/// A path of Proxmox's access control.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AclPath(String);

impl AclPath {
    /// `/vms/{vmid}`.
    #[must_use]
    pub fn guest(vmid: Vmid) -> Self {
        Self(format!("/vms/{vmid}"))
    }

    /// `/pool/{pool}`.
    #[must_use]
    pub fn pool(pool: &PoolName) -> Self {
        Self(format!("/pool/{pool}"))
    }

    /// `/storage`: where making an entry of any storage is checked, and nothing else.
    #[must_use]
    pub fn storages() -> Self {
        Self("/storage".to_owned())
    }

    /// `/storage/{storage}`.
    #[must_use]
    pub fn storage(storage: &StorageName) -> Self {
        Self(format!("/storage/{storage}"))
    }

    /// `/nodes/{node}`.
    #[must_use]
    pub fn node(node: &NodeName) -> Self {
        Self(format!("/nodes/{node}"))
    }

    /// `/sdn/zones/localnetwork/{bridge}`: where using a plain bridge is checked.
    #[must_use]
    pub fn bridge(bridge: &BridgeName) -> Self {
        Self(format!("/sdn/zones/localnetwork/{bridge}"))
    }

    /// A VLAN on a bridge: checked on its own path.
    #[must_use]
    pub fn vlan(bridge: &BridgeName, vlan: VlanTag) -> Self {
        Self(format!("/sdn/zones/localnetwork/{bridge}/{}", vlan.get()))
    }

    /// As Proxmox writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AclPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The effective permissions of one token: path, then privileges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions(BTreeMap<String, BTreeSet<String>>);

impl Permissions {
    /// Whether this privilege holds on exactly this path.
    #[must_use]
    pub fn holds(&self, path: &AclPath, privilege: &str) -> bool {
        self.0.get(path.as_str()).is_some_and(|set| set.contains(privilege))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.0.iter().map(|(path, set)| (path.as_str(), set))
    }

    /// Reads `{"/vms/100": {"VM.Audit": 1}, …}`. The number says whether it propagates, not whether it holds.
    pub(super) fn read(value: &Value) -> Result<Self, Unreadable> {
        // No permission at all is `{}`, and in some versions of the Perl encoder `[]`.
        if value.as_array().is_some_and(Vec::is_empty) {
            return Ok(Self::default());
        }
        let row = Row::of(value)?;
        row.keys()
            .map(|path| Ok((path.to_owned(), row.row(path)?.keys().map(str::to_owned).collect())))
            .collect()
    }
}

impl FromIterator<(String, BTreeSet<String>)> for Permissions {
    fn from_iter<I: IntoIterator<Item = (String, BTreeSet<String>)>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

/// The condition for seeing the objects on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Guests: `VM.Audit`.
    Guest,
    /// Storages and their content: `Datastore.Audit` or `Datastore.AllocateSpace`.
    Storage,
    /// Pools: `Pool.Audit`.
    Pool,
    /// Disks on a storage, in addition to [`Sight::DisksOf`]: `Datastore.Audit`.
    Disks,
    /// The disks of a guest, in addition to [`Sight::Disks`]: `VM.Config.Disk`.
    DisksOf,
}

impl Sight {
    fn privileges(self) -> &'static [&'static str] {
        match self {
            Self::Guest => &["VM.Audit"],
            Self::Storage => &["Datastore.Audit", "Datastore.AllocateSpace"],
            Self::Pool => &["Pool.Audit"],
            Self::Disks => &["Datastore.Audit"],
            Self::DisksOf => &["VM.Config.Disk"],
        }
    }
}

/// A path and the kind of visibility needed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededPrivilege {
    pub path: AclPath,
    pub sight: Sight,
}

/// Where we would not see a thing though it be there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("we may not see what is at {}: nothing can be concluded from its absence", paths(.0))]
pub struct Blind(pub Vec<AclPath>);

fn paths(paths: &[AclPath]) -> String {
    paths.iter().map(AclPath::as_str).collect::<Vec<_>>().join(", ")
}

/// Proof that on these paths nothing is hidden from us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SightProof(Vec<AclPath>);

impl SightProof {
    /// Holds the wanted sights to the permissions.
    ///
    /// # Errors
    /// Names every path on which we are blind.
    pub fn from_permissions(wanted: &[NeededPrivilege], permissions: &Permissions) -> Result<Self, Blind> {
        let sees = |want: &&NeededPrivilege| {
            want.sight.privileges().iter().any(|p| permissions.holds(&want.path, p))
        };
        let (seen, blind): (Vec<&NeededPrivilege>, Vec<&NeededPrivilege>) = wanted.iter().partition(sees);
        let path = |want: &NeededPrivilege| want.path.clone();
        if blind.is_empty() {
            Ok(Self(seen.into_iter().map(path).collect()))
        } else {
            Err(Blind(blind.into_iter().map(path).collect()))
        }
    }

    /// Whether this proof speaks of that path.
    #[must_use]
    pub fn covers(&self, path: &AclPath) -> bool {
        self.0.contains(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absence_is_proved_only_where_we_would_see() {
        let vmid = Vmid::try_from(300).unwrap();
        let storage: StorageName = "backup2".parse().unwrap();
        let wanted = [
            NeededPrivilege { path: AclPath::guest(vmid), sight: Sight::Guest },
            NeededPrivilege { path: AclPath::storage(&storage), sight: Sight::Storage },
        ];
        let read = |value| Permissions::read(&value).unwrap();
        let both =
            read(json!({"/vms/300": {"VM.Audit": 0}, "/storage/backup2": {"Datastore.AllocateSpace": 1}}));
        let proof = SightProof::from_permissions(&wanted, &both).unwrap();
        assert!(proof.covers(&AclPath::guest(vmid)));
        let less = read(json!({"/vms/300": {"VM.Backup": 1}, "/storage/backup2": {"Datastore.Audit": 1}}));
        assert_eq!(SightProof::from_permissions(&wanted, &less), Err(Blind(vec![AclPath::guest(vmid)])));
        let none = SightProof::from_permissions(&wanted, &read(json!([]))).unwrap_err();
        assert_eq!(
            none.to_string(),
            "we may not see what is at /vms/300, /storage/backup2: nothing can be concluded from its absence"
        );
    }
}
