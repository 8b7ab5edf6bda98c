//! Rollouts: a release offered to hosts in waves.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `POST /v1/rollouts` | [`RolloutRequest`] | [`RolloutView`], planned |
//! | `GET /v1/rollouts` | | page of [`RolloutView`], newest first |
//! | `GET /v1/rollouts/{number}` | | [`RolloutView`] |
//! | `POST /v1/rollouts/{number}/start`, `pause`, `take-back`, `resume`, `abort` | | [`RolloutView`] |

use std::num::NonZeroU32;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VersionNumber;
use super::window::{Blackouts, UpdateWindows};
use crate::host_label::LabelSelector;
use crate::id::{HostName, OperatorName};

/// More waves than a fleet needs.
pub const WAVES_MAX: usize = 32;

/// More hosts than a hub serves.
pub const ROLLOUT_HOSTS_MAX: usize = 2_000;

/// The longest soak or time-out of a wave: thirty days.
pub const WAVE_SECONDS_MAX: u32 = 30 * 24 * 3_600;

/// A request for a rollout. Nothing is offered before it is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutRequest {
    /// The version of a release at the hub.
    pub version: VersionNumber,
    /// What it brings.
    #[serde(default, skip_serializing_if = "RolloutSubject::is_agent")]
    pub subject: RolloutSubject,
    /// Its waves, in order.
    pub waves: Vec<WaveRequest>,
    /// When it offers the release. Without them at any time, and to all of a wave at once.
    #[serde(default, skip_serializing_if = "RolloutTimes::is_any_time")]
    pub times: RolloutTimes,
    /// What happens when more hosts fail than may.
    #[serde(default, skip_serializing_if = "OnFailure::is_hold")]
    pub on_failure: OnFailure,
}

/// What a rollout brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutSubject {
    /// The agent of the hosts: they are offered the release.
    #[default]
    Agent,
    /// The guest agent in the guests of the hosts: the hub asks for it in the hosts' documents.
    GuestAgent,
    /// A golden image: the hosts are offered it, and have it in their folder of images then. No guest is touched.
    Golden,
}

impl RolloutSubject {
    /// Whether it is the agent of the hosts.
    #[must_use]
    pub const fn is_agent(&self) -> bool {
        matches!(self, Self::Agent)
    }
}

/// What the hub does when more hosts fail than may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It offers nothing any more.
    #[default]
    Hold,
    /// It offers this release to the hosts that were offered the other one. Hosts take no older number, so it is a release
    /// of the older programs under a newer one.
    RollBack(VersionNumber),
}

impl OnFailure {
    /// Whether nothing is offered then.
    #[must_use]
    pub const fn is_hold(&self) -> bool {
        matches!(self, Self::Hold)
    }
}

/// When a rollout offers its release. A host may have windows of its own; both must allow a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutTimes {
    /// Only in these; without any at each time.
    #[serde(default, skip_serializing_if = "UpdateWindows::is_empty")]
    pub windows: UpdateWindows,
    /// Not on these dates.
    #[serde(default, skip_serializing_if = "Blackouts::is_empty")]
    pub not: Blackouts,
    /// To how many hosts it is newly offered in an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<NonZeroU32>,
}

impl RolloutTimes {
    /// Whether they allow each time, and all of a wave at once.
    #[must_use]
    pub const fn is_any_time(&self) -> bool {
        self.windows.is_empty() && self.not.is_empty() && self.per_hour.is_none()
    }
}

/// One wave of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaveRequest {
    /// Its hosts.
    pub hosts: WaveHosts,
    /// How many of them may fail before the rollout is held.
    pub max_failures: u32,
    /// How long the wave is watched after its last host.
    pub soak_s: u32,
    /// After so long a host that has not taken the release counts as failed.
    pub timeout_s: u32,
}

/// The hosts of a wave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaveHosts {
    /// These.
    Named(Vec<HostName>),
    /// Those with all of these labels that no wave names, and that no wave before selects.
    Labelled(LabelSelector),
    /// So many of those that no wave names or selects, in the order of names.
    Count(u32),
    /// All that are left.
    Rest,
}

/// Where a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutState {
    /// Nothing is offered yet.
    Planned,
    /// The hosts of the open wave, and of those before it, are offered the release.
    Running,
    /// An operator stopped it; nothing is offered.
    Paused,
    /// The hub stopped it; nothing is offered.
    Held,
    /// The hub stopped it, and offers another release to the hosts that were offered this one.
    RollingBack,
    /// An operator ended it; nothing is offered.
    Aborted,
    /// All waves have passed. Hosts that were off are still offered the release.
    Finished,
}

/// Where a host of a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RolloutHostState {
    /// It has not taken the release, or is silent.
    Waiting,
    /// It runs the release, or a newer one.
    Done,
    /// It failed.
    Failed,
    /// It failed, and an operator went on without it.
    Accepted,
    /// It was offered the release, and had not taken it when the offer ended.
    Withdrawn,
    /// It runs the release to go back to.
    Back,
    /// It was revoked.
    Gone,
}

/// What a host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Its wave is not open.
    Wave,
    /// No window of the rollout is open.
    RolloutWindow,
    /// None of its own windows is open.
    HostWindow,
    /// It is a date on which the rollout offers nothing.
    Blackout,
    /// Others are newly offered the release first.
    Rate,
    /// It is offered the release, and has not taken it.
    Host,
    /// It is offered the release to go back to, and has not taken it.
    Back,
}

/// What a host waits for, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostWait {
    /// What for.
    pub why: WaitReason,
    /// When that ends, as far as it is known: its wave at the earliest, the next allowed time, its turn. Of a host that is
    /// offered the release, when it counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A host of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutHostView {
    /// Its name.
    pub host: HostName,
    /// Where it is.
    pub state: RolloutHostState,
    /// Why it failed, also where that was before what it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was first offered the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_at: Option<Timestamp>,
    /// What it waits for, while the rollout goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<HostWait>,
}

/// A wave of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaveView {
    /// Its hosts. They stay, whatever labels and names hosts get later.
    pub hosts: Vec<RolloutHostView>,
    /// What selected them when the rollout was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selects: Option<WaveHosts>,
    /// How many of them may fail.
    pub max_failures: u32,
    /// How long it is watched after its last host.
    pub soak_s: u32,
    /// After so long a host that has not taken the release counts as failed.
    pub timeout_s: u32,
}

/// The wave that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenWaveView {
    /// Which one, from 1.
    pub number: u32,
    /// Since when.
    pub opened_at: Timestamp,
    /// Since when none of its hosts is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Timestamp>,
}

/// A rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolloutView {
    /// Its number.
    pub number: u32,
    /// The version of the release.
    pub version: VersionNumber,
    /// What it brings.
    #[serde(default, skip_serializing_if = "RolloutSubject::is_agent")]
    pub subject: RolloutSubject,
    /// Where it is.
    pub state: RolloutState,
    /// Why it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who planned it.
    pub by: OperatorName,
    /// When.
    pub at: Timestamp,
    /// When it offers the release.
    #[serde(default, skip_serializing_if = "RolloutTimes::is_any_time")]
    pub times: RolloutTimes,
    /// What happens when more hosts fail than may.
    #[serde(default, skip_serializing_if = "OnFailure::is_hold")]
    pub on_failure: OnFailure,
    /// The wave that is open, or was last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenWaveView>,
    /// When the wave after it opens at the earliest, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_wave_at: Option<Timestamp>,
    /// Its waves, in order.
    pub waves: Vec<WaveView>,
}
