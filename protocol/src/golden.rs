//! The manifest of a golden image.
//!
//! What comes in: the measurements of a build. What goes out: one closed document on which the host, the operator and
//! the software bill of materials next to it agree. Deliberately absent: trust. A manifest is a claim: a program that
//! lets the bytes near customers' data hashes them again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::GoldenVersion;

/// A manifest has a few hundred packages; this is twenty times that.
pub const MANIFEST_BYTES_MAX: usize = 1024 * 1024;

impl GoldenVersion {
    /// Year, month and number: the order in which goldens were made.
    #[must_use]
    pub fn age_key(&self) -> (u32, u32, u32) {
        let mut parts = self.as_str().split('.').map(|part| part.parse().unwrap_or_default());
        let mut next = || parts.next().unwrap_or_default();
        (next(), next(), next())
    }
}

/// The version of a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GoldenManifestSchema {
    /// The only one so far.
    #[default]
    #[serde(rename = "holdfast.golden-manifest/v1")]
    V1,
}

/// How much of the recipe is in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoldenContents {
    /// Everything: what customers' guests are made from.
    Complete,
    /// Debian and the controller, without what app stacks need. For trying things out.
    Small,
    /// Busybox and the controller. For tests.
    Tiny,
}

/// The facts about one golden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenManifest {
    /// Which form this is.
    pub schema: GoldenManifestSchema,
    /// `YYYY.MM.N`.
    pub version: GoldenVersion,
    /// How much of the recipe is in it.
    pub contents: GoldenContents,
    /// The archive's file name.
    pub archive: String,
    /// The archive's SHA-256, in hex.
    pub sha256: String,
    /// The archive's size.
    pub size_bytes: u64,
    /// SHA-256 over the recipe and our units, in hex.
    pub recipe_sha256: String,
    /// SHA-256 of the controller inside, in hex.
    pub guestd_sha256: String,
    /// The file name of the bill of materials (SPDX 2.3, JSON); none for a tiny image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sbom: Option<String>,
    /// The Debian release; none for a tiny image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// No time in the archive is later, in seconds since 1970.
    pub source_date_epoch: u64,
    /// How the build went. The only part that differs when the same packages are built again.
    pub build: GoldenBuild,
    /// By name; empty for a tiny image.
    pub packages: Vec<GoldenPackage>,
}

/// How a build went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenBuild {
    /// When it was made, in seconds since 1970.
    pub made_at_s: u64,
    /// How long it took.
    pub seconds: u64,
    /// Files, folders and links in the archive.
    pub entries: u64,
    /// What the files in it hold together.
    pub content_bytes: u64,
}

/// One package in the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its architecture, `all` where it has none.
    pub architecture: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let key = |text: &str| text.parse::<GoldenVersion>().unwrap().age_key();
        assert!(key("2026.11.10") > key("2026.11.9") && key("2027.01.1") > key("2026.12.99"));
        assert_eq!(key("2026.11.0010"), (2026, 11, 10));
    }
}
