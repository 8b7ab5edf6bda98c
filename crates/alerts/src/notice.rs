//! Notices: what a receiver is sent, as data for any channel.

use std::fmt;

use holdfast_protocol::condition::{ConditionCode, ConditionText, Severity, Subject};
use holdfast_protocol::id::{HostName, OperatorName, ReceiverName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use crate::group_key::GroupKey;
use crate::incident::{Incident, IncidentId, Scope};
use crate::label::Labels;

/// Why a notice is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The first of its group.
    First,
    /// More incidents fire, or one got worse.
    NewInGroup,
    /// Some incidents are over, others still fire.
    SomeResolved,
    /// All incidents are over.
    AllResolved,
    /// Nothing changed for long.
    Repeat,
    /// An incident lasts, and no operator acknowledged it.
    Escalation,
    /// What was held in quiet hours.
    Digest,
    /// An incident comes and goes.
    Flapping,
    /// An operator tries the channel.
    Test,
}

impl Reason {
    /// As written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::NewInGroup => "new_in_group",
            Self::SomeResolved => "some_resolved",
            Self::AllResolved => "all_resolved",
            Self::Repeat => "repeat",
            Self::Escalation => "escalation",
            Self::Digest => "digest",
            Self::Flapping => "flapping",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The key by which an outbox and a receiver know a notice again. No other notice ever has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DedupeKey(String);

impl DedupeKey {
    /// Of the notice with this number in its scope.
    #[must_use]
    pub fn of(scope: Scope, receiver: &ReceiverName, reason: Reason, number: u64) -> Self {
        Self(format!("{scope}/{receiver}/{reason}/{number}"))
    }

    /// Of a chunk of a digest that begins with this notice. A digest of digests counts its generation, so that keys stay
    /// short.
    #[must_use]
    pub fn of_digest(first: &Self, chunk: usize) -> Self {
        let earlier = first.0.strip_prefix("digest/").and_then(|rest| rest.rsplit_once('/'));
        let (base, generation) = match earlier {
            Some((base, number)) => (
                base,
                number.split_once('-').and_then(|(generation, _)| generation.parse().ok()).unwrap_or(0),
            ),
            None => (first.as_str(), 0_u64),
        };
        Self(format!("digest/{base}/{}-{chunk}", generation.saturating_add(1)))
    }

    /// As a store kept it.
    #[must_use]
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// As text, at most 150 bytes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a notice comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from", deny_unknown_fields)]
pub enum Origin {
    /// One group of one scope.
    Group {
        /// The scope.
        scope: Scope,
        /// The group.
        key: Box<GroupKey>,
    },
    /// Several notices that were combined.
    Combined {
        /// How many.
        parts: u32,
    },
    /// An operator who tries the channel.
    Test {},
}

/// What a notice says of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum IncidentNews {
    /// It fires, and the receiver did not know.
    New {},
    /// It fires as the receiver knows, and is worse than that, or flaps.
    Changed {},
    /// It still fires.
    Ongoing {},
    /// It is over.
    Resolved {
        /// Since when.
        at: Timestamp,
    },
}

impl IncidentNews {
    /// Whether it is over.
    #[must_use]
    pub const fn is_resolved(self) -> bool {
        match self {
            Self::New {} | Self::Changed {} | Self::Ongoing {} => false,
            Self::Resolved { .. } => true,
        }
    }
}

/// An incident, with all that a renderer needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoticeIncident {
    /// Its id.
    pub id: IncidentId,
    /// What the notice says of it.
    pub news: IncidentNews,
    /// What is wrong.
    pub code: ConditionCode,
    /// With what.
    pub subject: Subject,
    /// On which host.
    pub host: Option<HostName>,
    /// What the hub knows of the subject.
    pub labels: Labels,
    /// How urgent it is.
    pub severity: Severity,
    /// Since when.
    pub since: Timestamp,
    /// What is wrong, for operators.
    pub message: ConditionText,
    /// What to do.
    pub remedy: ConditionText,
    /// Since when nothing newer is known.
    pub stale_since: Option<Timestamp>,
    /// Since when it flaps.
    pub flapping_since: Option<Timestamp>,
    /// Who acknowledged it.
    pub acknowledged_by: Option<OperatorName>,
    /// Why it was closed, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

impl NoticeIncident {
    /// What is said of an incident.
    #[must_use]
    pub fn of(incident: &Incident, news: IncidentNews, host: Option<&HostName>) -> Self {
        Self {
            id: incident.id,
            news,
            code: incident.code,
            subject: incident.subject.clone(),
            host: host.cloned(),
            labels: incident.labels.clone(),
            severity: incident.severity,
            since: incident.since,
            message: incident.message.clone(),
            remedy: incident.remedy.clone(),
            stale_since: incident.stale_since,
            flapping_since: incident.flapping,
            acknowledged_by: incident.ack.as_ref().map(|ack| ack.by.clone()),
            ending: incident.ending.clone(),
        }
    }

    /// Whether it fires, as the notice says.
    #[must_use]
    pub const fn is_firing(&self) -> bool {
        !self.news.is_resolved()
    }
}

/// One notice. Every incident that it is about is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// By which it is known again.
    pub key: DedupeKey,
    /// Who hears of it.
    pub receiver: ReceiverName,
    /// Why.
    pub reason: Reason,
    /// Where it comes from.
    pub origin: Origin,
    /// The incidents, the firing ones first, each in the order of its id.
    pub incidents: Vec<NoticeIncident>,
    /// When it was made.
    pub made_at: Timestamp,
    /// It is not sent earlier.
    pub not_before: Timestamp,
}

impl Notice {
    /// The most urgent severity of what still fires; of all, where nothing does.
    #[must_use]
    pub fn severity(&self) -> Severity {
        let firing = self.incidents.iter().filter(|incident| incident.is_firing());
        let of_all = || self.incidents.iter().map(|incident| incident.severity).max();
        firing.map(|incident| incident.severity).max().or_else(of_all).unwrap_or(Severity::Info)
    }
}
