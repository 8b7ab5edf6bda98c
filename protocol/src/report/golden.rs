//! Golden images as a host reports them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::GoldenVersion;
use crate::job::act::Sha256Text;

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
    /// How it was made, where its manifest is on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<ImageBuild>,
}

/// How an image was made, by its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageBuild {
    /// When, where the builder's clock gave a plausible time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_at: Option<Timestamp>,
    /// The digest of what determines its bytes.
    pub inputs_sha256: Sha256Text,
    /// The size of its archive.
    pub size_bytes: u64,
    /// Whether this host built it.
    pub origin: ImageOrigin,
}

/// How an image came to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageOrigin {
    /// This host, or another that writes to the same storage, built it.
    Built,
    /// It came over the hub, as a file of a signed release.
    Received,
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
