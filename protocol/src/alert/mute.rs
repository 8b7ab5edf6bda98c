//! Mutes: silences, maintenance, and the other reasons for which nothing is sent.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::ConditionText;
use crate::id::{HostName, OperatorName};
use crate::text::texts;

texts! {
    /// A comparison of a label, `label=value` or `label!=value`. The labels are code, severity, cause, kind, subject, host,
    /// guest, customer and policy.
    MatcherText, 1..=220, "a matcher is 1 to 220 characters without control characters, such as host=pve1",
        |text| !text.chars().any(char::is_control);
}

/// The number of a silence; the hub counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SilenceNumber(u64);

impl SilenceNumber {
    /// Takes a number that the hub counted.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SilenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SilenceNumber {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, &'static str> {
        text.parse().map(Self).map_err(|_| "a silence is named by its number, such as 3")
    }
}

/// Requests a silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceRequest {
    /// All must match; at least one with a value, so that not everything is muted.
    #[schemars(length(min = 1, max = 16))]
    pub matchers: Vec<MatcherText>,
    /// When it ends, at most 90 days from now.
    pub until: Timestamp,
    /// Why.
    pub comment: ConditionText,
}

/// A silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceView {
    /// Its number.
    pub id: SilenceNumber,
    /// All must match.
    pub matchers: Vec<MatcherText>,
    /// From when on.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Who added it.
    pub by: OperatorName,
    /// Why.
    pub comment: ConditionText,
}

/// Announces that a host is worked on: nothing is sent of it meanwhile, and its agent opens no operation of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    /// When it ends, at most 90 days from now.
    pub until: Timestamp,
    /// Why, for the log of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ConditionText>,
}

/// The maintenance of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceView {
    /// The host.
    pub host: HostName,
    /// The windows that are not over. The host is in maintenance until the last of them ends.
    pub windows: Vec<MaintenanceWindow>,
}

/// A time in which a host is worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceWindow {
    /// From when on.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Who announced it.
    pub by: OperatorName,
}

/// Why something is not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteView {
    /// For programs.
    pub reason: MuteReason,
    /// In words.
    pub text: String,
    /// When it ends by itself, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The reasons for which something is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MuteReason {
    /// An operator acknowledged it.
    Acknowledged,
    /// It comes and goes, and is held open.
    Flapping,
    /// It waits for the next notice of its group.
    Grouped,
    /// Another condition makes it superfluous.
    Inhibited,
    /// The host is worked on.
    Maintenance,
    /// The receiver never heard that it fired.
    NeverSent,
    /// The receiver is a customer's, and it is not about this customer alone.
    OtherCustomer,
    /// It is about this receiver itself.
    OwnFailure,
    /// Quiet hours hold it.
    QuietHours,
    /// The receiver is not in the settings any more.
    ReceiverRemoved,
    /// The receiver does not want to hear when an incident is over.
    ResolvedUnwanted,
    /// An operator silenced it.
    Silenced,
    /// No route takes it.
    Unrouted,
}
