//! Groups: what one receiver was sent of the incidents of one host.
//!
//! The group is the log of what was sent, so it decides what is news. A store keeps one row for each.

use std::collections::BTreeMap;

use holdfast_protocol::condition::Severity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::group_key::GroupKey;
use crate::suppression::Suppression;

/// What the receiver was sent of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum Sent {
    /// Nothing.
    Nothing {},
    /// Nothing, but it was known when the receiver came into the rules: it hears of it with the next repeat.
    Inherited {},
    /// That it fires.
    Firing {
        /// As how urgent.
        severity: Severity,
    },
}

/// How an incident came into a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// By its route.
    Route,
    /// Because it lasted.
    Escalation,
}

/// An incident in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// How it came here.
    pub entry: Entry,
    /// What was sent of it.
    pub sent: Sent,
    /// The flapping that was sent of it, by its beginning.
    pub flapping_sent: Option<Timestamp>,
    /// Why news of it are not sent now.
    pub muted: Option<Suppression>,
}

impl Member {
    /// Of which nothing was sent.
    #[must_use]
    pub const fn new(entry: Entry) -> Self {
        Self { entry, sent: Sent::Nothing {}, flapping_sent: None, muted: None }
    }
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Which.
    pub key: GroupKey,
    /// Since when.
    pub opened: Timestamp,
    /// When a notice was last sent.
    pub sent_at: Option<Timestamp>,
    /// From when the next repeat is counted.
    pub repeat_from: Timestamp,
    /// The incidents, by their numbers.
    pub members: BTreeMap<u64, Member>,
}

impl Group {
    /// An empty one.
    #[must_use]
    pub const fn new(key: GroupKey, now: Timestamp) -> Self {
        Self { key, opened: now, sent_at: None, repeat_from: now, members: BTreeMap::new() }
    }
}
