//! The report of a host, `holdfast.report/v1`, in sections.
//!
//! A report carries the sections that changed since the acknowledged one, or all of them when the hub asks. A section
//! that is left out means *as before*, never *empty*.

mod address_filter;
mod age;
mod assigned;
mod builds;
mod field;
mod golden;
mod hardware;
mod limits;
mod lock;
mod tunnel;
mod updates;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::address_filter::{AddressFilterFinding, AddressFilterState, address_filter_findings};
pub use self::age::FactAges;
pub use self::assigned::{AssignedPart, AssignedShare, HostAssigned, STORAGES_ASSIGNED_MAX, StorageAssigned};
pub use self::builds::{AgentBuilds, FailedRelease, RefusedRelease};
pub use self::field::{AppliedValue, FieldState, InForce};
pub use self::golden::{GoldenReport, ImageBuild, ImageOrigin, ImageStatus};
pub use self::hardware::{
    DISKS_MAX, DiskFault, DiskHealth, DiskReading, DiskReport, HardwareName, HardwareSection, Heat,
    MemoryErrors, SENSORS_MAX, SensorReport, Temperature,
};
pub use self::limits::LimitsReport;
pub use self::lock::LockReport;
pub use self::tunnel::{
    ConnectionReport, ProbeReport, ProbeResult, RestartOutcome, RestartReport, TUNNELS_MAX, TokenReport,
    TunnelReport, TunnelState, TunnelText, UnitActivity, UnitReport,
};
pub use self::updates::{
    PACKAGES_MAX, PackageOrigin, PackageText, PendingPackage, PendingPackages, RESTART_PACKAGES_MAX,
    RestartReason, UpdatesSection, UpgradeKind,
};

use crate::code::ErrorCode;
use crate::condition::ConditionSet;
use crate::desired::{GuestSize, RunState, UseLevels};
use crate::envelope::ErrorBody;
use crate::generation::Generation;
use crate::host_maintenance::HostMaintenanceReport;
use crate::id::{CustomerId, GoldenVersion, GuestUid, NodeName, Vmid};
use crate::job::{HostEpoch, JobReport};
use crate::net::Ipv4Cidr;
use crate::operation::OperationView;
use crate::protection::ProtectionReport;
use crate::root_disk::RootDiskData;
use crate::storage::HostRecipient;
use crate::storage::report::TargetReport;
use crate::work_order::WorkOrderReport;

/// A report is at most 1 MiB.
pub const REPORT_BYTES_MAX: usize = 1024 * 1024;

/// The version of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReportSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.report/v1")]
    V1,
}

/// The sections of a report. `None` means unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sections {
    /// The agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSection>,
    /// The host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSection>,
    /// What the agent holds of the desired document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<DesiredSection>,
    /// The guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guests: Option<Vec<GuestReport>>,
    /// Open operations and the most recent ended ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<OperationView>>,
    /// What waits for an operator's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Vec<WaitingForSignature>>,
    /// Whose signatures this host accepts, and how far its audit is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustSection>,
    /// What became of signed jobs: those that wait out their delay or are under way, and the last ones that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<JobReport>>,
    /// The status of each target of the storage manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Vec<TargetReport>>,
    /// What is wrong, as the agent finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<ConditionSet>,
    /// Disks, temperatures and memory errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareSection>,
    /// Pending upgrades and a due restart of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<UpdatesSection>,
    /// What became of work orders: those that are open, and the last ones that ended. Left out where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<WorkOrderReport>>,
}

