//! The manifest of a golden image.
//!
//! What comes in: the measurements of a build. What goes out: one closed document on which the host, the operator and
//! the software bill of materials next to it agree. Deliberately absent: trust. A manifest is a claim: a program that
//! lets the bytes near customers' data hashes them again.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::GoldenVersion;
use crate::job::act::Sha256Text;
use crate::release::VersionNumber;
use crate::report::{ImageBuild, ImageOrigin};

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
    /// The builder's version and how it packed; empty in manifests of older builders.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub builder: String,
    /// As of when Debian's archives were used; none where it was whatever they had at the build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archives_as_of: Option<Timestamp>,
    /// How it came to this host; none on the host that built it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<GoldenReceipt>,
    /// How the build went. The only part that differs when the same packages are built again.
    pub build: GoldenBuild,
    /// By name; empty for a tiny image.
    pub packages: Vec<GoldenPackage>,
}

impl GoldenManifest {
    /// The digest of what determines the bytes: recipe, guest agent, builder, and every package with its version. Builds of
    /// the same inputs have the same archive digest, or one of their builders is wrong. The archives' time is not part of
    /// it: it matters by the packages alone.
    #[must_use]
    pub fn inputs_sha256(&self) -> Sha256Text {
        let contents = match self.contents {
            GoldenContents::Complete => "complete",
            GoldenContents::Small => "small",
            GoldenContents::Tiny => "tiny",
        };
        let suite = self.suite.as_deref().unwrap_or_default();
        let mut text = format!(
            "holdfast.golden-inputs/v1\n{contents}\n{suite}\n{}\n{}\n{}\n{}\n",
            self.recipe_sha256, self.guestd_sha256, self.source_date_epoch, self.builder
        );
        for GoldenPackage { name, version, architecture } in &self.packages {
            text += &format!("{name} {version} {architecture}\n");
        }
        Sha256Text::of(text.as_bytes())
    }

    /// What a host reports of it.
    #[must_use]
    pub fn image_build(&self) -> ImageBuild {
        let built_at = i64::try_from(self.build.made_at_s).ok().and_then(|s| Timestamp::from_second(s).ok());
        ImageBuild {
            built_at,
            inputs_sha256: self.inputs_sha256(),
            size_bytes: self.size_bytes,
            origin: if self.received.is_some() { ImageOrigin::Received } else { ImageOrigin::Built },
        }
    }
}

/// How an image came to a host that did not build it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldenReceipt {
    /// The release that named it.
    pub release: VersionNumber,
    /// When root put it here, in seconds since 1970.
    pub at_s: u64,
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

    #[test]
    fn the_inputs_are_what_determines_the_bytes_and_nothing_else() {
        let hex = "ab".repeat(32);
        let manifest: GoldenManifest = serde_json::from_value(serde_json::json!({
            "schema": "holdfast.golden-manifest/v1", "version": "2026.11.1", "contents": "complete",
            "archive": "a", "sha256": hex, "size_bytes": 1, "recipe_sha256": hex, "guestd_sha256": hex,
            "source_date_epoch": 1, "suite": "trixie", "builder": "0.1.0 small",
            "build": { "made_at_s": 60, "seconds": 1, "entries": 1, "content_bytes": 1 },
            "packages": [{ "name": "apt", "version": "2.6", "architecture": "amd64" }],
        }))
        .unwrap();
        let inputs = |change: &dyn Fn(&mut GoldenManifest)| {
            let mut changed = manifest.clone();
            change(&mut changed);
            changed.inputs_sha256()
        };
        let same = manifest.inputs_sha256();
        // Another host, another time, another name: the same inputs.
        assert_eq!(inputs(&|one| one.version = "2026.12.7".parse().unwrap()), same);
        assert_eq!(inputs(&|one| one.build.made_at_s = 61), same);
        assert_eq!(inputs(&|one| one.archives_as_of = Some(Timestamp::UNIX_EPOCH)), same);
        assert_eq!(inputs(&|one| one.sha256 = "cd".repeat(32)), same, "the result is no input");
        let changes: [&dyn Fn(&mut GoldenManifest); 7] = [
            &|one| one.packages[0].version = "2.7".to_owned(),
            &|one| one.packages.clear(),
            &|one| one.guestd_sha256 = "cd".repeat(32),
            &|one| one.recipe_sha256 = "cd".repeat(32),
            &|one| one.builder = "0.1.0 quick".to_owned(),
            &|one| one.contents = GoldenContents::Small,
            &|one| one.source_date_epoch = 2,
        ];
        for change in changes {
            assert_ne!(inputs(change), same);
        }
        assert_eq!(manifest.image_build().built_at, Timestamp::from_second(60).ok());
        assert_eq!(manifest.image_build().origin, ImageOrigin::Built);
    }
}
