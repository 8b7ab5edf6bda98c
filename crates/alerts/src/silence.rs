//! Silences: incidents that an operator mutes for a time.

use std::fmt;

use holdfast_protocol::condition::ConditionText;
use holdfast_protocol::id::OperatorName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::label::{Labelled, Matcher, all_match};

/// As many matchers as one silence has.
const MATCHERS_MAX: usize = 16;

/// The number of a silence; the hub counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SilenceId(pub u64);

impl fmt::Display for SilenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    /// Its number.
    pub id: SilenceId,
    /// All must match.
    pub matchers: Vec<Matcher>,
    /// From when on.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Who made it.
    pub by: OperatorName,
    /// Why.
    pub comment: ConditionText,
}

/// Why a silence is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SilenceError {
    /// It would mute everything.
    #[error("a silence needs a matcher with a value, such as host=pve1: without one it mutes everything")]
    Everything,
    /// Too long.
    #[error("a silence has at most {MATCHERS_MAX} matchers")]
    Matchers,
    /// No time.
    #[error("a silence ends after it begins")]
    Ends,
}

impl Silence {
    /// Checks it.
    ///
    /// # Errors
    /// [`SilenceError`].
    pub fn check(&self) -> Result<(), SilenceError> {
        if self.matchers.iter().all(Matcher::matches_empty) {
            return Err(SilenceError::Everything);
        }
        if self.matchers.len() > MATCHERS_MAX {
            return Err(SilenceError::Matchers);
        }
        if self.until > self.from { Ok(()) } else { Err(SilenceError::Ends) }
    }

    /// Whether it mutes an incident now.
    #[must_use]
    pub fn mutes(&self, labelled: &Labelled<'_>, now: Timestamp) -> bool {
        self.from <= now && now < self.until && all_match(&self.matchers, labelled)
    }
}
