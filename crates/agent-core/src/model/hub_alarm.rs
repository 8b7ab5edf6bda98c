//! The agent's own alarm about a hub that does not answer.
//!
//! In: when the hub last answered, since when this agent has been able to hear it, what was announced, and the time.
//! Out: what is to be announced now. It is announced once that the hub is away and once that it is back, also over
//! restarts of the agent. A host that was asleep, or a clock that was set, raises nothing. Deliberately absent: other
//! hosts. They are silent towards the hub alone, which reports them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How often it is judged.
pub const LOOK_EVERY: Duration = Duration::from_secs(60);

/// When two looks are further apart, this agent was not able to hear the hub in between.
pub const ABSENCE: SignedDuration = SignedDuration::from_secs(150);

/// What receivers know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum Announced {
    /// That the hub answers, or nothing.
    #[default]
    Answers,
    /// That it is away.
    Away {
        /// Since when.
        since: Timestamp,
    },
}

/// What is to be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The hub has not answered since then.
    Away { since: Timestamp },
    /// It was away since then, and answers.
    Back { since: Timestamp },
}

/// Judges what is to be announced, if anything.
#[must_use]
pub fn judge(
    announced: Announced,
    reached_at: Option<Timestamp>,
    hearing_since: Timestamp,
    after: SignedDuration,
    now: Timestamp,
) -> Option<Announcement> {
    match announced {
        Announced::Away { since } => {
            let answers = reached_at.is_some_and(|at| at > since);
            answers.then_some(Announcement::Back { since })
        }
        Announced::Answers => {
            let since = reached_at.map_or(hearing_since, |at| at.max(hearing_since));
            (now.duration_since(since) > after).then_some(Announcement::Away { since })
        }
    }
}

impl Announcement {
    /// What receivers know after it.
    #[must_use]
    pub const fn announced(self) -> Announced {
        match self {
            Self::Away { since } => Announced::Away { since },
            Self::Back { .. } => Announced::Answers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    const AFTER: SignedDuration = SignedDuration::from_secs(900);

    #[test]
    fn a_hub_that_is_away_is_announced_once_and_once_that_it_is_back() {
        let away = Announced::Away { since: at(0) };
        let table = [
            // announced, reached, hearing since, now, announcement
            (Announced::Answers, Some(at(0)), at(-9999), at(900), None),
            (Announced::Answers, Some(at(0)), at(-9999), at(901), Some(Announcement::Away { since: at(0) })),
            (away, Some(at(0)), at(-9999), at(5000), None),
            (away, Some(at(5000)), at(-9999), at(5001), Some(Announcement::Back { since: at(0) })),
            // After a restart nothing was heard yet.
            (Announced::Answers, None, at(0), at(900), None),
            (Announced::Answers, None, at(0), at(901), Some(Announcement::Away { since: at(0) })),
            (away, None, at(6000), at(9000), None),
            // The host was asleep until 5000.
            (Announced::Answers, Some(at(0)), at(5000), at(5060), None),
        ];
        for (announced, reached, hearing, now, wanted) in table {
            assert_eq!(
                judge(announced, reached, hearing, AFTER, now),
                wanted,
                "{announced:?} {reached:?} {now}"
            );
        }
    }
}
