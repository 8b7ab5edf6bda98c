//! Incidents: conditions on their way from pending over firing to resolved.
//!
//! ```text
//!           grace over                away for long enough
//! pending ─────────────► firing ─────────────────────────────► resolved ──an hour──► dropped
//!    │                     ▲                                      │
//!    └─away: dropped       └── came back before it was sent ──────┤
//!                pending ◄───────────── came back after ──────────┘
//! ```
//! One that is closed ([`Ending`]) is resolved at once where it fires, and dropped where it is pending.
//! A store keeps one row for each. All times are the hub's, except `since`.

use std::fmt;
use std::str::FromStr;

use holdfast_protocol::condition::{ConditionCode, ConditionText, ReportedCondition, Severity, Subject};
use holdfast_protocol::id::{HostId, HostName, OperatorName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use crate::label::{Labelled, Labels};

/// What one set of rows belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One host with its guests.
    Host(HostId),
    /// The hub itself.
    Hub,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => host.fmt(f),
            Self::Hub => f.write_str("hub"),
        }
    }
}

/// The id of an incident, the same over fire, repeat and resolve. As text it has letters, digits and `-` alone, at most
/// 57 of them: channels take no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncidentId {
    /// Where.
    pub scope: Scope,
    /// Counted within the scope, from 1; never used again.
    pub number: u64,
}

impl fmt::Display for IncidentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.scope, self.number)
    }
}

/// Not the id of an incident.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of an incident: write hub-NUMBER or HOST-ID-NUMBER")]
pub struct IncidentIdError(String);

impl FromStr for IncidentId {
    type Err = IncidentIdError;
    fn from_str(text: &str) -> Result<Self, IncidentIdError> {
        let parsed = text.rsplit_once('-').and_then(|(scope, number)| {
            let scope = if scope == "hub" { Scope::Hub } else { Scope::Host(scope.parse().ok()?) };
            let id = Self { scope, number: number.parse().ok()? };
            // One spelling each.
            (id.to_string() == text).then_some(id)
        });
        parsed.ok_or_else(|| IncidentIdError(text.chars().take(64).collect()))
    }
}

/// Who observes a condition. What one source does not report any more is over for this source alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent of the host.
    Agent,
    /// The hub, by what it keeps of the host or of itself.
    Hub,
    /// The hub, by the silence of the host.
    Liveness,
}

/// How far an incident is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum Phase {
    /// The condition holds, for less than its grace.
    Pending {
        /// Since when.
        since: Timestamp,
    },
    /// Receivers hear of it.
    Firing {
        /// Since when.
        since: Timestamp,
    },
    /// It is over.
    Resolved {
        /// When it fired.
        fired: Timestamp,
        /// When it was over.
        at: Timestamp,
    },
}

/// An operator knows of an incident: no more repeats and no escalation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// Who.
    pub by: OperatorName,
    /// When.
    pub at: Timestamp,
    /// Until when; without it until the incident is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// One incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// Its id.
    pub id: IncidentId,
    /// Who observes the condition.
    pub source: Source,
    /// What is wrong.
    pub code: ConditionCode,
    /// With what.
    pub subject: Subject,
    /// How urgent it is.
    pub severity: Severity,
    /// What is wrong, for operators.
    pub message: ConditionText,
    /// What to do.
    pub remedy: ConditionText,
    /// What the hub knows of the subject.
    pub labels: Labels,
    /// Since when, by the reporter's clock.
    pub since: Timestamp,
    /// How far it is.
    pub phase: Phase,
    /// Since when the condition is away, while the incident is not over yet.
    pub absent_since: Option<Timestamp>,
    /// In which of the last reports the condition was, the newest in the lowest bit.
    pub reports: u32,
    /// When it last came or went, within an hour, the oldest first.
    pub flips: Vec<Timestamp>,
    /// Since when it flaps.
    pub flapping: Option<Timestamp>,
    /// Since when nothing newer is known.
    pub stale_since: Option<Timestamp>,
    /// Who acknowledged it.
    pub ack: Option<Ack>,
    /// When it was escalated.
    pub escalated: Option<Timestamp>,
    /// The severity that it was routed with, once it was.
    pub routed: Option<Severity>,
    /// Why it was closed, where it was: its condition may still hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

impl Incident {
    /// One that begins, by the first report of its condition.
    #[must_use]
    pub fn pending(
        id: IncidentId,
        source: Source,
        (condition, labels): (ReportedCondition, Labels),
        now: Timestamp,
    ) -> Self {
        let ReportedCondition { code, subject, since, severity, message, remedy } = condition;
        Self {
            id,
            source,
            code,
            subject,
            severity,
            message,
            remedy,
            labels,
            since: since.min(now),
            phase: Phase::Pending { since: now },
            absent_since: None,
            reports: 1,
            flips: Vec::new(),
            flapping: None,
            stale_since: None,
            ack: None,
            escalated: None,
            routed: None,
            ending: None,
        }
    }

    /// Whether the condition holds, as far as is known.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        match self.phase {
            Phase::Pending { .. } | Phase::Firing { .. } => true,
            Phase::Resolved { .. } => false,
        }
    }

    /// Since when it fires.
    #[must_use]
    pub const fn firing_since(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Firing { since } => Some(since),
            Phase::Pending { .. } | Phase::Resolved { .. } => None,
        }
    }

    /// What matchers see of it.
    #[must_use]
    pub const fn labelled<'a>(&'a self, host: Option<&'a HostName>) -> Labelled<'a> {
        Labelled {
            code: self.code,
            severity: self.severity,
            subject: &self.subject,
            labels: &self.labels,
            host,
        }
    }
}
