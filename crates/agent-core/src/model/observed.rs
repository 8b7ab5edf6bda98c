//! One observation of the host, with unknown as a value.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::{GoldenVersion, GuestUid, StorageName, Vmid};
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::report::Running;
use holdfast_protocol::storage::report::PrunedBy;
use jiff::Timestamp;

use super::addresses::BridgeNet;
pub use super::backup_flag::BackupFlag;
use super::cpu::CpuFacts;
use super::filter::FilterSeen;
use super::hardware::HardwareAddress;
use super::mark::Mark;
use super::net::{NetLine, ResolverText};
use super::offsite::Verification;
use super::policy::Sha256Hex;
use super::records::BackupRecord;
use super::volume_id::VolumeId;

/// One observation of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub at: Timestamp,
    /// The containers we see, by VMID.
    pub guests: BTreeMap<Vmid, ObservedGuest>,
    /// When what it shows was found.
    pub times: FactTimes,
    /// What was asked about single VMIDs.
    pub vmids: BTreeMap<Vmid, VmidFact>,
    /// The storages in the settings, and the targets in use.
    pub storages: BTreeMap<StorageName, StorageFact>,
    /// Whether the list of containers is whole.
    pub sight: Sight,
    /// The node, when it answered.
    pub node: Option<NodeFacts>,
    /// Guests of ours that were proved gone twice in a row.
    pub lost: BTreeMap<GuestUid, Loss>,
    /// Guests of ours whose number no guest has, with those of their volumes that are still listed.
    pub orphaned: BTreeMap<GuestUid, BTreeSet<VolumeId>>,
    /// The archives of goldens that guests are to be made from, as they are now.
    pub goldens: BTreeMap<GoldenVersion, GoldenFact>,
    /// The sizes of their root disks in bytes, once their archives were looked into.
    pub golden_roots: BTreeMap<GoldenVersion, u64>,
    /// What storages of backups list, as they were last asked.
    pub listings: BTreeMap<StorageName, BackupListing>,
    /// The controllers whose bytes are stored on the host, with their sizes.
    pub controllers: BTreeMap<Sha256Hex, u64>,
    /// Those that the hub was asked for and did not give.
    pub missing_controllers: MissingControllers,
    /// The largest packet of the guests' bridge in bytes, where the kernel says it.
    pub bridge_mtu: Option<u32>,
    /// Addresses on that bridge.
    pub bridge_net: BridgeNet,
}

/// Builds of the guest agent that the hub did not give, and why.
pub type MissingControllers = BTreeMap<Sha256Hex, MissingController>;

/// Why the hub did not give a build of the guest agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingController {
    /// No release at the hub has it, or its bytes were not uploaded.
    NotAtHub,
    /// It could not be fetched or kept.
    Failed(String),
}

/// When the facts of one observation were found. What Proxmox lists cheaply is as old as its own last round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactTimes {
    /// Proxmox's last round over guests, storages and the node, as far as it can be told: names, uptimes, who runs.
    pub round: Option<Timestamp>,
    /// Guests whose power state was asked for singly, and when.
    pub power: BTreeMap<Vmid, Timestamp>,
    /// When configurations were read, of those that could be.
    pub configurations: BTreeMap<Vmid, Timestamp>,
    /// Since when each locked guest was seen with its present lock.
    pub locks: BTreeMap<Vmid, Timestamp>,
    /// When Proxmox was asked which storages can be used.
    pub storages: Option<Timestamp>,
    /// When its version was asked for.
    pub version: Option<Timestamp>,
    /// When the right to see every guest of the pool was last proved.
    pub permissions: Option<Timestamp>,
}

impl FactTimes {
    /// When it was found whether a guest runs.
    #[must_use]
    pub fn power_of(&self, vmid: Vmid) -> Option<Timestamp> {
        self.power.get(&vmid).copied().or(self.round)
    }
}

/// The loss of a guest of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How that was proved.
    pub proof: LossProof,
    /// What remains of it.
    pub remains: Vec<Remains>,
}

/// How it was proved that a guest is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossProof {
    /// The node's list of tasks shows that its number was destroyed since we made it: it exists no more.
    Destroyed,
    /// Neither it nor a volume of it is seen where both would be. Its processes may run on, or its disks elsewhere.
    Absent,
}

