//! Levels of use that are too high, with hysteresis.
//!
//! In: samples. Out: which subjects are above a level. A level is reached at one value and left at a lower one, so that a value
//! between them changes nothing. How long it must last before an operator hears of it is the grace of its condition. A guest that
//! a sample does not have is forgotten: it stopped, or its figures could not be read.

use std::collections::BTreeSet;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{Readings, UsageMetric, UsageSample};

/// What is too high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HighLevel {
    Cpu,
    Memory,
    RootDisk,
}

/// Who uses too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    Host,
    Guest(GuestUid),
}

/// Thousandths at which a level is reached, and below which it is left.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    level: HighLevel,
    reached: u64,
    left: u64,
}

const THRESHOLDS: [Threshold; 3] = [
    Threshold { level: HighLevel::Cpu, reached: 950, left: 850 },
    Threshold { level: HighLevel::Memory, reached: 950, left: 900 },
    Threshold { level: HighLevel::RootDisk, reached: 900, left: 850 },
];

/// Levels that are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageLevels {
    high: BTreeSet<(User, HighLevel)>,
    /// Those of which a sample said anything since the agent started.
    measured: BTreeSet<User>,
}

impl UsageLevels {
    /// Takes in a sample.
    pub fn note(&mut self, sample: &UsageSample) {
        let is_there = |user: &User| match user {
            User::Host => true,
            User::Guest(uid) => sample.guests.contains_key(uid),
        };
        self.high.retain(|(user, _)| is_there(user));
        self.measured.retain(is_there);
        self.judge(User::Host, &sample.host);
        for (uid, readings) in &sample.guests {
            self.judge(User::Guest(*uid), readings);
        }
    }

    fn judge(&mut self, user: User, readings: &Readings) {
        for threshold in THRESHOLDS {
            let Some(value) = permille(threshold.level, readings) else { continue };
            self.measured.insert(user);
            if value >= threshold.reached {
                self.high.insert((user, threshold.level));
            } else if value < threshold.left {
                self.high.remove(&(user, threshold.level));
            }
        }
    }

    /// Levels that are reached now.
    pub fn high(&self) -> impl Iterator<Item = (User, HighLevel)> {
        self.high.iter().copied()
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
            levels.note(&sample(used, &[]));
            assert_eq!(
                levels.high().any(|high| high == (User::Host, HighLevel::RootDisk)),
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
        levels.note(&sample(1, &[(1, 95), (2, 95)]));
        levels.note(&sample(1, &[(1, 95)]));
        assert_eq!(levels.high().collect::<Vec<_>>(), [(user(1), HighLevel::RootDisk)]);
        assert!(levels.has_measured(user(1)) && !levels.has_measured(user(2)));
    }
}
