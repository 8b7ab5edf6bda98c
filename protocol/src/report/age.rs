//! How old the facts of a report can be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds in seconds, counted from the host's last check-in. A fact of a guest that is older names its own time. With
/// bounds instead of times, a host where nothing happens has nothing new to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactAges {
    /// Who runs, memory in use, storage in use: Proxmox's own last look and ours.
    pub power_s: u32,
    /// Configurations of guests: sizes, addresses, volumes.
    pub configuration_s: u32,
    /// Which storages can be used.
    pub storage_s: u32,
    /// Proxmox's version.
    pub version_s: u32,
}