/// A backup of a guest that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    pub backup: BackupRecord,
    /// What its last restore test saw, if one could be run.
    pub tested: Option<TestVerdict>,
}

/// A storage of backups, by its own list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupListing {
    /// It answered. What our records name and it does not list is in the records.
    Listed {
        /// Backups that it refuses to delete.
        protected: BTreeSet<VolumeId>,
        /// What its server found when it looked through them, where one did.
        verified: BTreeMap<VolumeId, Verification>,
        /// Who removes backups there, where it is a backup server that was asked.
        pruned_by: Option<PrunedBy>,
    },
    /// It did not: its backups are neither there nor gone.
    Dark(String),
}

/// The archive of a golden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoldenFact {
    /// What its bytes hash to.
    Is(Sha256Hex),
    /// It could not be read.
    Unread(String),
}

/// Whether absence from the list means anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Our right to see every guest of the pool was proved: what is not listed is not in the pool.
    Proved,
    /// Something may be hidden; nothing is concluded from absence.
    Unproved(String),
}

/// Whether a VMID can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmidFact {
    /// No guest in the cluster has it.
    Free,
    /// A guest has it, seen by us or not.
    Taken,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedGuest {
    pub vmid: Vmid,
    /// Its name in the list.
    pub name: String,
    /// Whether it runs.
    pub run: Running,
    /// For how long, in seconds, as Proxmox reports it; 0 when it is stopped.
    pub up_s: u64,
    /// Who locks it.
    pub lock: Option<String>,
    pub detail: Detail,
}

/// A configuration, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// It was read.
    Known(Box<GuestFacts>),
    /// It could not be read.
    Unknown(String),
}

/// What of a configuration we decide by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestFacts {
    /// Whose it is.
    pub mark: Mark,
    /// Cores; none is all of the host.
    pub cores: Option<u64>,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Swap in MiB.
    pub swap_mib: u64,
    /// How much CPU time it may use.
    pub cpu: CpuFacts,
    /// Root disk in bytes, where the configuration says so.
    pub rootfs_bytes: Option<u64>,
    /// The storage of its root disk.
    pub rootfs_storage: Option<String>,
    /// Mounts by slot.
    pub mounts: BTreeMap<u16, MountFacts>,
    /// Every volume, mounted or not.
    pub volumes: BTreeSet<VolumeId>,
    /// Those of them that are not mounted.
    pub detached: BTreeSet<VolumeId>,
    /// Whether Proxmox refuses to destroy it.
    pub protection: Protection,
    /// Its host name, where it has one.
    pub name: Option<String>,
    /// Its first network, where it could be read.
    pub net: Option<NetLine>,
    /// Its name servers, with the change that waits for its next start.
    pub resolver: ResolverText,
    /// The numbers of its other networks.
    pub more_nets: BTreeSet<u16>,
    /// Whether it was turned into a template.
    pub template: Template,
    /// The address of `net0`, when it is a fixed one.
    pub address: Option<Ipv4Cidr>,
    /// The hardware addresses of all its networks.
    pub hardware: BTreeSet<HardwareAddress>,
    /// The bridges it is plugged in to.
    pub bridges: BTreeSet<String>,
    /// What Proxmox's firewall does about its addresses.
    pub filter: FilterSeen,
    /// Why no signature takes it over, if it were not ours.
    pub alien: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountFacts {
    /// The volume; none when a path of the host is mounted.
    pub volume: Option<VolumeId>,
    /// Where it is mounted.
    pub path: String,
    /// Its size in bytes, where the configuration says so.
    pub bytes: Option<u64>,
    /// Whether Proxmox takes it into the guest's backups.
    pub backup: BackupFlag,
}

/// Whether a guest was turned into a template, which cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    Yes,
    /// It was not.
    No,
}

/// Whether Proxmox refuses to destroy a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    On,
    /// It does not.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFact {
    Active {
        /// Its size in bytes.
        total: u64,
        /// In use, in bytes.
        used: u64,
        /// What can still be written, in bytes: less than the rest, where some is kept back.
        available: u64,
    },
    /// Proxmox says it is not there.
    Inactive,
    /// No answer came: neither full nor empty, neither there nor gone.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    pub version: String,
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Memory in use, in bytes.
    pub memory_used_bytes: u64,
}
