//! The urgency of a condition.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How urgent a condition is, in the usual words of Prometheus and Alertmanager. The least urgent is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth a line in a list.
    Info,
    /// An operator must act within days.
    Warning,
    /// An operator must act now.
    Critical,
}

impl Severity {
    /// All of them, the least urgent first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// As written on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Severity {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let named = Self::ALL.into_iter().find(|severity| severity.as_str() == text);
        named.ok_or("a severity is info, warning or critical")
    }
}

/// Whether data, or the means to get it back, may be lost while a condition lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataRisk {
    /// No data is at risk: quiet hours may hold its notices.
    Safe,
    /// Data is at risk: quiet hours never hold its notices.
    Endangered,
}
