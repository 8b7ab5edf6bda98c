//! Kept use of a host or guest, as the hub answers it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::UsageMetric;

/// How far back a series goes, and with which step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum UsageSpan {
    /// Two hours, by the minute.
    #[default]
    #[serde(rename = "2h")]
    Hours2,
    /// Seven days, by five minutes.
    #[serde(rename = "7d")]
    Days7,
    /// Four hundred days, by the hour.
    #[serde(rename = "400d")]
    Days400,
}

impl UsageSpan {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Hours2, Self::Days7, Self::Days400];

    /// As written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hours2 => "2h",
            Self::Days7 => "7d",
            Self::Days400 => "400d",
        }
    }

    /// Seconds between two points.
    #[must_use]
    pub const fn step_s(self) -> u32 {
        match self {
            Self::Hours2 => 60,
            Self::Days7 => 300,
            Self::Days400 => 3600,
        }
    }

    /// How long a point is kept, in seconds.
    #[must_use]
    pub const fn kept_s(self) -> u32 {
        match self {
            Self::Hours2 => 2 * 3600,
            Self::Days7 => 7 * 86_400,
            Self::Days400 => 400 * 86_400,
        }
    }
}

/// A text that is no span.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no span: 2h, 7d or 400d")]
pub struct UnknownSpan(String);

impl FromStr for UsageSpan {
    type Err = UnknownSpan;
    fn from_str(text: &str) -> Result<Self, UnknownSpan> {
        let found = Self::ALL.into_iter().find(|span| span.as_str() == text);
        found.ok_or_else(|| UnknownSpan(text.chars().take(32).collect()))
    }
}

impl fmt::Display for UsageSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsagePoint {
    /// The begin of its step.
    pub at: Timestamp,
    /// The mean over the step.
    pub mean: u64,
    /// The highest sample in it.
    pub max: u64,
}

/// What a host or guest used, by metric, the oldest point first. A step without a point was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageSeries {
    /// How far back it goes.
    pub span: UsageSpan,
    /// Seconds between two points.
    pub step_s: u32,
    /// The points of each metric.
    pub metrics: BTreeMap<UsageMetric, Vec<UsagePoint>>,
}
