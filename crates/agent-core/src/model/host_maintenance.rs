//! The maintenance of this host, as the records keep it.
//!
//! In: what the hub announced, and what ran and was attached when it began. Out: whether the agent opens operations. It outlives
//! a restart, since a host in maintenance is restarted. Deliberately absent: when it begins and ends (`plan::host_maintenance`).

use holdfast_protocol::id::{GuestUid, TargetName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A maintenance, and the ones before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostMaintenance {
    pub since: Timestamp,
    /// Until when nothing is opened: the announced end, or the bound of this host.
    pub until: Timestamp,
    /// The end that was announced. The same announcement begins nothing twice.
    pub announced_until: Timestamp,
    /// When it was over; none while it is not known to be.
    pub ended_at: Option<Timestamp>,
    /// The guests that ran when it began.
    pub guests: Vec<RunningGuest>,
    /// The storage targets that were in order when it began.
    pub targets: Vec<TargetName>,
    /// Those of the days before, the oldest first.
    pub earlier: Vec<Span>,
}

/// A guest that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningGuest {
    pub uid: GuestUid,
    pub name: String,
}

/// A time in which nothing was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub since: Timestamp,
    pub until: Timestamp,
}

impl HostMaintenance {
    /// Whether nothing is opened at this time.
    #[must_use]
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && now < self.until
    }

    /// When it was over, or will be.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.ended_at.map_or(self.until, |ended| ended.min(self.until))
    }
}
