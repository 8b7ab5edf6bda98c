//! What root on the box named when the agent was set up: where guests may go and which goldens they may be made from.
//!
//! What the settings name counts as approved by whoever may write them. Nothing a document says widens it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_protocol::id::{BridgeName, GoldenVersion, PoolName, StorageName, Vmid};
use serde::{Deserialize, Serialize};

use super::record::VolumeId;

/// What the agent may do where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// VMIDs for new guests.
    pub range: VmidRange,
    /// The pool of our guests.
    pub pool: PoolName,
    /// Root disks and hot volumes.
    pub storage: StorageName,
    /// Bulk volumes, where there is a storage for them.
    pub bulk_storage: Option<StorageName>,
    /// Backups, where there is a storage for them.
    pub backup_storage: Option<StorageName>,
    /// The bridge of our guests.
    pub bridge: BridgeName,
    /// The goldens that were approved.
    pub goldens: BTreeMap<GoldenVersion, Golden>,
}

/// One approved golden image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// The archive, as Proxmox names it.
    pub archive: VolumeId,
    /// What the archive's bytes must hash to.
    pub sha256: Sha256Hex,
    /// Where the agent can read those bytes.
    pub file: PathBuf,
}

/// A SHA-256 in lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Hex(String);

impl Sha256Hex {
    /// The 64 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sha256Hex {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let fits = text.len() == 64 && text.bytes().all(digit);
        if fits { Ok(Self(text)) } else { Err("a SHA-256 is 64 lower-case hex digits") }
    }
}

impl From<Sha256Hex> for String {
    fn from(hash: Sha256Hex) -> Self {
        hash.0
    }
}

/// First and last VMID for new guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "[Vmid; 2]", into = "[Vmid; 2]")]
pub struct VmidRange {
    first: Vmid,
    last: Vmid,
}

impl VmidRange {
    /// Every number of the range, in order.
    pub fn iter(self) -> impl Iterator<Item = Vmid> {
        (self.first.number()..=self.last.number()).filter_map(|number| Vmid::try_from(number).ok())
    }

    /// The first number.
    #[must_use]
    pub const fn first(self) -> Vmid {
        self.first
    }

    /// The last number.
    #[must_use]
    pub const fn last(self) -> Vmid {
        self.last
    }
}

impl TryFrom<[Vmid; 2]> for VmidRange {
    type Error = &'static str;
    fn try_from([first, last]: [Vmid; 2]) -> Result<Self, Self::Error> {
        if first <= last {
            Ok(Self { first, last })
        } else {
            Err("a VMID range is [first, last] with first <= last")
        }
    }
}

impl From<VmidRange> for [Vmid; 2] {
    fn from(range: VmidRange) -> Self {
        [range.first, range.last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_and_a_hash_have_one_form() {
        let range: VmidRange = serde_json::from_str("[300, 302]").unwrap();
        assert_eq!(range.iter().map(Vmid::number).collect::<Vec<_>>(), [300, 301, 302]);
        assert!(serde_json::from_str::<VmidRange>("[302, 300]").is_err());
        assert!(serde_json::from_str::<VmidRange>("[99, 300]").is_err());
        assert!(Sha256Hex::try_from("AB".repeat(32)).is_err());
        assert!(Sha256Hex::try_from("ab".repeat(32)).is_ok());
    }
}
