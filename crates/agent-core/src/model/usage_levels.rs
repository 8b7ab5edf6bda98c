//! Levels of use that are too high, with hysteresis.
//!
//! In: samples, and the levels of the document in use. Out: which subjects are above a level. A level is reached at one value and
//! left at a lower one, so that a value between them changes nothing. How long it must last before an operator hears of it is the
//! grace of its condition. A guest that a sample does not have is forgotten: it stopped, or its figures could not be read.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample};

pub use super::level_rules::{HighLevel, User};
use super::level_rules::{LevelRules, Threshold};
use super::neighbours::Neighbours;

const LEVELS: [HighLevel; 3] = [HighLevel::Cpu, HighLevel::Memory, HighLevel::RootDisk];

/// Levels that are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageLevels {
    high: BTreeMap<(User, HighLevel), Threshold>,
    /// Those of which a sample said anything since the agent started.
    measured: BTreeSet<User>,
    /// Guests that use most of what is short.
    pub neighbours: Neighbours,
}

impl UsageLevels {
    /// Takes in a sample.
    pub fn note(&mut self, sample: &UsageSample, rules: &LevelRules) {
        let is_there = |user: &User| match user {
            User::Host => true,
            User::Guest(uid) => sample.guests.contains_key(uid),
        };
        self.high.retain(|(user, _), _| is_there(user));
        self.measured.retain(is_there);
        self.judge(User::Host, &sample.host, rules);
        for (uid, readings) in &sample.guests {
            self.judge(User::Guest(*uid), readings, rules);
        }
    }

    fn judge(&mut self, user: User, readings: &Readings, rules: &LevelRules) {
        for level in LEVELS {
            let Some(value) = permille(level, readings) else { continue };
            self.measured.insert(user);
            let threshold = rules.threshold(user, level);
            if value >= threshold.reached_permille() {
                self.high.insert((user, level), threshold);
            } else if value < threshold.left {
                self.high.remove(&(user, level));
            }
        }
    }

    /// Levels that are reached now.
    pub fn high(&self) -> impl Iterator<Item = (User, HighLevel, Threshold)> {
        self.high.iter().map(|((user, level), threshold)| (*user, *level, *threshold))
    }

    /// Whether anything was measured of it.
    #[must_use]
    pub fn has_measured(&self, user: User) -> bool {
        self.measured.contains(&user)
    }
}

fn permille(level: HighLevel, readings: &Readings) -> Option<u64> {
    let of = |used, total| {
        let (used, total) = (*readings.get(&used)?, *readings.get(&total)?);
        u64::try_from(u128::from(used).saturating_mul(1000).checked_div(u128::from(total))?).ok()
    };
    match level {
        HighLevel::Cpu => readings.get(&UsageMetric::Cpu).copied(),
        HighLevel::Memory => of(UsageMetric::MemoryUsed, UsageMetric::MemoryTotal),
        HighLevel::RootDisk => of(UsageMetric::DiskUsed, UsageMetric::DiskTotal),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::id::GuestUid;

    use super::*;

    fn sample(disk: u64, guests: &[(u128, u64)]) -> UsageSample {
        let readings = |used| Readings::from([(UsageMetric::DiskUsed, used), (UsageMetric::DiskTotal, 100)]);
        let guest = |(uid, used): &(u128, u64)| (GuestUid::new(uuid::Uuid::from_u128(*uid)), readings(*used));
        UsageSample {
            at: jiff::Timestamp::UNIX_EPOCH,
            host: readings(disk),
            guests: guests.iter().map(guest).collect(),
        }
    }

    #[test]
    fn a_level_is_left_lower_than_it_is_reached() {
        let mut levels = UsageLevels::default();
        assert!(!levels.has_measured(User::Host));
        let reached =
            [(89, false), (90, true), (86, true), (85, true), (84, false), (89, false), (100, true)];
        for (used, expected) in reached {
            levels.note(&sample(used, &[]), &LevelRules::default());
            assert_eq!(
                levels.high().any(|(user, level, _)| (user, level) == (User::Host, HighLevel::RootDisk)),
                expected,
                "{used}"
            );
        }
        assert!(levels.has_measured(User::Host));
    }

    #[test]
    fn a_guest_without_figures_is_forgotten() {
        let mut levels = UsageLevels::default();
        let user = |n| User::Guest(GuestUid::new(uuid::Uuid::from_u128(n)));
        let rules = LevelRules::default();
        levels.note(&sample(1, &[(1, 95), (2, 95)]), &rules);
        levels.note(&sample(1, &[(1, 95)]), &rules);
        assert_eq!(
            levels.high().map(|(user, level, _)| (user, level)).collect::<Vec<_>>(),
            [(user(1), HighLevel::RootDisk)]
        );
        assert!(levels.has_measured(user(1)) && !levels.has_measured(user(2)));
    }
}