impl Sections {
    /// Whether nothing changed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.agent.is_none()
            && self.host.is_none()
            && self.desired.is_none()
            && self.guests.is_none()
            && self.operations.is_none()
            && self.waiting.is_none()
            && self.trust.is_none()
            && self.jobs.is_none()
            && self.storage.is_none()
            && self.conditions.is_none()
            && self.hardware.is_none()
            && self.updates.is_none()
            && self.orders.is_none()
    }

    /// What of `self` differs from `before`.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Self {
        fn changed<T: Clone + PartialEq>(now: &Option<T>, before: &Option<T>) -> Option<T> {
            if now == before { None } else { now.clone() }
        }
        Self {
            agent: changed(&self.agent, &before.agent),
            host: changed(&self.host, &before.host),
            desired: changed(&self.desired, &before.desired),
            guests: changed(&self.guests, &before.guests),
            operations: changed(&self.operations, &before.operations),
            waiting: changed(&self.waiting, &before.waiting),
            trust: changed(&self.trust, &before.trust),
            jobs: changed(&self.jobs, &before.jobs),
            storage: changed(&self.storage, &before.storage),
            conditions: changed(&self.conditions, &before.conditions),
            hardware: changed(&self.hardware, &before.hardware),
            updates: changed(&self.updates, &before.updates),
            orders: changed(&self.orders, &before.orders),
        }
    }

    /// Lays the changed sections over the earlier ones.
    pub fn apply(&mut self, changed: Self) {
        fn lay<T>(over: &mut Option<T>, changed: Option<T>) {
            if changed.is_some() {
                *over = changed;
            }
        }
        lay(&mut self.agent, changed.agent);
        lay(&mut self.host, changed.host);
        lay(&mut self.desired, changed.desired);
        lay(&mut self.guests, changed.guests);
        lay(&mut self.operations, changed.operations);
        lay(&mut self.waiting, changed.waiting);
        lay(&mut self.trust, changed.trust);
        lay(&mut self.jobs, changed.jobs);
        lay(&mut self.storage, changed.storage);
        lay(&mut self.conditions, changed.conditions);
        lay(&mut self.hardware, changed.hardware);
        lay(&mut self.updates, changed.updates);
        lay(&mut self.orders, changed.orders);
    }
}

/// The agent itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSection {
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// The problems that keep it from its work, in words; empty when it is well.
    pub problems: Vec<ErrorBody>,
    /// Since when it could not read Proxmox's state, where that is longer than two polls. Sizes and addresses are as
    /// old; whether a guest runs is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unobserved_since: Option<Timestamp>,
    /// The key to which secrets for this host are sealed. The hub passes it on and could show another: compare it with
    /// what `agentd storage key` prints on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<HostRecipient>,
    /// Its builds that came by releases; none where only the package brought one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builds: Option<AgentBuilds>,
    /// The maintenance of the host, while it lasts and until all came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<HostMaintenanceReport>,
    /// The tunnels that root's settings name; at most [`TUNNELS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<TunnelReport>,
}

/// The host, as Proxmox reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSection {
    /// The node.
    pub node: NodeName,
    /// How old what is reported can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ages: Option<FactAges>,
    /// Proxmox's version, such as `9.2.11`.
    pub proxmox_version: String,
    /// CPU threads.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Memory in use, in bytes, rounded to 64 MiB so that noise is no change.
    pub memory_used_bytes: u64,
    /// The storages the agent uses.
    pub storages: Vec<StorageReport>,
    /// What guests were given of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned: Option<HostAssigned>,
    /// The golden images on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goldens: Vec<GoldenReport>,
}

/// One storage. Unknown is a value: a storage that does not answer is neither full nor empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageReport {
    /// Its name in Proxmox.
    pub name: String,
    /// Whether it answers.
    pub state: StorageState,
    /// Its size in bytes, when it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// In use, in bytes, rounded to 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

/// Whether a storage answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageState {
    /// It answers.
    Active,
    /// Proxmox says it is not there.
    Inactive,
    /// It did not answer in time.
    Unknown,
}

/// What the agent holds of the desired document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredSection {
    /// The generation in use.
    pub held: Generation,
    /// SHA-256 of its content, in hex.
    pub content: String,
    /// Why the last offered document was refused, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedDocument>,
}

/// A document the agent would not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedDocument {
    /// Its generation, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// Why.
    pub problem: ErrorBody,
}

