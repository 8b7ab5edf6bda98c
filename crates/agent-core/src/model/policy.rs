//! Root's settings for guests: VMIDs, storages, images, networks.
//!
//! A digest in the settings counts as approved by those who may write the settings. An archive without a digest waits
//! for an operator's signature. Nothing that a document says widens it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use holdfast_protocol::id::{BridgeName, GoldenVersion, PoolName, StorageName, Vmid};
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::report::ImageBuild;
use holdfast_protocol::size::{Cores, MemoryMib};
use serde::{Deserialize, Serialize};

use super::addresses::ReservedAddresses;
use super::volume_id::VolumeId;

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
    /// Further storages on which root lets documents place disks of guests.
    pub guest_storages: BTreeSet<StorageName>,
    /// Backups, where there is a storage for them.
    pub backup_storage: Option<StorageName>,
    /// The bridge of our guests.
    pub bridge: BridgeName,
    /// The addresses on it that no guest of a document may have.
    pub kept: ReservedAddresses,
    /// The goldens whose archives root named.
    pub goldens: BTreeMap<GoldenVersion, Golden>,
    /// Where root lets goldens be built: those that lie there are named by it, each to be signed for.
    pub golden_dump: Option<GoldenDump>,
    /// How many guests documents may touch at once.
    pub brake: BrakeRule,
    /// Where backups are tried; without it none is.
    pub scratch: Option<TestPlace>,
}

impl Policy {
    /// Whether root lets disks of guests be made there: only then the agent's tokens may.
    #[must_use]
    pub fn holds_disks(&self, storage: &StorageName) -> bool {
        self.storage == *storage
            || self.bulk_storage.as_ref() == Some(storage)
            || self.guest_storages.contains(storage)
    }
}

/// A folder of archives that is also a storage of Proxmox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenDump {
    pub storage: StorageName,
    pub folder: PathBuf,
    /// When the newest image there is older than this many days, that is reported.
    pub refresh_days: u32,
}

impl GoldenDump {
    /// Debian's own updates are a month old by then.
    pub const REFRESH_DAYS: u32 = 30;
    /// What may be chosen.
    pub const REFRESH_DAYS_POSSIBLE: std::ops::RangeInclusive<u32> = 1..=3650;

    /// The number in the names of the archives that are built: `[container]` of golden/recipe.toml.
    const VMID: u32 = 900_001;

    /// That number, which a restore needs a privilege on.
    #[must_use]
    pub fn vmid() -> Option<Vmid> {
        Vmid::try_from(Self::VMID).ok()
    }
}

/// Where backups are tried, as root named it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestPlace {
    /// Numbers for scratch guests, and for nothing else.
    pub range: VmidRange,
    pub pool: PoolName,
    /// Where their disks go.
    pub storage: StorageName,
    /// Where their unplugged networks would be plugged in.
    pub bridge: BridgeName,
    /// No more memory than this.
    pub memory: MemoryMib,
    /// No more cores than this.
    pub cores: Cores,
    /// Where their controllers may speak to this agent. Without it every network stays unplugged, and a test says *booted
    /// only* at best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<TestBridge>,
    /// The storages whose backups are read by another entry of Proxmox, which can only read. The others are read by their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub twins: BTreeMap<StorageName, StorageName>,
}

impl TestPlace {
    /// The storage of an archive and its twin, where it has one.
    #[must_use]
    pub fn counterpart_of(&self, archive: &VolumeId) -> Option<(&StorageName, &StorageName)> {
        let storage = archive.storage()?;
        self.twins.iter().find(|(of, _)| of.as_str() == storage)
    }

    /// The name by which an archive is read: that of its storage's twin, where it has one. A backup server's archives are
    /// called by guest and time, whichever entry shows them.
    #[must_use]
    pub fn read_as(&self, archive: &VolumeId) -> VolumeId {
        match (self.counterpart_of(archive), archive.as_str().split_once(':')) {
            (Some((_, counterpart)), Some((_, name))) => VolumeId::new(format!("{counterpart}:{name}")),
            _ => archive.clone(),
        }
    }

