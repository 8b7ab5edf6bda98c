//! One change, with its direction and its words.

use std::fmt;

use serde::Serialize;

/// What of a host or guest changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Area {
    /// Whether the host is heard of.
    Contact,
    /// How it is.
    Current,
    /// How its data is protected.
    Protection,
    /// What is wrong.
    Condition,
    /// What was carried out of the document.
    LastApplied,
    /// What the document says.
    Desired,
    /// Versions of what runs.
    Version,
}

impl Area {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contact => "contact",
            Self::Current => "current",
            Self::Protection => "protection",
            Self::Condition => "condition",
            Self::LastApplied => "last applied",
            Self::Desired => "desired",
            Self::Version => "version",
        }
    }
}

/// Whether a change is for the better. The worst is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Worse,
    Better,
    /// Neither: a decision, or a fact.
    Different,
}

impl Direction {
    /// By a rank, of which 0 is best.
    pub(crate) fn of_rank(before: u8, after: u8) -> Self {
        match after.cmp(&before) {
            std::cmp::Ordering::Greater => Self::Worse,
            std::cmp::Ordering::Less => Self::Better,
            std::cmp::Ordering::Equal => Self::Different,
        }
    }

    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Different => "changed",
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub direction: Direction,
    pub area: Area,
    /// Which, such as `run` or `size.memory_mib`.
    pub what: String,
    /// Before; none where there was nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// After; none where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Change {
    /// A value that is another.
    pub(crate) fn of(
        (direction, area): (Direction, Area),
        what: impl Into<String>,
        before: Option<String>,
        after: Option<String>,
    ) -> Option<Self> {
        (before != after).then(|| Self { direction, area, what: what.into(), before, after })
    }

    /// Something that began.
    pub(crate) fn began(area: Area, what: impl Into<String>, after: String) -> Self {
        Self { direction: Direction::Worse, area, what: what.into(), before: None, after: Some(after) }
    }

    /// Something that ended.
    pub(crate) fn ended(area: Area, what: impl Into<String>, before: String) -> Self {
        Self { direction: Direction::Better, area, what: what.into(), before: Some(before), after: None }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { area, what, before, after, .. } = self;
        match (area, before, after) {
            (Area::Condition, None, Some(after)) => write!(f, "{what} began: {after}"),
            (Area::Condition, Some(before), None) => write!(f, "{what} ended: {before}"),
            (_, Some(before), Some(after)) => write!(f, "{what}: from {before} to {after}"),
            (_, None, Some(after)) => write!(f, "{what}: now {after}, before nothing"),
            (_, Some(before), None) => write!(f, "{what}: now nothing, before {before}"),
            (_, None, None) => f.write_str(what),
        }
    }
}
