//! The desired document of a host, `holdfast.desired/v1`.
//!
//! The schema is closed: what is not in it is refused, with the JSON path. There is no field here for `features`,
//! devices, hook scripts, raw `lxc.` lines or bind mounts, so no document can ask for them. What a document leaves out
//! is never destroyed; a guest that it no longer names becomes *unmanaged*.

pub mod field;
mod network;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::network::{
    AddressFilter, DomainName, FirewallFlag, GuestNetwork, Mtu, NAME_SERVERS_MAX, NameServers, OwnResolver,
    Rate, Resolver, SEARCH_DOMAINS_MAX, SearchDomains,
};
use crate::code::ErrorCode;
use crate::generation::{ContentHash, Generation, Numbered};
use crate::id::{
    CustomerId, GoldenVersion, GuestName, GuestUid, MountPath, PolicyName, StorageName, TargetName, Vmid,
    VolumeName,
};
use crate::job::act::{ReleaseVersion, Sha256Text};
use crate::json::{self, JsonError};
use crate::maintenance::Maintenance;
use crate::protection::BackupPolicy;
use crate::protection::policy::POLICIES_MAX;
use crate::size::{Cores, DiskGib, MemoryMib, PollSeconds, SwapMib};
use crate::storage::{self, ManifestMistake, StorageRole, StorageTarget, TARGETS_MAX};
use crate::text::texts;

/// A document is at most 1 MiB: ten thousand guests of about 100 bytes would not fit a box anyway.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// Guests per host: Proxmox itself advises far fewer; the plan is linear up to here.
pub const GUESTS_MAX: usize = 10_000;

/// Volumes per guest beside its root disk.
pub const VOLUMES_MAX: usize = 16;

/// The version of the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DesiredSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.desired/v1")]
    V1,
}

/// The document as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredDocument {
    /// The version of the document.
    pub schema: DesiredSchema,
    /// Its number; see [`crate::generation`].
    pub generation: Generation,
    /// How often the agent asks the hub, and looks at its host, when nothing is new.
    pub poll_interval_s: PollSeconds,
    /// Backup policies that guests can be under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub policies: Vec<BackupPolicy>,
    /// The disks, shares and backup servers it should use. What is left out is not let go by that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub storage: Vec<StorageTarget>,
    /// The guests this host should carry.
    #[schemars(length(max = 10_000))]
    pub guests: Vec<DesiredGuest>,
}

/// One guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredGuest {
    /// Our identity for it, made once by the operator's side, never reused.
    pub uid: GuestUid,
    /// Its name, also its host name.
    pub name: GuestName,
    /// Who it belongs to.
    pub customer: CustomerId,
    /// A VMID, where one is asked for; otherwise the agent picks a free one of its range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// Whether it should run.
    pub run: RunState,
    /// The golden image it is made from.
    pub golden: GoldenVersion,
    /// CPU, memory, root disk.
    pub size: GuestSize,
    /// The target with role `primary` on which its root disk is made; without one the default of that role, else the storage
    /// that root named in the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<TargetName>,
    /// Its place on a bridge.
    pub network: GuestNetwork,
    /// The backup policy it is under, where it is under one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// The controller it should run; without one it keeps the one it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<DesiredController>,
    /// When it may be upgraded and restarted; without it the defaults of [`Maintenance`] hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    /// Its volumes beside the root disk.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub volumes: Vec<DesiredVolume>,
}

/// A build of the controller in a guest. It runs when an operator's signature approved exactly these bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredController {
    /// Its version.
    pub version: ReleaseVersion,
    /// What its bytes hash to.
    pub sha256: Sha256Text,
}

/// Whether a guest should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It should run.
    Running,
    /// It should stand still.
    Stopped,
}

/// CPU, memory, root disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestSize {
    /// CPU cores.
    pub cores: Cores,
    /// Memory in MiB.
    pub memory_mib: MemoryMib,
    /// Swap in MiB.
    pub swap_mib: SwapMib,
    /// Root disk in GiB. It only grows.
    pub rootfs_gib: DiskGib,
}

/// A volume beside the root disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredVolume {
    /// What the document calls it.
    pub name: VolumeName,
    /// Where the guest sees it.
    pub mount: MountPath,
    /// Its size in GiB. It only grows.
    pub size_gib: DiskGib,
    /// Hot or bulk.
    pub kind: VolumeKind,
    /// The target on which it is made, with role `primary` for a hot one and `bulk-data` for a bulk one; without one as with
    /// root disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<TargetName>,
}

