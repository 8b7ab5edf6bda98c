//! Bounded, doubling and jittered waits before retries.

use std::time::Duration;

/// The first wait. An agent that restarts is back within a second or two.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait. A claim lives 600 s, so at least ten tries fall into its life.
pub const LONGEST: Duration = Duration::from_secs(60);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The other side answered.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Another failure: how long to wait now. `dice` is any random number; the wait is between half of the full time
    /// and the full time.
    pub fn next(&mut self, dice: u64) -> Duration {
        let whole = FIRST.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let half = whole / 2;
        let millis = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_millis(dice % millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_start_anew_after_an_answer() {
        for dice in [0, 1, 12_345, u64::MAX] {
            let mut backoff = Backoff::default();
            let waits: Vec<Duration> = (0..40).map(|_| backoff.next(dice)).collect();
            assert!(waits.iter().all(|wait| *wait >= FIRST / 2 && *wait <= LONGEST), "{waits:?}");
            assert!(waits[0] <= FIRST && waits[39] >= LONGEST / 2);
            backoff.reset();
            assert!(backoff.next(dice) <= FIRST);
        }
    }
}
