//! One condition in a snapshot of state.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{ConditionCode, ConditionText, Severity, Subject};

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateCondition {
    /// What is wrong.
    pub code: ConditionCode,
    /// With what.
    pub subject: Subject,
    /// How urgent it is.
    pub severity: Severity,
    /// Since when, and in which words.
    pub observed: ConditionObserved,
}

/// How a condition was reported last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConditionObserved {
    /// Since when it holds, by the reporter's clock.
    pub since: Timestamp,
    /// What is wrong, in words; these may have figures that move.
    pub message: ConditionText,
}