/// Hot volumes live on fast storage and in every backup of the guest; bulk ones do neither, so each says what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// On fast storage, backed up with the guest.
    Hot,
    /// On slow storage, with the decision that this demands.
    Bulk(BulkBackup),
}

impl VolumeKind {
    /// What a target is for on which such a volume is made.
    #[must_use]
    pub const fn role(&self) -> StorageRole {
        match self {
            Self::Hot => StorageRole::Primary,
            Self::Bulk(_) => StorageRole::BulkData,
        }
    }
}

/// What becomes of a bulk volume's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkBackup {
    /// In the backups of the guest that go to this target, and in no others: a tier of its policy must go there.
    BackupTo(StorageName),
    /// Not backed up, and why.
    None(Reason),
}

texts! {
    /// A sentence of 3 to 200 printable characters.
    Reason, 3..=200, "a reason is a sentence of 3 to 200 characters without control characters",
        |text| !text.chars().any(char::is_control);
}

/// A document that passed every check that needs no knowledge of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    document: DesiredDocument,
    content: ContentHash,
}

impl Desired {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// [`DesiredError`]; nothing of a refused document is used.
    pub fn parse(bytes: &[u8]) -> Result<Self, DesiredError> {
        Self::check(json::parse("the desired document", bytes, DOCUMENT_BYTES_MAX)?)
    }

    /// Checks a document that was read already.
    ///
    /// # Errors
    /// [`DesiredError`].
    pub fn check(document: DesiredDocument) -> Result<Self, DesiredError> {
        if document.guests.len() > GUESTS_MAX {
            return Err(DesiredError::TooMany {
                what: "guests",
                count: document.guests.len(),
                max: GUESTS_MAX,
            });
        }
        let policies = policies(&document.policies)?;
        manifest(&document.storage)?;
        schedulable(&document.policies, &document.storage)?;
        let mut seen = UniqueNames::default();
        for (index, guest) in document.guests.iter().enumerate() {
            seen.guest(index, guest)?;
            named_targets(index, guest, &document.storage)?;
            if let Some(rule) = guest.maintenance.as_ref().and_then(Maintenance::mistake) {
                return Err(DesiredError::Windows {
                    path: format!("guests[{index}].maintenance.windows"),
                    rule,
                });
            }
            if let Some(policy) = guest.policy.as_ref().filter(|policy| !policies.contains(policy)) {
                return Err(DesiredError::UnknownPolicy {
                    path: format!("guests[{index}].policy"),
                    policy: policy.clone(),
                });
            }
        }
        let bytes = serde_json::to_vec(&document).map_err(DesiredError::Unwritable)?;
        Ok(Self { content: ContentHash::of(&bytes), document })
    }

    /// The document.
    #[must_use]
    pub const fn document(&self) -> &DesiredDocument {
        &self.document
    }

    /// Its number and content, for the rules of generations. Two documents are equal when they say the same, however
    /// they were spaced.
    #[must_use]
    pub const fn numbered(&self) -> Numbered {
        Numbered { generation: self.document.generation, content: self.content }
    }

    /// The backup policies.
    #[must_use]
    pub fn policies(&self) -> &[BackupPolicy] {
        &self.document.policies
    }

    /// The storage manifest.
    #[must_use]
    pub fn storage(&self) -> &[StorageTarget] {
        &self.document.storage
    }

    /// The guests.
    #[must_use]
    pub fn guests(&self) -> &[DesiredGuest] {
        &self.document.guests
    }
}

/// The names of the policies, each of which protects something.
fn policies(policies: &[BackupPolicy]) -> Result<BTreeSet<&PolicyName>, DesiredError> {
    if policies.len() > POLICIES_MAX {
        let (what, count, max) = ("backup policies", policies.len(), POLICIES_MAX);
        return Err(DesiredError::TooMany { what, count, max });
    }
    let mut names = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        if !names.insert(&policy.name) {
            let (path, value) = (format!("policies[{index}].name"), policy.name.to_string());
            return Err(DesiredError::Twice { path, what: Unique::Policy, value });
        }
        if policy.tiers.is_empty() {
            return Err(DesiredError::EmptyPolicy { path: format!("policies[{index}].tiers") });
        }
    }
    Ok(names)
}

