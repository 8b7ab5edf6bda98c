//! Signals: what comes into the reducer.

use holdfast_protocol::condition::ReportedCondition;
use holdfast_protocol::id::{GuestUid, OperatorName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::incident::Source;
use crate::label::Labels;
use crate::silence::SilenceId;

/// How a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// It was enrolled, and never reported in its time.
    NeverSeen,
    /// It reports in time.
    Online,
    /// It reports in time, and that something is wrong.
    Degraded,
    /// It is overdue.
    Late,
    /// It is overdue so long that an operator must act.
    Offline,
}

/// A condition with what the hub knows of its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCondition {
    /// The condition.
    pub condition: ReportedCondition,
    /// What the hub knows of it.
    pub labels: Labels,
}

/// Whether a set holds every condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// What is not in it is over.
    Complete,
    /// Some were left out: what is not in it is unknown.
    Partial,
}

/// A time in which a host is worked on. Nothing is sent of it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maintenance {
    /// From when on.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Who announced it.
    pub by: OperatorName,
}

/// What happened, in one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// All conditions that a source observes now. After a host was silent, it is given again even when it did not
    /// change: until then its incidents stay stale.
    Conditions {
        /// Who observes them.
        source: Source,
        /// The conditions, each once.
        conditions: Vec<ObservedCondition>,
        /// Whether these are all.
        completeness: Completeness,
    },
    /// A source could not observe: its incidents stay as they are.
    Unknown {
        /// Which source.
        source: Source,
        /// Since when.
        since: Timestamp,
    },
    /// A host is in a state. Repeating the same state changes nothing.
    Host {
        /// Which.
        state: HostState,
        /// Since when.
        since: Timestamp,
    },
    /// Time went by. Due at the time that the last decision named.
    Tick,
    /// An operator acknowledged an incident.
    Acknowledge {
        /// Its number.
        incident: u64,
        /// Who.
        by: OperatorName,
        /// Until when; without it until the incident is resolved.
        until: Option<Timestamp>,
    },
    /// An operator took an acknowledgement back.
    Unacknowledge {
        /// Of which incident.
        incident: u64,
        /// Who.
        by: OperatorName,
    },
    /// A silence that may concern this scope was added.
    SilenceAdded(SilenceId),
    /// A silence ended, by its time or by an operator.
    SilenceEnded(SilenceId),
    /// All maintenance windows of the host that are not over.
    Maintenance(Vec<Maintenance>),
    /// A guest was deleted as an operator wanted: its incidents are over.
    GuestDeleted {
        /// Which guest.
        uid: GuestUid,
        /// Which operator gave the job to the hub.
        by: Option<OperatorName>,
    },
    /// The host was revoked: all its incidents are over. The caller gives no signal of the host after this one.
    HostRevoked {
        /// By which operator.
        by: OperatorName,
    },
    /// The rules are others now. Nothing is sent for that.
    RulesChanged,
}
