//! What programs did while a backup was taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protection::Consistency;

/// What a backup holds, and why it is so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// As after a power cut, or standing still.
    pub consistency: Consistency,
    /// In words.
    #[schemars(length(min = 1, max = 256))]
    pub why: String,
}
