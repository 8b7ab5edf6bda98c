//! Explanations: which way an incident would go, and what would mute it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mute::MuteView;
use crate::condition::{ConditionCode, Severity};
use crate::id::{GuestName, ReceiverName};

/// Asks what would become of a condition. Nothing is written and nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// What would be wrong.
    pub code: ConditionCode,
    /// On which host, by name or id. Without it, on a host of which nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// With which guest of the host. Only for conditions of guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestName>,
    /// How urgent; without it as the table of conditions says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// The way of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplanationView {
    /// What would be wrong.
    pub code: ConditionCode,
    /// What it would be about, as matchers write it. Names that were not given are examples.
    pub subject: String,
    /// How urgent it is.
    pub severity: Severity,
    /// How long the condition must last before it fires, in seconds.
    pub fires_after_s: u32,
    /// How long it must be away before it is resolved, in seconds.
    pub clears_after_s: u32,
    /// The route that takes it; none where it is only in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Who hears of it.
    pub receivers: Vec<ReceiverExplanationView>,
    /// The conditions that would make it superfluous on the same host.
    pub inhibited_by: Vec<ConditionCode>,
}

/// How a receiver hears of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiverExplanationView {
    /// Which receiver.
    pub receiver: ReceiverName,
    /// After how long it lasts, in seconds, where the receiver hears of it by escalation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated_after_s: Option<u32>,
    /// The group that it would be in.
    pub group: String,
    /// How long the first notice of the group would wait, in seconds.
    pub group_wait_s: u32,
    /// The least time to the next notice, in seconds.
    pub group_interval_s: u32,
    /// After how long it would be repeated, in seconds.
    pub repeat_interval_s: u32,
    /// Why it would not be sent now, where it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire_muted: Option<MuteView>,
    /// Why its end would not be sent now, where it would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve_muted: Option<MuteView>,
    /// The quiet hours of this receiver.
    pub quiet_hours: Vec<QuietView>,
}

/// Quiet hours, as they are now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietView {
    /// The name of the rule.
    pub rule: String,
    /// The window that is open now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<QuietWindow>,
    /// The next window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<QuietWindow>,
}

/// One window of quiet hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietWindow {
    /// Its first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
}
