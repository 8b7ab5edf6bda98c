//! Incidents: what is wrong, and what operators and receivers know of it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::AlertId;
use super::log::LogView;
use super::mute::MuteView;
use crate::condition::{ConditionCode, ConditionText, Severity};
use crate::id::{CustomerId, GuestName, HostName, OperatorName, ReceiverName};
use crate::operator::Page;

/// Which incidents are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IncidentSelection {
    /// Those that fire.
    #[default]
    Firing,
    /// Those in their grace too, and those that were resolved within the hour.
    All,
}

/// How far an incident is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IncidentPhase {
    /// Its condition holds for less than its grace: no receiver hears of it.
    Pending,
    /// Receivers hear of it.
    Firing,
    /// It is over.
    Resolved,
}

/// One incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncidentView {
    /// Its id.
    pub id: AlertId,
    /// Its host; none for the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// What it is about, as matchers write it: `guest:UID`, `storage_target:usb-1`.
    pub subject: String,
    /// The guest's name, where it concerns one that the hub knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestName>,
    /// Who the guest belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// What is wrong.
    pub code: ConditionCode,
    /// How urgent it is.
    pub severity: Severity,
    /// How far it is.
    pub phase: IncidentPhase,
    /// Since when it is in this phase, by the hub's clock.
    pub phase_since: Timestamp,
    /// Since when the condition holds, by its reporter's clock.
    pub since: Timestamp,
    /// What is wrong, in words.
    pub message: ConditionText,
    /// What to do.
    pub remedy: ConditionText,
    /// Who knows of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<AcknowledgementView>,
    /// Since when nothing newer is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<Timestamp>,
    /// Since when it comes and goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flapping_since: Option<Timestamp>,
}

/// An operator knows of an incident: it is not repeated, and not escalated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgementView {
    /// Who.
    pub by: OperatorName,
    /// Since when.
    pub at: Timestamp,
    /// Until when; without it until the incident is over or gets worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Acknowledges an incident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeRequest {
    /// Until when; without it until the incident is over or gets worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// One incident, who hears of it, and its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncidentDetail {
    /// The incident.
    pub incident: IncidentView,
    /// The receivers that it was routed to; none where no route took it, or it never fired.
    pub receivers: Vec<IncidentReceiver>,
    /// Its log, the newest first. `next` is a cursor of `GET /v1/alerts/log` with the same `alert`.
    pub log: Page<LogView>,
}

/// What a receiver knows of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncidentReceiver {
    /// Which receiver.
    pub receiver: ReceiverName,
    /// What was put into the outbox for it.
    pub sent: LastSent,
    /// Why news of the incident are not sent to it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted: Option<MuteView>,
}

/// What was put into the outbox for a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LastSent {
    /// Nothing.
    Nothing,
    /// Nothing: the receiver is new in the rules, and hears of it with the next repeat.
    WithNextRepeat,
    /// That it fires.
    Firing,
}
