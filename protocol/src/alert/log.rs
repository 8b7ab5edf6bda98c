//! The log of alerts: what happened, and what was not sent.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::AlertId;
use super::mute::MuteView;
use crate::id::{HostName, ReceiverName};

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogView {
    /// Counts all entries of the hub.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// On which host; none for the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// Of which incident, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert: Option<AlertId>,
    /// What happened.
    pub kind: LogKindView,
    /// To which receiver, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverName>,
    /// Why it was not sent, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted: Option<MuteView>,
    /// The same in one sentence.
    pub text: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKindView {
    /// A condition came, and its grace runs.
    Opened,
    /// The grace is over.
    Fired,
    /// It came back after it was over.
    Reopened,
    /// It went within its grace.
    Withdrawn,
    /// It is over.
    Resolved,
    /// It comes and goes.
    FlappingBegan,
    /// It does not come and go any more.
    FlappingEnded,
    /// Nothing newer is known of it.
    Stale,
    /// It is known again.
    Fresh,
    /// It is more or less urgent than before.
    SeverityChanged,
    /// An operator acknowledged it.
    Acknowledged,
    /// An operator took the acknowledgement back.
    Unacknowledged,
    /// The acknowledgement ended by its time.
    AckExpired,
    /// The acknowledgement ended, because the incident got worse.
    AckOutgrown,
    /// A request had no effect on it.
    UnknownIncident,
    /// More receivers hear of it, because it lasts.
    Escalated,
    /// It is not sent to a receiver, or to none.
    Suppressed,
    /// It is in a notice that was put into the outbox.
    Queued,
    /// It was closed: its guest was deleted, or its host was revoked.
    Closed,
    /// The host changed its state.
    HostChanged,
    /// Some conditions have no incident, because the host has too many.
    Overflow,
    /// A silence began.
    SilenceAdded,
    /// A silence ended.
    SilenceEnded,
    /// The maintenance windows of the host changed.
    MaintenanceChanged,
}
