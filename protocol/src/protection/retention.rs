//! Retention: Proxmox's `keep-*` rules as types.
//!
//! A rule keeps the newest backup of a number of hours, days, ISO weeks, months and years each that no earlier rule has
//! covered, and a number of the newest at any age. A retention with higher numbers in every field covers at least as
//! much, by the argument in `docs/adr/0015`. Deliberately absent: removing anything.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::size::KeepCount;

/// Which backups are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    /// All of them.
    KeepAll,
    /// Those that a rule keeps.
    Keep(Keep),
}

/// How many, by each rule. At least one rule keeps something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire")]
pub struct Keep {
    /// The newest ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<KeepCount>,
    /// One of each of so many hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly: Option<KeepCount>,
    /// One of each of so many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily: Option<KeepCount>,
    /// One of each of so many weeks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekly: Option<KeepCount>,
    /// One of each of so many months.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly: Option<KeepCount>,
    /// One of each of so many years.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yearly: Option<KeepCount>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Keep")]
struct Wire {
    #[serde(default)]
    last: Option<KeepCount>,
    #[serde(default)]
    hourly: Option<KeepCount>,
    #[serde(default)]
    daily: Option<KeepCount>,
    #[serde(default)]
    weekly: Option<KeepCount>,
    #[serde(default)]
    monthly: Option<KeepCount>,
    #[serde(default)]
    yearly: Option<KeepCount>,
}

impl TryFrom<Wire> for Keep {
    type Error = &'static str;
    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let Wire { last, hourly, daily, weekly, monthly, yearly } = wire;
        let keep = Self { last, hourly, daily, weekly, monthly, yearly };
        if keep.rules().iter().any(|(_, count)| count.is_some()) {
            Ok(keep)
        } else {
            Err(
                "a retention that keeps nothing is none: name at least one of last, hourly, daily, weekly, monthly, yearly",
            )
        }
    }
}

impl Keep {
    /// The rules in the order in which they choose, with their names.
    #[must_use]
    pub const fn rules(&self) -> [(&'static str, Option<KeepCount>); 6] {
        [
            ("last", self.last),
            ("hourly", self.hourly),
            ("daily", self.daily),
            ("weekly", self.weekly),
            ("monthly", self.monthly),
            ("yearly", self.yearly),
        ]
    }

    /// As much as both, rule by rule.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self {
            last: self.last.max(other.last),
            hourly: self.hourly.max(other.hourly),
            daily: self.daily.max(other.daily),
            weekly: self.weekly.max(other.weekly),
            monthly: self.monthly.max(other.monthly),
            yearly: self.yearly.max(other.yearly),
        }
    }
}

impl Retention {
    /// As much as both.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Keep(one), Self::Keep(other)) => Self::Keep(one.join(other)),
            (Self::KeepAll, _) | (_, Self::KeepAll) => Self::KeepAll,
        }
    }

    /// How many it keeps at most, all rules together; none, where it keeps all.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        match self {
            Self::KeepAll => None,
            Self::Keep(keep) => {
                Some(keep.rules().iter().filter_map(|(_, count)| *count).map(KeepCount::get).sum())
            }
        }
    }

    /// Whether this keeps at least as much as `other`, rule by rule.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.join(other) == *self
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Keep(keep) = self else { return f.write_str("all") };
        let words =
            keep.rules().into_iter().filter_map(|(rule, count)| Some(format!("{} {rule}", count?.get())));
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retention(text: &str) -> Result<Retention, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_retention_keeps_something_and_knows_no_other_rule() {
        for good in [r#""keep_all""#, r#"{"keep":{"last":1}}"#, r#"{"keep":{"daily":7,"yearly":9999}}"#] {
            let read = retention(good).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), good);
        }
        for bad in [
            r#""keep_none""#,
            r#"{"keep":{}}"#,
            r#"{"keep":{"last":0}}"#,
            r#"{"keep":{"last":10000}}"#,
            r#"{"keep":{"last":-1}}"#,
            r#"{"keep":{"last":1,"last":2}}"#,
            r#"{"keep":{"minutely":1}}"#,
            r#"{"keep":{"last":"1"}}"#,
            r#"{"keep_all":{}}"#,
            "{}",
        ] {
            assert!(retention(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_order_is_by_rule_and_all_is_above_everything() {
        let [all, more, less, other] = [
            r#""keep_all""#,
            r#"{"keep":{"last":3,"daily":7}}"#,
            r#"{"keep":{"last":3}}"#,
            r#"{"keep":{"weekly":9}}"#,
        ]
        .map(|text| retention(text).unwrap());
        for one in [all, more, less, other] {
            assert!(one.covers(&one) && all.covers(&one));
        }
        assert!(more.covers(&less) && !less.covers(&more) && !more.covers(&all));
        assert!(!more.covers(&other) && !other.covers(&more), "neither is known to be as good");
        let both = more.join(&other);
        assert!(both.covers(&more) && both.covers(&other));
        assert_eq!(both.to_string(), "3 last, 7 daily, 9 weekly");
    }
}
