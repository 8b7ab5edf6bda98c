//! Releases as the hub keeps them.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `PUT /v1/releases/{version}` | [`SignedRelease`](super::SignedRelease) | [`ReleaseView`] |
//! | `GET /v1/releases` | | page of [`ReleaseView`], newest version first |
//! | `DELETE /v1/releases/{version}` | | [`ReleaseView`], as it was |
//! | `PUT /v1/artifacts/{sha256}?offset=N` | bytes | [`ArtifactView`] |
//! | `PUT /v1/hosts/{id or name}/release-offer` | [`OfferRequest`] | [`HostOffer`] |
//! | `DELETE /v1/hosts/{id or name}/release-offer` | | [`WithdrawnOffer`] |
//! | `GET /v1/agent/release-offer` | | [`ReleaseOffer`] |
//! | `GET /v1/agent/releases/{version}` | | [`ReleaseText`] |
//! | `GET /v1/agent/artifacts/{sha256}/release` | | [`ReleaseText`] |
//! | `GET /v1/agent/artifacts/{sha256}` | | bytes; `Range` asks for a part |

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ReleaseFileKind, ReleaseFileName, VersionNumber};
use crate::id::OperatorName;
use crate::job::UtcSecond;
use crate::job::act::Sha256Text;

/// Where the hub is with the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactState {
    /// Nothing of it is here.
    Missing,
    /// Its beginning is here.
    Partial,
    /// It is here and hashes to its digest.
    Complete,
}

/// The bytes of a file at the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactView {
    /// SHA-256 of its bytes.
    pub sha256: Sha256Text,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// How many of them are here: where the next piece begins.
    pub received_bytes: u64,
    /// Whether that is all.
    pub state: ArtifactState,
}

/// A file of a release at the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseFileView {
    /// What it is for.
    pub kind: ReleaseFileKind,
    /// Its name.
    pub name: ReleaseFileName,
    /// Its bytes.
    pub artifact: ArtifactView,
}

/// A release at the hub. The hub checked its form and no signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseView {
    /// The version.
    pub version: VersionNumber,
    /// SHA-256 of the signed manifest.
    pub manifest_sha256: Sha256Text,
    /// When the manifest was made.
    pub issued_at: UtcSecond,
    /// From then on no host installs it.
    pub expires_at: UtcSecond,
    /// How many signatures it carries.
    pub signatures: u32,
    /// Who put it here.
    pub by: OperatorName,
    /// When.
    pub put_at: Timestamp,
    /// Its files.
    pub files: Vec<ReleaseFileView>,
}

/// A signed release, as a host fetches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseText {
    /// The text of a [`SignedRelease`](super::SignedRelease).
    pub signed: String,
}

/// Which release the hub wants a host to run. The host decides by signature, version and its own past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseOffer {
    /// None, where the host should stay as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<OfferedRelease>,
    /// The release that the host reports to be on trial, where it is offered no more because it was stopped. The end of an
    /// update window stops nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<WithdrawnRelease>,
}

/// A release that was offered to a host and was stopped since. A host that has it on trial puts the build before back; one
/// that confirmed it keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithdrawnRelease {
    /// Its version.
    pub version: VersionNumber,
    /// SHA-256 of the signed manifest.
    pub manifest_sha256: Sha256Text,
    /// What stopped it.
    pub reason: WithdrawalReason,
}

/// What stopped a release that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithdrawalReason {
    /// Its rollout is held, or goes back to another release.
    Held,
    /// Its rollout is paused, and a person said that trials are taken back.
    Paused,
    /// Its rollout was aborted.
    Aborted,
    /// An operator withdrew the offer to this host.
    Operator,
}

impl WithdrawalReason {
    /// As it is shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "its rollout is held",
            Self::Paused => "its rollout is paused",
            Self::Aborted => "its rollout was aborted",
            Self::Operator => "an operator withdrew the offer",
        }
    }
}

/// A release that a host is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferedRelease {
    /// Its version.
    pub version: VersionNumber,
    /// SHA-256 of the signed manifest.
    pub manifest_sha256: Sha256Text,
}

/// The golden image that a rollout offers to the host that asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageOffer {
    /// None, where it is offered none, or has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<OfferedImage>,
}

/// An image that a host is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferedImage {
    /// The release that brings it.
    pub release: VersionNumber,
    /// SHA-256 of its archive.
    pub sha256: Sha256Text,
}

/// A release to be offered to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferRequest {
    /// Its version. The hub has it, with all bytes of its one agent.
    pub version: VersionNumber,
}

/// The release that an operator offers to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostOffer {
    /// Its version.
    pub version: VersionNumber,
    /// Who offers it.
    pub by: OperatorName,
    /// Since when.
    pub at: Timestamp,
}

/// An offer that was taken back. A host that has the release on trial puts the build before back; one that has only
/// fetched it may still begin the trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithdrawnOffer {
    /// What was offered; none where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<HostOffer>,
}
