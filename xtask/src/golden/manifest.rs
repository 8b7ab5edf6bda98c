//! The manifest beside an archive: what it is, what it was made of, and the digest that an operator approves.

use serde::{Deserialize, Serialize};

/// The manifest's schema.
pub const SCHEMA: &str = "holdfast.golden-manifest/v1";

/// What is known about one golden.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub schema: String,
    /// `YYYY.MM.N`.
    pub version: String,
    /// The archive's file name.
    pub archive: String,
    /// The archive's SHA-256.
    pub sha256: String,
    pub size_bytes: u64,
    /// SHA-256 over the recipe and our units.
    pub recipe_sha256: String,
    pub guestd_sha256: String,
    /// The Debian release, or `tiny`.
    pub suite: String,
    /// No time in the archive is later.
    pub source_date_epoch: u64,
    /// By name; empty for a tiny image.
    pub packages: Vec<Package>,
}

/// One package in the image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub name: String,
    pub version: String,
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