    /// The bridge that all networks of a scratch guest name.
    #[must_use]
    pub fn net_bridge(&self) -> &BridgeName {
        self.speech.as_ref().map_or(&self.bridge, |speech| &speech.bridge)
    }

    /// From where a scratch guest may speak, if it may.
    #[must_use]
    pub fn guest_address(&self) -> Option<IpAddr> {
        self.speech.as_ref().map(|speech| IpAddr::V4(speech.guest.address()))
    }
}

/// A bridge without ports that ends at the agent's local API: `systemd/holdfast-test-bridge.service` makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestBridge {
    pub bridge: BridgeName,
    /// The scratch guest's address there. There is one at a time, so there is one address.
    pub guest: Ipv4Cidr,
    /// The agent's local API there, for scratch guests alone.
    pub listener: SocketAddr,
}

/// How much may be done without a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeRule {
    /// So many guests may always be touched within the window: a host with three guests can be worked on.
    pub at_least: u32,
    /// And this share of those that run, in percent.
    pub share_percent: u32,
    /// The window, in hours.
    pub window_h: u32,
}

impl BrakeRule {
    /// The longest window: a week, so that the count never looks further back.
    pub const WINDOW_MAX_H: u32 = 7 * 24;

    /// A fifth of the guests in a day: an attacker who stole the hub needs five days to stop them all. An operator
    /// looks within that time.
    #[must_use]
    pub const fn usual() -> Self {
        Self { at_least: 2, share_percent: 20, window_h: 24 }
    }

    /// How many of so many guests.
    #[must_use]
    pub fn limit(self, guests: usize) -> usize {
        let share = guests.saturating_mul(self.share_percent as usize) / 100;
        share.max(self.at_least as usize)
    }
}

/// How long a guest's programs may stand still for a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct QuiesceBound(u32);

impl QuiesceBound {
    /// The shortest: less than stopping and starting a few stacks takes would never hold.
    pub const MIN_S: u32 = 60;
    /// The longest: no guest's programs stand still for more than an hour.
    pub const MAX_S: u32 = 3_600;

    /// A quarter of an hour: stopping a database takes a minute, and a storage snapshot a second.
    #[must_use]
    pub const fn usual() -> Self {
        Self(900)
    }

    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// The same as a length of time.
    #[must_use]
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0 as u64)
    }
}

impl TryFrom<u32> for QuiesceBound {
    type Error = &'static str;
    fn try_from(seconds: u32) -> Result<Self, Self::Error> {
        if (Self::MIN_S..=Self::MAX_S).contains(&seconds) {
            Ok(Self(seconds))
        } else {
            Err("the bound of a quiesce window is 60 to 3600 seconds")
        }
    }
}

impl From<QuiesceBound> for u32 {
    fn from(bound: QuiesceBound) -> Self {
        bound.0
    }
}

/// One golden image that root named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// The archive, as Proxmox names it.
    pub archive: VolumeId,
    /// What the archive's bytes hash to, where root said so: that is root's approval. Without it an operator signs for
    /// what the bytes hash to.
    pub sha256: Option<Sha256Hex>,
    /// Where the agent can read those bytes.
    pub file: PathBuf,
    /// How it was made, where its manifest is on the host.
    pub build: Option<ImageBuild>,
}

/// A SHA-256 in lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

    /// Whether a number is one of them.
    #[must_use]
    pub fn holds(self, vmid: Vmid) -> bool {
        (self.first..=self.last).contains(&vmid)
    }

    /// How many they are.
    #[must_use]
    pub const fn size(self) -> usize {
        (self.last.number() - self.first.number()) as usize + 1
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
    fn the_number_of_built_archives_is_the_recipes() {
        let recipe: toml::Table = include_str!("../../../../golden/recipe.toml").parse().unwrap();
        assert_eq!(recipe["container"]["vmid"].as_integer(), Some(i64::from(GoldenDump::VMID)));
        assert!(GoldenDump::vmid().is_some());
    }

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
