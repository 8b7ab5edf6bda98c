//! The protection status of a guest, with its reasons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The posture. The worst is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Posture {
    /// Nothing of it could be restored.
    Unprotected,
    /// It is unknown at present.
    Unknown,
    /// Something is there, and something is missing.
    Attention,
    /// A backup of it was restored and checked within the policy's time, and each tier has what it should.
    Protected,
}

impl Posture {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unprotected => "unprotected",
            Self::Unknown => "unknown",
            Self::Attention => "attention",
            Self::Protected => "protected",
        }
    }
}

/// The posture with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostureReport {
    /// The posture.
    pub is: Posture,
    /// Why, in words, the weightiest first; or what protects it, where it is protected.
    #[schemars(length(min = 1))]
    pub why: Vec<String>,
}

impl PostureReport {
    /// With one reason.
    #[must_use]
    pub fn because(is: Posture, why: impl Into<String>) -> Self {
        Self { is, why: vec![why.into()] }
    }
}
