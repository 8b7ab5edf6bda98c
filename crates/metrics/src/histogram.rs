//! Counts of durations by their size.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds in millionths of a second: a check-in takes from half a thousandth, without news, to some hundredths; from a
/// second on a hub is too slow.
pub const BOUNDS_US: [u64; 8] = [500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000, 5_000_000];

/// Durations, counted since the start.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Of each bound, those that are within it and beyond the one before.
    within: [AtomicU64; BOUNDS_US.len()],
    beyond: AtomicU64,
    sum_us: AtomicU64,
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Each bound with how many are within it.
    pub buckets: Vec<(u64, u64)>,
    pub count: u64,
    pub sum_us: u64,
}

impl Histogram {
    /// Counts one.
    pub fn observe(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.iter().zip(&self.within).find(|(bound, _)| us <= **bound);
        bucket.map_or(&self.beyond, |(_, bucket)| bucket).fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The counts now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut total = 0;
        let buckets = BOUNDS_US.iter().zip(&self.within).map(|(bound, bucket)| {
            total += bucket.load(Ordering::Relaxed);
            (*bound, total)
        });
        let buckets = buckets.collect();
        let count = total + self.beyond.load(Ordering::Relaxed);
        Counts { buckets, count, sum_us: self.sum_us.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket_and_each_bucket_to_the_next() {
        let histogram = Histogram::default();
        for us in [0, 500, 501, 5_000_000, 5_000_001, u64::MAX / 4] {
            histogram.observe(Duration::from_micros(us));
        }
        let counts = histogram.counts();
        let within: Vec<u64> = counts.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(within, [2, 3, 3, 3, 3, 3, 3, 4]);
        assert_eq!(counts.count, 6);
        assert!(BOUNDS_US.is_sorted());
    }
}
