//! The lines of a snapshot of state.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host::StateHost;
use crate::filter::GuestFilter;
use crate::id::CustomerId;
use crate::job::act::Sha256Text;

/// The version of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StateSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.state/v1")]
    V1,
}

/// One line: first the head, then each host by name, last the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum StateLine {
    /// What this is.
    Head(StateHead),
    /// One host.
    Host(Box<StateHost>),
    /// How many there were, and the digests. A document without it was cut off.
    Tail(StateTail),
}

/// What a document is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateHead {
    /// The version.
    pub schema: StateSchema,
    /// When it was begun, by the hub's clock. Each host is of one moment, and not all hosts of the same one.
    pub taken_at: Timestamp,
    /// The hub's version.
    pub hub_version: String,
    /// Which part of the hub's state it is.
    pub scope: StateScope,
}

/// Which hosts and guests are in a snapshot; all, where nothing is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateScope {
    /// Only the guests of this customer, and of their hosts only what concerns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    /// Only these guests, and of their hosts only what concerns them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<GuestFilter>,
}

impl StateScope {
    /// Whether it leaves anything out.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.customer.is_none() && self.filter.is_none()
    }
}

/// The end of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTail {
    /// How many hosts there are.
    pub hosts: u32,
    /// How many guests there are.
    pub guests: u32,
    /// SHA-256 of what is so: see [`super::content`].
    pub content: Sha256Text,
    /// SHA-256 of all bytes before this line.
    pub document: Sha256Text,
}