/// Targets of which each is one place of its own, and fit for what it is for.
fn manifest(targets: &[StorageTarget]) -> Result<(), DesiredError> {
    if targets.len() > TARGETS_MAX {
        let (what, count, max) = ("storage targets", targets.len(), TARGETS_MAX);
        return Err(DesiredError::TooMany { what, count, max });
    }
    match storage::mistake(targets) {
        None => Ok(()),
        Some((at, ManifestMistake::Twice(field, value))) => {
            Err(DesiredError::Twice { path: format!("storage[{at}].{field}"), what: Unique::Target, value })
        }
        Some((at, ManifestMistake::Unfit(field, rule))) => {
            Err(DesiredError::UnfitTarget { path: format!("storage[{at}].{field}"), rule })
        }
    }
}

/// No policy takes backups to a target that is not schedulable. What is in force on a host stays until it is signed away.
fn schedulable(policies: &[BackupPolicy], manifest: &[StorageTarget]) -> Result<(), DesiredError> {
    for (index, policy) in policies.iter().enumerate() {
        let local = policy.tiers.local.as_ref().map(|tier| ("local.target", &tier.target));
        let off_site =
            policy.tiers.off_site.as_ref().map(|tier| ("off_site.backup.target", &tier.backup.target));
        for (field, target) in local.into_iter().chain(off_site) {
            let shut = |one: &StorageTarget| one.name.as_str() == target.as_str() && !one.schedulable;
            if manifest.iter().any(shut) {
                let path = format!("policies[{index}].tiers.{field}");
                return Err(DesiredError::UnfitTarget {
                    path,
                    rule: "the manifest says that this target is not schedulable",
                });
            }
        }
    }
    Ok(())
}

/// The targets that a guest names for its disks are in the manifest, for that use.
fn named_targets(index: usize, guest: &DesiredGuest, manifest: &[StorageTarget]) -> Result<(), DesiredError> {
    let fits = |name: &TargetName, role: StorageRole| {
        manifest.iter().any(|target| target.name == *name && target.role == role)
    };
    let volumes = guest.volumes.iter().enumerate().map(|(at, volume)| {
        (format!("guests[{index}].volumes[{at}].storage"), volume.storage.as_ref(), volume.kind.role())
    });
    let root = (format!("guests[{index}].storage"), guest.storage.as_ref(), StorageRole::Primary);
    for (path, name, role) in std::iter::once(root).chain(volumes) {
        if name.is_some_and(|name| !fits(name, role)) {
            let rule = match role {
                StorageRole::BulkData => "the manifest has no target of that name with role bulk-data",
                StorageRole::Primary | StorageRole::LocalBackup | StorageRole::OffsiteBackup => {
                    "the manifest has no target of that name with role primary"
                }
            };
            return Err(DesiredError::UnfitTarget { path, rule });
        }
    }
    Ok(())
}

#[derive(Default)]
struct UniqueNames<'a> {
    uids: BTreeSet<GuestUid>,
    names: BTreeSet<&'a GuestName>,
    vmids: BTreeSet<Vmid>,
    addresses: BTreeSet<Ipv4Addr>,
}

impl<'a> UniqueNames<'a> {
    fn guest(&mut self, index: usize, guest: &'a DesiredGuest) -> Result<(), DesiredError> {
        let twice = |field: &str, what, value: String| DesiredError::Twice {
            path: format!("guests[{index}].{field}"),
            what,
            value,
        };
        if !self.uids.insert(guest.uid) {
            return Err(twice("uid", Unique::Guest, guest.uid.to_string()));
        }
        if !self.names.insert(&guest.name) {
            return Err(twice("name", Unique::Name, guest.name.to_string()));
        }
        if let Some(vmid) = guest.vmid.filter(|vmid| !self.vmids.insert(*vmid)) {
            return Err(twice("vmid", Unique::Vmid, vmid.to_string()));
        }
        let address = guest.network.address.address();
        if !self.addresses.insert(address) {
            return Err(twice("network.address", Unique::Address, address.to_string()));
        }
        if let Some(gateway) =
            guest.network.gateway.filter(|gateway| !guest.network.address.reaches(*gateway))
        {
            return Err(DesiredError::Unreachable {
                path: format!("guests[{index}].network.gateway"),
                gateway,
            });
        }
        volumes(index, guest)
    }
}

