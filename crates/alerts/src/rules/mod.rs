//! What operators configure, with defaults that need no configuration.
//!
//! [`Rules`] is what is written; [`Ruleset`] is what was checked, together with the channels that exist. Only a
//! [`Ruleset`] reaches the reducer.

mod check;
mod ruleset;

use holdfast_protocol::condition::{ConditionCode, Severity};
use holdfast_protocol::id::{CustomerId, ReceiverName};
use serde::{Deserialize, Serialize};

pub use check::{RulesError, RulesFault};
pub use ruleset::{Pace, RouteTaken, Ruleset};

use crate::label::Matcher;
use crate::name::RuleName;
use crate::quiet::QuietHours;

/// The rules, as they are written. All times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// How long the first notice of a group waits for more incidents.
    pub group_wait_s: u32,
    /// The least time between two notices of a group.
    pub group_interval_s: u32,
    /// After how long a notice is repeated while nothing changes.
    pub repeat_interval_s: u32,
    /// What a group has in common, besides its host.
    pub group_by: Vec<GroupLabel>,
    /// How long a condition must be away before its incident is resolved.
    pub clear_after_s: u32,
    /// When an incident flaps.
    pub flap: Flap,
    /// Other times for some incidents; the first that matches counts.
    pub grace: Vec<GraceRule>,
    /// Routes; the first that matches counts, and after it those that follow one with `continue`.
    pub route: Vec<Route>,
    /// Where incidents go that no route takes.
    pub default_route: DefaultRoute,
    /// Times in which notices are held.
    pub quiet_hours: Vec<QuietHours>,
    /// Inhibitions, besides those of the table of conditions.
    pub inhibit: Vec<InhibitRule>,
    /// Settings of receivers.
    pub receiver: Vec<ReceiverRule>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            group_wait_s: 30,
            group_interval_s: 300,
            repeat_interval_s: 4 * 3_600,
            group_by: vec![GroupLabel::Cause],
            clear_after_s: 120,
            flap: Flap::default(),
            grace: Vec::new(),
            route: Vec::new(),
            default_route: DefaultRoute::default(),
            quiet_hours: Vec::new(),
            inhibit: Vec::new(),
            receiver: Vec::new(),
        }
    }
}

/// What the incidents of a group can have in common. The host is always common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupLabel {
    /// The cause.
    Cause,
    /// The code.
    Code,
    /// The customer.
    Customer,
    /// The subject: each incident is alone.
    Subject,
}

/// When an incident flaps, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Flap {
    /// In how many of the last reports a condition must be before it fires.
    pub fire_reports: u32,
    /// How many reports that looks back at.
    pub of_reports: u32,
    /// More comings and goings than this within an hour are flapping.
    pub flips_per_hour: u32,
    /// How long a flapping condition must be away before its incident is resolved.
    pub hold_open_s: u32,
}

impl Default for Flap {
    fn default() -> Self {
        Self { fire_reports: 1, of_reports: 1, flips_per_hour: 6, hold_open_s: 1_800 }
    }
}

/// Other times for some incidents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraceRule {
    /// All must match.
    pub matchers: Vec<Matcher>,
    /// How long a condition must last before it fires; without it the table's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire_after_s: Option<u32>,
    /// How long it must be away before it is resolved; without it the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear_after_s: Option<u32>,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Its name.
    pub name: RuleName,
    /// All must match.
    #[serde(default)]
    pub matchers: Vec<Matcher>,
    /// It takes incidents from this severity on.
    #[serde(default = "info")]
    pub severity: Severity,
    /// Where they go; to no receiver, where it is empty.
    pub receivers: Vec<ReceiverName>,
    /// Its own time for the first notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_wait_s: Option<u32>,
    /// Its own least time between notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_interval_s: Option<u32>,
    /// Its own time of repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_interval_s: Option<u32>,
    /// Who hears of what lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Escalation>,
    /// Whether the routes after it may take an incident as well.
    #[serde(default, rename = "continue")]
    pub goes_on: bool,
}

const fn info() -> Severity {
    Severity::Info
}

/// Where incidents go that no route takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultRoute {
    /// It takes incidents from this severity on. Others are only in the log.
    pub severity: Severity,
    /// Where they go; to every channel that is no customer's, where it is empty.
    pub receivers: Vec<ReceiverName>,
    /// Who hears of what lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Escalation>,
}

impl Default for DefaultRoute {
    fn default() -> Self {
        Self { severity: Severity::Warning, receivers: Vec::new(), escalate: None }
    }
}

/// Who hears of an incident that lasts and that no operator has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escalation {
    /// After how long.
    pub after_s: u32,
    /// Which receivers.
    pub receivers: Vec<ReceiverName>,
}

/// While the source is active on a host, the targets of this host are muted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InhibitRule {
    /// What makes the others superfluous.
    pub source: ConditionCode,
    /// What it mutes.
    pub targets: Vec<ConditionCode>,
}

/// Settings of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverRule {
    /// Which.
    pub name: ReceiverName,
    /// Whether it hears when an incident is over.
    #[serde(default = "sent")]
    pub send_resolved: bool,
    /// The customer that it belongs to. It hears of this customer's guests alone, by whichever route, and of hosts
    /// that have no guest of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
}

const fn sent() -> bool {
    true
}
