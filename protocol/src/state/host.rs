//! One host in a snapshot of state.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::StateCondition;
use super::guest::StateGuest;
use crate::code::ErrorCode;
use crate::desired::{Reason, UseLevels};
use crate::generation::Generation;
use crate::id::{HostId, HostName, OperatorName, TargetName};
use crate::operator::HostState;
use crate::protection::BackupPolicy;
use crate::report::{FactAges, StorageState};
use crate::size::{AlarmSeconds, ObserveSeconds, PollSeconds};
use crate::storage::report::TargetStatus;
use crate::storage::{Backend, Label, StorageClass, StorageRole, TargetState};

/// One host, with its guests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateHost {
    /// Its id.
    pub id: HostId,
    /// Its name.
    pub name: HostName,
    /// Whether it is heard of.
    pub state: HostState,
    /// Its labels, each as `key=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Until when maintenance of it is announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_until: Option<Timestamp>,
    /// The newest document that was put for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<DesiredState>,
    /// The generation that it holds; 0 is none.
    pub held: Generation,
    /// Why it would not take the last document, where it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<ErrorCode>,
    /// Versions of what runs on it.
    pub versions: HostVersions,
    /// The storages of Proxmox that its agent uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storages: Vec<StateStorage>,
    /// Its storage targets, as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<StateTarget>,
    /// What is wrong with the host itself, or with what is not one guest's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StateCondition>,
    /// Conditions that its report had no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conditions_left_out: u32,
    /// What waits for an operator's signature, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Its guests, by uid; those that are not ours after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<StateGuest>,
    /// When that was so.
    pub observed: HostObserved,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The newest document of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredState {
    /// Its generation.
    pub generation: Generation,
    /// SHA-256 of its content, in hex. Left out where only a part of it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Who put it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<OperatorName>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// When it was put, by the hub's clock.
    pub put_at: Timestamp,
    /// What it says besides its guests; none where this hub cannot read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<DesiredSettings>,
}

/// What a document says besides its guests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredSettings {
    /// How often the agent polls.
    pub poll_interval_s: PollSeconds,
    /// How often the agent observes its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe_interval_s: Option<ObserveSeconds>,
    /// After how long a silence there is an alarm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm_after_s: Option<AlarmSeconds>,
    /// From how much use on there is a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<UseLevels>,
    /// Backup policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<BackupPolicy>,
    /// Storage targets, without their credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<DesiredTarget>,
}

/// A storage target of a document. It has no place for credentials, not even sealed ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesiredTarget {
    /// Its name.
    pub name: TargetName,
    /// What it is.
    pub backend: Backend,
    /// How fast it is.
    pub class: StorageClass,
    /// What it is for.
    pub role: StorageRole,
    /// Whether it should be used.
    pub state: TargetState,
    /// The text on its sticker.
    pub label: Label,
    /// Whether it is used where no target of its role is named.
    pub default: bool,
    /// Whether backups may be scheduled to it.
    pub schedulable: bool,
    /// Whether the document has sealed credentials for it.
    pub credentials: bool,
}

/// Versions of what runs on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostVersions {
    /// Of its agent, once reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of Proxmox VE, once reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxmox: Option<String>,
}

/// A storage of Proxmox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateStorage {
    /// Its name.
    pub name: String,
    /// Whether it answers.
    pub state: StorageState,
}

/// A storage target, as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTarget {
    /// Its name.
    pub name: TargetName,
    /// What it is for.
    pub role: StorageRole,
    /// How it is.
    pub status: TargetStatus,
}

/// When a host was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostObserved {
    /// When it was last heard of, by the hub's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// How old its facts could be then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ages: Option<FactAges>,
    /// Since when its agent cannot see Proxmox, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unobserved_since: Option<Timestamp>,
    /// When its agent started, by the host's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_started_at: Option<Timestamp>,
}
