//! Snapshots of state that the hub keeps.

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::act::Sha256Text;

/// A snapshot that the hub keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateSnapshotView {
    /// Its number.
    pub number: u64,
    /// The day that it stands for, in UTC. There is one for each day at most.
    #[schemars(with = "String")]
    pub day: Date,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// How many hosts are in it.
    pub hosts: u32,
    /// How many guests are in it.
    pub guests: u32,
    /// The digest of what is so: equal for two snapshots between which nothing changed.
    pub content: Sha256Text,
    /// The digest of the document.
    pub document: Sha256Text,
    /// How many bytes the document has.
    pub bytes: u64,
    /// How many bytes are kept of it, compressed.
    pub stored_bytes: u64,
}
