//! Log entries: what happened to incidents, and what was not sent.

use holdfast_protocol::condition::Severity;
use holdfast_protocol::id::{OperatorName, ReceiverName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use crate::notice::{DedupeKey, Reason};
use crate::signal::HostState;
use crate::silence::SilenceId;
use crate::suppression::Suppression;

/// One entry. The scope is the one that the signal was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// When.
    pub at: Timestamp,
    /// The incident's number, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<u64>,
    /// What happened.
    pub what: LogKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum LogKind {
    /// A condition came, and its grace runs.
    Opened {},
    /// The grace is over.
    Fired {},
    /// It came back after it was over.
    Reopened {},
    /// It went within its grace.
    Withdrawn {},
    /// It is over.
    Resolved {},
    /// It comes and goes.
    FlappingBegan {
        /// How often within an hour.
        flips: u32,
    },
    /// It does not come and go any more.
    FlappingEnded {},
    /// Nothing newer is known of it.
    Stale {
        /// Since when.
        since: Timestamp,
    },
    /// It is known again.
    Fresh {},
    /// It is more or less urgent than before.
    SeverityChanged {
        /// As before.
        from: Severity,
        /// As now.
        to: Severity,
    },
    /// An operator acknowledged it.
    Acknowledged {
        /// Who.
        by: OperatorName,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// An operator took the acknowledgement back.
    Unacknowledged {
        /// Who.
        by: OperatorName,
    },
    /// The acknowledgement ended by its time.
    AckExpired {},
    /// The acknowledgement ended, because it got worse.
    AckOutgrown {},
    /// A request named an incident that is over, or none.
    UnknownIncident {},
    /// More receivers hear of it, because it lasts.
    Escalated {
        /// Which.
        to: Vec<ReceiverName>,
    },
    /// It is not sent to a receiver, or to none.
    Suppressed {
        /// To which receiver.
        receiver: Option<ReceiverName>,
        /// Why.
        why: Suppression,
    },
    /// It is in a notice that was put into the outbox.
    Queued {
        /// For which receiver.
        receiver: ReceiverName,
        /// Which notice.
        notice: DedupeKey,
        /// Why it is sent.
        reason: Reason,
    },
    /// Its guest was deleted, or its host was revoked: it is over.
    Closed {
        /// Why; not kept in entries of earlier hubs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Ending>,
    },
    /// A host changed its state.
    HostChanged {
        /// From which.
        from: Option<HostState>,
        /// To which.
        to: HostState,
    },
    /// The host has as many incidents as are kept; some conditions have none.
    Overflow {
        /// How many conditions.
        conditions: u32,
    },
    /// A silence began for this host.
    SilenceAdded {
        /// Which.
        id: SilenceId,
    },
    /// A silence ended for this host.
    SilenceEnded {
        /// Which.
        id: SilenceId,
    },
    /// The maintenance windows of the host changed.
    MaintenanceChanged {
        /// How many there are.
        windows: u32,
    },
}
