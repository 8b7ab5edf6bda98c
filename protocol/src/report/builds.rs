//! The builds of the agent that came by releases.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::act::Sha256Text;
use crate::release::VersionNumber;

/// The builds of the agent on a host, as root's gate there stores them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentBuilds {
    /// The release that passed its trial and runs where no newer package does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<VersionNumber>,
    /// The release that is on trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<VersionNumber>,
    /// The last release that failed its trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRelease>,
    /// The last release whose trial was ended because its offer was withdrawn. A new offer tries it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<FailedRelease>,
    /// The last release that was refused before a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRelease>,
}

/// A release whose trial on a host ended with the build before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedRelease {
    /// Its version.
    pub version: VersionNumber,
    /// SHA-256 of its manifest.
    pub manifest_sha256: Sha256Text,
    /// Why, in one sentence.
    pub why: String,
    /// Why the build that was put back was not healthy either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_back: Option<String>,
    /// When, by the clock of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// A release that a host refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedRelease {
    /// SHA-256 of its manifest, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<Sha256Text>,
    /// The gate's code, such as `EXPIRED`.
    pub code: String,
    /// Why, in one sentence.
    pub why: String,
    /// When, by the clock of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}
