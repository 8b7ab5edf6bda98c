//! All conditions of one reporter at one time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ReportedCondition, SubjectMismatch};

/// As many conditions as one set holds.
pub const CONDITIONS_MAX: usize = 512;

/// All conditions that hold at one time, sorted, each once. What is not in it does not hold, unless some were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Unchecked", deny_unknown_fields)]
pub struct ConditionSet {
    conditions: Vec<ReportedCondition>,
    left_out: u32,
}

/// The same, as it is read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ConditionSet")]
struct Unchecked {
    /// Those that hold.
    #[schemars(length(max = CONDITIONS_MAX))]
    conditions: Vec<ReportedCondition>,
    /// How many more hold that are not in it.
    #[serde(default)]
    left_out: u32,
}

/// Why a set is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionSetError {
    /// Longer than any.
    #[error("{0} conditions in one set; at most {CONDITIONS_MAX} are accepted")]
    Length(usize),
    /// One condition twice.
    #[error("{0} on {1} is in the set twice")]
    Twice(super::ConditionCode, String),
    /// A code with a subject that the table does not have for it.
    #[error(transparent)]
    Subject(#[from] SubjectMismatch),
}

impl ConditionSet {
    /// Takes conditions in any order. Of two with one identity the later counts. What does not fit is left out, the
    /// least urgent first, and counted.
    #[must_use]
    pub fn collect(conditions: impl IntoIterator<Item = ReportedCondition>) -> Self {
        let by_identity: std::collections::BTreeMap<_, _> = conditions
            .into_iter()
            .filter(|condition| condition.check().is_ok())
            .map(|condition| ((condition.code, condition.subject.clone()), condition))
            .collect();
        Self { conditions: by_identity.into_values().collect(), left_out: 0 }.shortened(CONDITIONS_MAX)
    }

    /// The same with at most `count` conditions. The least urgent are left out first, and counted.
    #[must_use]
    pub fn shortened(self, count: usize) -> Self {
        let Self { mut conditions, left_out } = self;
        let more = conditions.len().saturating_sub(count);
        if more > 0 {
            conditions.sort_by_key(|condition| std::cmp::Reverse(condition.severity));
            conditions.truncate(count);
            conditions.sort_by(|a, b| a.identity().cmp(&b.identity()));
        }
        Self { conditions, left_out: left_out.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)) }
    }

    /// The conditions, sorted by identity.
    #[must_use]
    pub fn conditions(&self) -> &[ReportedCondition] {
        &self.conditions
    }

    /// How many more hold that are not in it.
    #[must_use]
    pub const fn left_out(&self) -> u32 {
        self.left_out
    }
}

impl TryFrom<Unchecked> for ConditionSet {
    type Error = ConditionSetError;
    fn try_from(Unchecked { mut conditions, left_out }: Unchecked) -> Result<Self, ConditionSetError> {
        if conditions.len() > CONDITIONS_MAX {
            return Err(ConditionSetError::Length(conditions.len()));
        }
        conditions.iter().try_for_each(ReportedCondition::check)?;
        conditions.sort_by(|a, b| a.identity().cmp(&b.identity()));
        let twice = conditions.windows(2).find_map(|pair| match pair {
            [first, second] if first.identity() == second.identity() => Some(first),
            _ => None,
        });
        match twice {
            Some(first) => Err(ConditionSetError::Twice(first.code, first.subject.to_string())),
            None => Ok(Self { conditions, left_out }),
        }
    }
}
