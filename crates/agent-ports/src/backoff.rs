//! Bounded, random, doubling delays.
//!
//! Input: how many times it failed, and a random number. Output: a duration. Deliberately absent: waiting.

use std::time::Duration;

/// The bounds of a series of waits.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The first wait, on average.
    pub first: Duration,
    /// No wait is longer.
    pub longest: Duration,
}

impl Backoff {
    /// The wait after `failures` failures in a row. `random` spreads it over one half to one and a half, so that a
    /// hundred agents whose hub comes back do not call in the same second.
    #[must_use]
    pub fn after(&self, failures: u32, random: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let middle = self.first.saturating_mul(1 << doublings).min(self.longest);
        let share = 0.5 + f64::from(random) / f64::from(u32::MAX);
        middle.mul_f64(share).min(self.longest)
    }
}

/// A random number for [`Backoff::after`]. Without randomness the middle of the range does: only the spread is lost.
#[must_use]
pub fn spread() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_spread_and_stop_growing() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
        assert_eq!(backoff.after(1, 0), Duration::from_millis(500));
        assert_eq!(backoff.after(3, 0), Duration::from_secs(2));
        assert_eq!(backoff.after(3, u32::MAX), Duration::from_secs(6));
        for failures in [10, 1000, u32::MAX] {
            assert_eq!(backoff.after(failures, u32::MAX), Duration::from_secs(60));
        }
    }
}
