//! Golden images as a host reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::GoldenVersion;

/// One golden image on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenReport {
    /// Its version.
    pub version: GoldenVersion,
    /// What its archive hashes to, in hex, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether guests may be made from it.
    pub status: ImageStatus,
    /// The size of its root disk, once the host looked: a guest's is at least as large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rootfs_bytes: Option<u64>,
}

/// Whether guests may be made from a golden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageStatus {
    /// Root or an operator approved these bytes.
    Approved,
    /// Neither root nor an operator approved these bytes yet.
    Waiting,
    /// Its archive cannot be read, or was not yet.
    Unread,
}
