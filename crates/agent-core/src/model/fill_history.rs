//! Fill levels of storages over the last days.
//!
//! In: the bytes in use at each report. Out: when a storage will be full at the rate since the oldest level. It is kept in
//! memory alone: after a restart it takes a day until there is a forecast again. Backups come and are removed daily, so a
//! rate over less than a day says nothing.

use std::collections::BTreeMap;

use holdfast_protocol::report::{StorageReport, StorageState};
use jiff::{SignedDuration, Timestamp};

/// The least time between two levels that are kept.
const APART: SignedDuration = SignedDuration::from_hours(1);

/// The least time that a forecast is made from.
const SPAN_MIN: SignedDuration = SignedDuration::from_hours(24);

/// How long a level is kept.
const SPAN_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The levels of each storage, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FillHistory(BTreeMap<String, Vec<Level>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    at: Timestamp,
    used: u64,
}

impl FillHistory {
    /// Notes the levels of now. Those of storages that are not there any more are dropped, and so are levels from the future.
    pub fn note(&mut self, storages: &[StorageReport], now: Timestamp) {
        self.0.retain(|name, _| storages.iter().any(|storage| storage.name == *name));
        for storage in storages {
            let used = storage.used_bytes.filter(|_| storage.state == StorageState::Active);
            let Some(used) = used else { continue };
            let levels = self.0.entry(storage.name.clone()).or_default();
            levels.retain(|level| level.at <= now && now.duration_since(level.at) <= SPAN_MAX);
            if levels.last().is_none_or(|last| now.duration_since(last.at) >= APART) {
                levels.push(Level { at: now, used });
            }
        }
    }

    /// In how many whole days the storage will be full; none where it is not filling, or too little is known.
    #[must_use]
    pub fn days_left(&self, storage: &StorageReport, now: Timestamp) -> Option<u64> {
        let (total, used) = (storage.total_bytes?, storage.used_bytes?);
        let oldest = self.0.get(&storage.name)?.first()?;
        let span = now.duration_since(oldest.at);
        let more = used.checked_sub(oldest.used).filter(|more| *more > 0 && span >= SPAN_MIN)?;
        let seconds = u128::from(total.saturating_sub(used)) * u128::try_from(span.as_secs()).ok()?;
        u64::try_from(seconds / u128::from(more) / 86_400).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap()
    }

    fn level(gib: u64) -> StorageReport {
        StorageReport {
            name: "fast".to_owned(),
            state: StorageState::Active,
            total_bytes: Some(100 * GIB),
            used_bytes: Some(gib * GIB),
        }
    }

    #[test]
    fn a_forecast_needs_a_day_and_a_rising_level() {
        for (hours, gib, days) in [
            (1, 60, None),
            (23, 60, None),
            (24, 60, Some(4)),
            (24, 99, Some(0)),
            (24, 50, None),
            (48, 40, None),
        ] {
            let mut history = FillHistory::default();
            history.note(&[level(50)], at(0));
            history.note(&[level(gib)], at(hours));
            assert_eq!(history.days_left(&level(gib), at(hours)), days, "{gib} GiB after {hours} h");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_week() {
        let mut history = FillHistory::default();
        for day in 0..30 {
            // It stands still for three weeks, and fills by 1 GiB a day then.
            let gib = 50 + u64::try_from(day - 20).unwrap_or(0);
            history.note(&[level(gib)], at(day * 24));
        }
        assert_eq!(history.days_left(&level(59), at(29 * 24)), Some(41));
        assert!(history.0.values().all(|levels| levels.len() <= 8));
    }

    #[test]
    fn what_is_not_known_is_no_level() {
        let mut history = FillHistory::default();
        history.note(&[level(50)], at(0));
        let dark =
            StorageReport { state: StorageState::Unknown, total_bytes: None, used_bytes: None, ..level(0) };
        history.note(std::slice::from_ref(&dark), at(24));
        assert_eq!(history.days_left(&dark, at(24)), None);
        assert_eq!(history.days_left(&level(60), at(24)), Some(4), "the level before it counts");
        history.note(&[], at(25));
        assert_eq!(history.days_left(&level(60), at(25)), None, "another storage may have its name");
        // A clock that was ahead leaves nothing.
        history.note(&[level(50)], at(9_000));
        history.note(&[level(50)], at(26));
        assert_eq!(history.0.values().flatten().map(|level| level.at).collect::<Vec<_>>(), [at(26)]);
    }
}