fn volumes(index: usize, guest: &DesiredGuest) -> Result<(), DesiredError> {
    if guest.volumes.len() > VOLUMES_MAX {
        return Err(DesiredError::TooMany {
            what: "volumes of one guest",
            count: guest.volumes.len(),
            max: VOLUMES_MAX,
        });
    }
    let (mut names, mut mounts) = (BTreeSet::new(), BTreeSet::new());
    for (at, volume) in guest.volumes.iter().enumerate() {
        let path = |field| format!("guests[{index}].volumes[{at}].{field}");
        if !names.insert(&volume.name) {
            let value = volume.name.to_string();
            return Err(DesiredError::Twice { path: path("name"), what: Unique::Volume, value });
        }
        if !mounts.insert(&volume.mount) {
            let value = volume.mount.to_string();
            return Err(DesiredError::Twice { path: path("mount"), what: Unique::Volume, value });
        }
    }
    Ok(())
}

/// What must be unique in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unique {
    /// A guest's address.
    Address,
    /// A guest's uid.
    Guest,
    /// A guest's name.
    Name,
    /// A backup policy's name.
    Policy,
    /// A storage target's name or place.
    Target,
    /// A guest's VMID.
    Vmid,
    /// A volume's name or mount path.
    Volume,
}

/// Why a desired document is refused.
#[derive(Debug, thiserror::Error)]
pub enum DesiredError {
    /// Not a document of this schema.
    #[error(transparent)]
    Form(#[from] JsonError),
    /// Two of what must be unique.
    #[error("{value} is there twice, the second time at {path}: change one of them in the document")]
    Twice {
        /// The JSON path of the second.
        path: String,
        /// What of it.
        what: Unique,
        /// The value.
        value: String,
    },
    /// More of something than a document may name.
    #[error("{count} {what} are named; at most {max} are accepted")]
    TooMany {
        /// What.
        what: &'static str,
        /// How many.
        count: usize,
        /// The bound.
        max: usize,
    },
    /// A gateway outside the guest's network.
    #[error(
        "the gateway {gateway} at {path} is not in the guest's network: correct the address or its prefix"
    )]
    Unreachable {
        /// The JSON path.
        path: String,
        /// The gateway.
        gateway: Ipv4Addr,
    },
    /// A policy that is not there.
    #[error("{path} names {policy}, which is none of the document's policies: add it, or correct the name")]
    UnknownPolicy {
        /// The JSON path.
        path: String,
        /// The name.
        policy: PolicyName,
    },
    /// A policy without a tier.
    #[error("{path} has no tier, and would protect nothing: give it one, or leave the policy out")]
    EmptyPolicy {
        /// The JSON path.
        path: String,
    },
    /// A storage target whose parts do not go together, or that is not for what it is named for.
    #[error("{path} does not fit: {rule}")]
    UnfitTarget {
        /// The JSON path.
        path: String,
        /// What does.
        rule: &'static str,
    },
    /// Maintenance windows in which nothing could be done.
    #[error("{path}: {rule}")]
    Windows {
        /// The JSON path.
        path: String,
        /// The rule.
        rule: &'static str,
    },
    /// Cannot happen for a document that was read; kept as an error all the same.
    #[error("the document cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl DesiredError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Form(error) => error.code(),
            Self::Twice { what, .. } => match what {
                Unique::Address => ErrorCode::DuplicateAddress,
                Unique::Guest => ErrorCode::DuplicateGuest,
                Unique::Name | Unique::Policy => ErrorCode::DuplicateName,
                Unique::Target => ErrorCode::DuplicateTarget,
                Unique::Vmid => ErrorCode::DuplicateVmid,
                Unique::Volume => ErrorCode::DuplicateVolume,
            },
            Self::UnknownPolicy { .. } => ErrorCode::PolicyUnknown,
            Self::TooMany { .. }
            | Self::Unreachable { .. }
            | Self::EmptyPolicy { .. }
            | Self::Windows { .. }
            | Self::UnfitTarget { .. } => ErrorCode::Range,
            Self::Unwritable(_) => ErrorCode::Internal,
        }
    }

    /// The JSON path of the mistake, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Form(error) => error.path(),
            Self::Twice { path, .. }
            | Self::Unreachable { path, .. }
            | Self::UnknownPolicy { path, .. }
            | Self::EmptyPolicy { path }
            | Self::Windows { path, .. }
            | Self::UnfitTarget { path, .. } => Some(path),
            Self::TooMany { .. } | Self::Unwritable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