/// One guest, as the agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuestReport {
    /// Our identity for it; none for a guest that is not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<GuestUid>,
    /// Its name.
    pub name: String,
    /// Whose it is, where it is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// Its VMID, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmid: Option<Vmid>,
    /// VMIDs that it had before: older backups of it are stored under these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_vmids: Vec<Vmid>,
    /// Its relation to Holdfast.
    pub status: GuestStatus,
    /// Whether it runs.
    pub run: Running,
    /// Since when that is unknown, because the agent could not observe the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<Timestamp>,
    /// When it was found whether it runs, where that is older than the host's bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_of: Option<Timestamp>,
    /// When its configuration was read, where that is older than the host's bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_as_of: Option<Timestamp>,
    /// Proxmox's lock on it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockReport>,
    /// Whether it should, where the document names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<RunState>,
    /// Its size, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<GuestSize>,
    /// Its limits of CPU time and network, where it has any and they could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsReport>,
    /// Its address, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Cidr>,
    /// Whether Proxmox's firewall is set to hold it to its addresses, where it is ours and that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_filter: Option<AddressFilterState>,
    /// From how much of its use on there is a condition, where a document says anything of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<UseLevels>,
    /// Its volumes as Proxmox names them, where it is ours and they could be read: what an operator signs for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The golden image that it was made from, or will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden: Option<GoldenVersion>,
    /// When that image was built, where the image's manifest is on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden_built_at: Option<Timestamp>,
    /// Data on its root disk outside of volumes, as its controller found it; none where it reported nothing of it. It
    /// stays behind when the guest is put on a newer image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_disk_data: Option<RootDiskData>,
    /// Its controller, once that said hello.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerReport>,
    /// How its data is protected, where any protection is in force or requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Box<ProtectionReport>>,
    /// What a person should know, each with its code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Fields whose values in the document, in Proxmox and as last carried out differ. The host itself shows all of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldState>,
}

/// The relation of a guest to Holdfast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuestStatus {
    /// Ours, named by the document, and as it should be or on the way there.
    Managed,
    /// Ours, but the document no longer names it: it runs on, and waits for a signed decommission.
    Unmanaged,
    /// Named by the document, not there yet.
    Absent,
    /// Ours by the records, but it cannot be seen. Unknown does not mean deleted.
    Missing,
    /// Not ours, or no longer provably ours: never changed.
    Foreign,
    /// It would not stay up; left for a person.
    Broken,
    /// An operation on it was parked; left for a person.
    Parked,
    /// A copy of a guest of ours, restored from a backup: never started by us, and left for a person.
    RestoredCopy,
}

/// Whether a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Running {
    /// It runs.
    Running,
    /// It is stopped.
    Stopped,
    /// It is unknown.
    Unknown,
}

/// What is known of a guest's controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerReport {
    /// Its version.
    pub version: String,
    /// When it last said hello.
    pub hello_at: Timestamp,
    /// How it said it was.
    pub health: Health,
    /// That it has not said hello in time, where its guest runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<SilenceReport>,
}

/// A guest agent that is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceReport {
    /// How long.
    pub is: SilenceKind,
    /// Its last hello.
    pub since: Timestamp,
}

/// How long a guest agent was not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SilenceKind {
    /// Two hellos are missed.
    Late,
    /// Three are missed.
    Silent,
}

/// How a controller says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// All is up.
    Well,
    /// Still coming up.
    Starting,
    /// Something is not up.
    Unwell,
}

/// One thing a person should know about a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

/// A request that is held until an operator signs for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitingForSignature {
    /// The guest it concerns, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestUid>,
    /// What would happen, in words.
    pub effect: String,
    /// Why it needs a signature.
    pub reason: String,
    /// What an operator would sign, as JSON text: a [`crate::job::Draft`]. Empty where no signature helps; the reason
    /// says then what does.
    pub payload: String,
    /// When the guest's newest backup was taken, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<Timestamp>,
    /// When a backup of it was last proved by restoring it, where that was ever done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_proof: Option<Timestamp>,
}

/// Whose signatures a host accepts. Hashes are SHA-256 in hex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustSection {
    /// Which life of its state this is; jobs are signed for one.
    pub epoch: HostEpoch,
    /// The operators file, where one was laid down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators: Option<String>,
    /// The policy, where one was laid down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policy's version; 0 is the built-in one.
    pub policy_version: u32,
    /// The last line of the audit.
    pub audit: AuditHead,
}

/// The end of an audit chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditHead {
    /// How many lines there are.
    pub number: u64,
    /// The hash of the last one; empty when there is none.
    pub chain: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_sections_laid_over_the_old_give_the_new() {
        let mut before =
            Sections { guests: Some(Vec::new()), waiting: Some(Vec::new()), ..Sections::default() };
        let now = Sections {
            waiting: Some(vec![WaitingForSignature {
                guest: None,
                effect: "attach".to_owned(),
                reason: "new".to_owned(),
                payload: "{}".to_owned(),
                last_backup: None,
                last_proof: None,
            }]),
            ..before.clone()
        };
        let changed = now.changed_since(&before);
        assert!(changed.guests.is_none() && changed.waiting.is_some());
        before.apply(changed);
        assert_eq!(before, now);
        assert!(now.changed_since(&before).is_empty());
    }
}
