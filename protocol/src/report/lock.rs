//! Locks of Proxmox on guests as a host reports them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lock in the configuration of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockReport {
    /// What for, as Proxmox names it: `backup`, `snapshot`, `disk`.
    pub kind: String,
    /// Since when this run of the agent has seen it.
    pub since: Timestamp,
}
