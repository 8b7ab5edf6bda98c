//! Counts of errors over the last days.
//!
//! In: counters at each reading. Out: by how much one rose. It is kept in memory alone: after a restart a rise is counted
//! anew. A counter that goes back belongs to a new start or to another part, and begins anew as well.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

/// The least time between two counts that are kept.
const APART: SignedDuration = SignedDuration::from_hours(1);

/// How long a count is kept.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);

/// From so long on a counter that did not rise is known to be quiet.
const SPAN_QUIET: SignedDuration = SignedDuration::from_hours(24);

/// The counts of each counter, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountHistory {
    counts: BTreeMap<String, Vec<Count>>,
    /// Counters that could not be read this time, and are not gone.
    silent: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    at: Timestamp,
    count: u64,
}

impl CountHistory {
    /// Names counters that the next [`CountHistory::note`] does not drop although it has no count of them.
    pub fn touch(&mut self, keys: impl IntoIterator<Item = String>) {
        self.silent.extend(keys);
    }

    /// Notes the counts of now. Counters that are not there any more are dropped, and so are counts from the future.
    pub fn note(&mut self, now_counted: Vec<(String, u64)>, now: Timestamp) {
        let silent = std::mem::take(&mut self.silent);
        self.counts.retain(|key, _| silent.contains(key) || now_counted.iter().any(|(name, _)| name == key));
        for (key, count) in now_counted {
            let counts = self.counts.entry(key).or_default();
            counts.retain(|one| one.at <= now && now.duration_since(one.at) <= SPAN_MAX);
            match counts.last().copied() {
                Some(last) if count < last.count => *counts = vec![Count { at: now, count }],
                Some(last) if count == last.count && now.duration_since(last.at) < APART => {}
                // A rise within the hour moves the last count, so that no hour has two.
                Some(last) if counts.len() > 1 && now.duration_since(last.at) < APART => {
                    counts.pop();
                    counts.push(Count { count, ..last });
                }
                Some(_) | None => counts.push(Count { at: now, count }),
            }
        }
    }

    /// By how much it rose over the counts that are kept, which are of a week at most.
    #[must_use]
    pub fn rise(&self, key: &str) -> u64 {
        let counts = self.counts.get(key).map(Vec::as_slice).unwrap_or_default();
        match (counts.first(), counts.last()) {
            (Some(first), Some(last)) => last.count.saturating_sub(first.count),
            (None, _) | (_, None) => 0,
        }
    }

    /// Whether it was watched for a day: only then it is known that it does not rise.
    #[must_use]
    pub fn is_watched(&self, key: &str, now: Timestamp) -> bool {
        let first = self.counts.get(key).and_then(|counts| counts.first());
        first.is_some_and(|first| now.duration_since(first.at) >= SPAN_QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap()
    }

    fn noted(counts: &[(i64, u64)]) -> CountHistory {
        let mut history = CountHistory::default();
        for (hours, count) in counts {
            history.note(vec![("a".to_owned(), *count)], at(*hours));
        }
        history
    }

    #[test]
    fn a_rise_is_that_of_the_last_week() {
        for (counts, rise) in [
            (vec![], 0),
            (vec![(0, 7)], 0),
            (vec![(0, 7), (1, 9)], 2),
            (vec![(0, 7), (1, 9), (2, 9), (168, 9)], 2),
            (vec![(0, 7), (1, 9), (169, 9)], 0),
            // The counter began anew: another disk, or another start of the machine.
            (vec![(0, 7), (1, 3)], 0),
            (vec![(0, 7), (1, 3), (2, 4)], 1),
            // A clock that was ahead leaves nothing.
            (vec![(900, 2), (1, 3)], 0),
        ] {
            assert_eq!(noted(&counts).rise("a"), rise, "{counts:?}");
        }
    }

    #[test]
    fn it_stays_small_however_often_it_is_noted() {
        let mut history = CountHistory::default();
        for minute in 0..20_000 {
            let now = Timestamp::from_second(1_800_000_000 + minute * 60).unwrap();
            history.note(vec![("a".to_owned(), u64::try_from(minute).unwrap())], now);
        }
        assert!(history.counts["a"].len() <= 170, "{}", history.counts["a"].len());
        assert!(history.rise("a") > 9_900);
    }

    #[test]
    fn a_counter_is_quiet_after_a_day_and_forgotten_with_its_part() {
        let mut history = noted(&[(0, 7), (23, 7)]);
        assert!(!history.is_watched("a", at(23)) && history.is_watched("a", at(24)));
        history.touch(["a".to_owned()]);
        history.note(Vec::new(), at(25));
        assert!(history.is_watched("a", at(25)), "it sleeps");
        history.note(Vec::new(), at(26));
        assert!(!history.is_watched("a", at(26)), "it is gone");
    }
}
