//! Recovery codes of this host and the keys they open.
//!
//! A code itself is not stored: it was shown once, to one person. What is remembered is which number it has, which key
//! it opens, and how far its making came.

use std::fmt;

use holdfast_protocol::escrow::EscrowNumber;
use holdfast_protocol::id::{KeyFingerprint, TargetName};
use holdfast_recovery::escrow::{CodeNumber, EscrowFile, Record};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One code, and the key that is wrapped under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeRecord {
    /// What it is for, and which key it opens.
    pub record: Record,
    /// The target whose backups are encrypted with that key.
    pub target: TargetName,
    /// How far its making came.
    pub status: CodeStatus,
    /// When its making began.
    pub begun_at: Timestamp,
    /// When its words were last typed, and opened it.
    pub drilled_at: Option<Timestamp>,
    /// Whether it was made on this host.
    pub origin: CodeOrigin,
}

/// Where a code was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeOrigin {
    /// Here: its file was opened as it was made.
    Made,
    /// On the lost host whose place this one took. The hub handed its file over, and its content is known once the
    /// words are typed.
    HandedOver,
}

impl CodeRecord {
    #[must_use]
    pub const fn number(&self) -> CodeNumber {
        self.record.context.code
    }

    /// Which key it opens, or would have opened.
    #[must_use]
    pub const fn key(&self) -> &KeyFingerprint {
        &self.record.fingerprint
    }

    /// Since when its words were known to open something: when they were typed back. None where they open nothing.
    #[must_use]
    pub const fn kept_at(&self) -> Option<Timestamp> {
        match self.status {
            CodeStatus::Kept { at } => Some(at),
            CodeStatus::Begun | CodeStatus::Shown { .. } | CodeStatus::Retired { .. } => None,
        }
    }
}

/// How far the making of a code came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CodeStatus {
    /// Its number was assigned, and its words were not shown to anyone.
    Begun,
    /// Its words were shown, and never typed back: they open nothing.
    Shown { at: Timestamp },
    /// Its words were typed back, and the key that they open is kept.
    Kept { at: Timestamp },
    /// It was given up for a newer one of the same key.
    Retired { at: Timestamp },
}

/// Where a copy of a wrapped key is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum CopyPlace {
    /// At the hub.
    Hub,
    /// On a disk that an operator approved.
    Target(TargetName),
}

const HUB: &str = "hub";
const TARGET: &str = "target:";

impl fmt::Display for CopyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub => f.write_str(HUB),
            Self::Target(name) => write!(f, "{TARGET}{name}"),
        }
    }
}

impl From<CopyPlace> for String {
    fn from(place: CopyPlace) -> Self {
        place.to_string()
    }
}

impl TryFrom<String> for CopyPlace {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl std::str::FromStr for CopyPlace {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a copy lies at `hub` or at `target:NAME`";
        match text.strip_prefix(TARGET) {
            Some(name) => name.parse().map(Self::Target).map_err(|_| wrong),
            None if text == HUB => Ok(Self::Hub),
            None => Err(wrong),
        }
    }
}

/// A wrapped key that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    pub code: CodeRecord,
    /// The version that it is at the hub.
    pub version: EscrowNumber,
    pub file: EscrowFile,
}

/// The state of a copy when it was last checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyRecord {
    /// Of which code's file.
    pub code: CodeNumber,
    pub place: CopyPlace,
    /// Why it is not as it should be; none where it is.
    pub problem: Option<String>,
    /// When it was checked.
    pub seen_at: Timestamp,
}

/// All that is known of codes and copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codes {
    /// Every code, by its number.
    pub codes: Vec<CodeRecord>,
    /// Every copy that was checked.
    pub copies: Vec<CopyRecord>,
}
