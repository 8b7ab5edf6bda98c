//! Results of restore tests for one tier of a guest.
//!
//! A return can grow slower for months before anybody needs it: a larger database, a failing disk, a line that others
//! share. An operator who reads that beforehand can still choose. Deliberately absent: how the trend is judged, which
//! is the agent's.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tier;
use crate::local::restore_test::TestVerdict;

/// What the tests of a tier showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierTested {
    /// Which.
    pub tier: Tier,
    /// The last one, whatever became of it.
    pub last: LastTest,
    /// How long a return takes, compared with earlier tests.
    pub trend: Trend,
}

/// The last test of a tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastTest {
    /// When it ended.
    pub at: Timestamp,
    /// When its backup was taken.
    pub taken_at: Timestamp,
    /// What it showed.
    pub verdict: TestVerdict,
    /// Why, in words.
    pub why: String,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Took::is_unknown")]
    pub took: Took,
}

/// How long the two parts of a return took, in seconds; each as far as it came and was written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Took {
    /// From when Proxmox took the task to the end of the restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_s: Option<u64>,
    /// From the start of the guest to the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_s: Option<u64>,
}

impl Took {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Both parts.
    #[must_use]
    pub fn whole_s(&self) -> Option<u64> {
        Some(self.restore_s?.saturating_add(self.up_s?))
    }
}

/// Whether a return takes longer than it did. Times are of both parts, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "is")]
pub enum Trend {
    /// There are too few tests for a trend.
    TooFew {
        /// So many there are.
        tests: u32,
        /// So many it takes.
        needed: u32,
    },
    /// About as long as it did.
    Steady {
        /// The newest test.
        took_s: u64,
        /// Those before it.
        usual_s: u64,
    },
    /// Markedly longer, more than the backup's growth explains.
    Slower {
        /// The newest test.
        took_s: u64,
        /// What those before it let expect.
        usual_s: u64,
    },
    /// Markedly less long.
    Faster {
        /// The newest test.
        took_s: u64,
        /// What those before it let expect.
        usual_s: u64,
    },
}

impl Trend {
    /// In two or three words.
    #[must_use]
    pub fn short(&self) -> String {
        let percent =
            |more: u64, less: u64, of: u64| more.saturating_sub(less).saturating_mul(100) / of.max(1);
        match *self {
            Self::TooFew { .. } => "too few to say".to_owned(),
            Self::Steady { .. } => "steady".to_owned(),
            Self::Slower { took_s, usual_s } => format!("slower by {} %", percent(took_s, usual_s, usual_s)),
            Self::Faster { took_s, usual_s } => format!("faster by {} %", percent(usual_s, took_s, usual_s)),
        }
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFew { tests, needed } => write!(f, "{}: {tests} of {needed}", self.short()),
            Self::Steady { took_s, usual_s }
            | Self::Slower { took_s, usual_s }
            | Self::Faster { took_s, usual_s } => {
                write!(f, "{}: back in {}, usually {}", self.short(), span(took_s), span(usual_s))
            }
        }
    }
}

/// A time in its two largest units.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_a_sentence() {
        for (trend, words) in [
            (Trend::TooFew { tests: 2, needed: 4 }, "too few to say: 2 of 4"),
            (Trend::Steady { took_s: 59, usual_s: 60 }, "steady: back in 59 s, usually 1 min 00 s"),
            (
                Trend::Slower { took_s: 864, usual_s: 480 },
                "slower by 80 %: back in 14 min 24 s, usually 8 min 00 s",
            ),
            (
                Trend::Faster { took_s: 3_600, usual_s: 7_290 },
                "faster by 50 %: back in 1 h 00 min, usually 2 h 01 min",
            ),
        ] {
            assert_eq!(trend.to_string(), words);
            let wire = serde_json::to_string(&trend).unwrap();
            assert_eq!(serde_json::from_str::<Trend>(&wire).unwrap(), trend, "{wire}");
        }
    }

    /// An agent from before this field omits it; its other fields are read as before.
    #[test]
    fn nothing_is_written_where_nothing_is_known() {
        let last = LastTest {
            at: Timestamp::UNIX_EPOCH,
            taken_at: Timestamp::UNIX_EPOCH,
            verdict: TestVerdict::Failed,
            why: "it did not come up".to_owned(),
            took: Took::default(),
        };
        let wire = serde_json::to_string(&last).unwrap();
        assert!(!wire.contains("took"), "{wire}");
        assert_eq!(serde_json::from_str::<LastTest>(&wire).unwrap(), last);
        let old = super::super::ProtectionReport::default();
        assert_eq!(serde_json::to_string(&old).unwrap(), "{}");
    }
}
