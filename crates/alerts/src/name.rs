//! Names of rules.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longer than any.
const BYTES_MAX: usize = 32;

/// What a route or quiet hours are called in the log: 1 to 32 lower-case letters, digits and inner '-'.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleName(String);

/// Not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of a rule: write 1 to 32 lower-case letters, digits and '-', not at the ends")]
pub struct RuleNameError(String);

impl RuleName {
    /// The route that takes what no other route takes.
    #[must_use]
    pub fn default_route() -> Self {
        Self("default".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RuleName {
    type Error = RuleNameError;
    fn try_from(text: String) -> Result<Self, RuleNameError> {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let label = text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-');
        if label && (1..=BYTES_MAX).contains(&text.len()) {
            Ok(Self(text))
        } else {
            Err(RuleNameError(text.chars().take(BYTES_MAX).collect()))
        }
    }
}

impl From<RuleName> for String {
    fn from(name: RuleName) -> Self {
        name.0
    }
}
