//! The desired document of a host, `holdfast.desired/v1`.
//!
//! The schema is closed: a field that it does not have is refused, with the JSON path. There is no field for
//! `features`, devices, hook scripts, raw `lxc.` lines or bind mounts, so no document can request them. A guest or
//! volume that a document leaves out is never destroyed; a guest that it no longer names becomes *unmanaged*.

mod checks;
mod customers;
pub mod field;
mod levels;
mod limits;
mod network;
mod overcommit;

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::checks::{UniqueNames, alarm, manifest, named_targets, policies, schedulable};
pub use self::customers::{CUSTOMER_LIMITS_MAX, CustomerLimits, CustomerTotal};
pub use self::levels::UseLevels;
pub use self::limits::{CpuLimit, GuestLimits, NOT_SETTABLE, NotSettable};
pub use self::network::{
    AddressFilter, DomainName, FirewallFlag, GuestNetwork, Mtu, NAME_SERVERS_MAX, NameServers, OwnResolver,
    Rate, Resolver, SEARCH_DOMAINS_MAX, SearchDomains,
};
pub use self::overcommit::OvercommitLevels;
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
use crate::size::{
    AlarmSeconds, BackupAgeHours, Cores, DiskGib, MemoryMib, ObserveSeconds, PollSeconds, SwapMib,
};
use crate::storage::{self, ManifestMistake, StorageRole, StorageTarget, TARGETS_MAX};
use crate::text::texts;

/// A document is at most 1 MiB: ten thousand guests of about 100 bytes would not fit a host anyway.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// Guests per host: Proxmox itself advises far fewer; the plan is linear up to here.
pub const GUESTS_MAX: usize = 10_000;

/// Volumes per guest besides its root disk.
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
    /// How often the agent polls the hub when nothing is new.
    pub poll_interval_s: PollSeconds,
    /// How often the agent observes its host when nothing is new; 10 where it is left out, which is how often Proxmox
    /// itself looks at its guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe_interval_s: Option<ObserveSeconds>,
    /// After how long a silence the hub raises an alarm, at least three polls; three polls and 45 s where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm_after_s: Option<AlarmSeconds>,
    /// From how much use on there is a condition: of the host, and of each guest that does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<UseLevels>,
    /// From how much promised to guests on the host counts as over-committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overcommit: Option<OvercommitLevels>,
    /// What all guests of a customer may have on this host. A document that gives them more is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1_000))]
    pub customer_limits: Vec<CustomerLimits>,
    /// Backup policies that guests can be under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub policies: Vec<BackupPolicy>,
    /// The disks, shares and backup servers it should use. Leaving a target out does not detach it.
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
    /// A VMID, where one is requested; otherwise the agent picks a free one of its range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// Whether it should run.
    pub run: RunState,
    /// The golden image it is made from.
    pub golden: GoldenVersion,
    /// CPU, memory, root disk.
    pub size: GuestSize,
    /// How much CPU time it may use; what is left out stays as it is on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GuestLimits>,
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
    /// Its controller is exchanged only while there is a backup of it that is at most so old; where there is none, one is
    /// taken first. Without this, no backup is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_before_exchange_h: Option<BackupAgeHours>,
    /// When it may be upgraded and restarted; without it the defaults of [`Maintenance`] hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    /// From how much of its use on there is a condition; what is left out is as the document has it for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<UseLevels>,
    /// Its volumes besides the root disk.
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
    /// It should be stopped.
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

/// A volume besides the root disk.
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
        alarm(&document)?;
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
        customers::check(&document)?;
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

/// What must be unique in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unique {
    /// A guest's address.
    Address,
    /// A customer's limits.
    Customer,
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
    /// An alarm that would be raised while nothing is wrong.
    #[error("alarm_after_s is {alarm_s} and poll_interval_s {poll_s}: an alarm waits for three polls at least, {} s here", poll_s * 3)]
    HastyAlarm {
        /// The alarm's.
        alarm_s: u32,
        /// The poll's.
        poll_s: u32,
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
    /// Guests of a customer that have more than its limit.
    #[error("{0}")]
    CustomerTotal(Box<CustomerTotal>),
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
                Unique::Customer | Unique::Name | Unique::Policy => ErrorCode::DuplicateName,
                Unique::Target => ErrorCode::DuplicateTarget,
                Unique::Vmid => ErrorCode::DuplicateVmid,
                Unique::Volume => ErrorCode::DuplicateVolume,
            },
            Self::UnknownPolicy { .. } => ErrorCode::PolicyUnknown,
            Self::CustomerTotal(_) => ErrorCode::CustomerLimit,
            Self::TooMany { .. }
            | Self::HastyAlarm { .. }
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
            Self::HastyAlarm { .. } => Some("alarm_after_s"),
            Self::CustomerTotal(total) => Some(&total.path),
            Self::TooMany { .. } | Self::Unwritable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
