//! Rate limits per peer, as token buckets.
//!
//! Input: the peer, the amount, and the forward clock. Output: yes, or the seconds to wait. Buckets are bounded in
//! number: those that are full again are forgotten, which changes nothing for their owners.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

/// Ten thousand guests, each with its address, and room for strangers.
const BUCKETS_MAX: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOften {
    /// When one request is free again, rounded up.
    pub retry_after_s: u32,
}

struct Bucket {
    left: f64,
    at: Duration,
}

/// One bucket for each peer.
pub struct Rates<K> {
    per_minute: u32,
    buckets: Mutex<HashMap<K, Bucket>>,
}

impl<K: Eq + Hash> Rates<K> {
    /// `per_minute` requests a minute for each peer, at once or spread.
    #[must_use]
    pub fn per_minute(per_minute: u32) -> Self {
        Self { per_minute: per_minute.max(1), buckets: Mutex::new(HashMap::new()) }
    }

    /// Takes one request from `who`'s bucket.
    pub fn take(&self, who: K, now: Duration) -> Result<(), TooOften> {
        self.take_many(who, 1, now)
    }

    /// Takes `many` at once from `who`'s bucket, at most the size of the bucket.
    ///
    /// # Errors
    /// [`TooOften`]; the bucket is as it was.
    pub fn take_many(&self, who: K, many: u32, now: Duration) -> Result<(), TooOften> {
        let capacity = f64::from(self.per_minute);
        let per_second = capacity / 60.0;
        // A poisoned lock holds plain numbers, which are as good as before.
        let mut buckets = self.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&who) {
            buckets.retain(|_, bucket| {
                bucket.left + now.saturating_sub(bucket.at).as_secs_f64() * per_second < capacity
            });
            if buckets.len() >= BUCKETS_MAX {
                return Err(TooOften { retry_after_s: 60 });
            }
        }
        let bucket = buckets.entry(who).or_insert(Bucket { left: capacity, at: now });
        let filled = bucket.left + now.saturating_sub(bucket.at).as_secs_f64() * per_second;
        bucket.left = filled.min(capacity);
        bucket.at = now;
        let many = f64::from(many.min(self.per_minute));
        if bucket.left >= many {
            bucket.left -= many;
            return Ok(());
        }
        let wait = ((many - bucket.left) / per_second).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 60")]
        let retry_after_s = wait.clamp(1.0, 60.0) as u32;
        Err(TooOften { retry_after_s })
    }

    /// Gives back one request that was taken from `who`'s bucket: it does not count.
    pub fn give_back(&self, who: &K) {
        let mut buckets = self.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(who) {
            bucket.left = (bucket.left + 1.0).min(f64::from(self.per_minute));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limits_are_per_peer() {
        let rates = Rates::per_minute(60);
        let start = Duration::from_secs(1000);
        for _ in 0..60 {
            rates.take("loud", start).unwrap();
        }
        assert_eq!(rates.take("loud", start), Err(TooOften { retry_after_s: 1 }));
        assert_eq!(rates.take("quiet", start), Ok(()));
        assert_eq!(rates.take("loud", start + Duration::from_millis(1100)), Ok(()));
        assert!(rates.take("loud", start + Duration::from_millis(1200)).is_err());
        // A clock that fell back gives nothing away.
        assert!(rates.take("loud", start).is_err());
    }

    #[test]
    fn several_units_are_taken_together_or_not_at_all() {
        let rates = Rates::per_minute(60);
        let start = Duration::from_secs(1000);
        rates.take_many("loud", 50, start).unwrap();
        assert_eq!(rates.take_many("loud", 20, start), Err(TooOften { retry_after_s: 10 }));
        assert_eq!(rates.take_many("loud", 10, start), Ok(()), "a refusal took nothing");
        assert_eq!(rates.take_many("quiet", 1_000, start), Ok(()), "more than a bucket is a whole bucket");
        assert!(rates.take("quiet", start).is_err());
    }

    #[test]
    fn what_is_given_back_does_not_count() {
        let rates = Rates::per_minute(2);
        for _ in 0..100 {
            rates.take("right", Duration::ZERO).unwrap();
            rates.give_back(&"right");
        }
        rates.take("right", Duration::ZERO).unwrap();
        rates.take("right", Duration::ZERO).unwrap();
        assert!(rates.take("right", Duration::ZERO).is_err());
        // Never more than a bucket holds.
        (0..9).for_each(|_| rates.give_back(&"right"));
        rates.give_back(&"unknown");
        assert!((0..2).all(|_| rates.take("right", Duration::ZERO).is_ok()));
        assert!(rates.take("right", Duration::ZERO).is_err());
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let rates = Rates::per_minute(60);
        for name in 0..BUCKETS_MAX {
            rates.take(name, Duration::ZERO).unwrap();
        }
        assert!(rates.take(usize::MAX, Duration::ZERO).is_err());
        assert_eq!(rates.take(0, Duration::ZERO), Ok(()), "who is known is served on");
        assert_eq!(rates.take(usize::MAX, Duration::from_secs(5)), Ok(()), "full buckets were forgotten");
    }

    #[test]
    fn a_bucket_fills_by_its_own_rate() {
        let rates = Rates::per_minute(120);
        let start = Duration::from_secs(1000);
        rates.take_many("loud", 120, start).unwrap();
        assert_eq!(rates.take_many("loud", 40, start), Err(TooOften { retry_after_s: 20 }));
        assert_eq!(rates.take_many("loud", 20, start + Duration::from_secs(10)), Ok(()));
        assert_eq!(rates.take("loud", start + Duration::from_secs(10)), Err(TooOften { retry_after_s: 1 }));
    }

    #[test]
    fn only_full_buckets_are_forgotten() {
        let taken = |many: u32| {
            let rates = Rates::per_minute(120);
            (0..BUCKETS_MAX).for_each(|name| rates.take_many(name, many, Duration::ZERO).unwrap());
            rates
        };
        assert!(taken(1).take(usize::MAX, Duration::from_millis(499)).is_err());
        assert_eq!(taken(1).take(usize::MAX, Duration::from_millis(500)), Ok(()));
        assert!(taken(20).take(usize::MAX, Duration::from_secs(1)).is_err());
    }
}
