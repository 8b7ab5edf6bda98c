//! The clock of a replay.
//!
//! Recorded calls were seconds apart and backups are named by the second; a replay is much faster, so time is moved on a little before
//! each call.
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// Real time and an offset.
#[derive(Debug)]
pub struct MovedClock {
    real: SystemClock,
    offset_ms: AtomicI64,
}

impl MovedClock {
    /// Starts at the real time.
    #[must_use]
    pub const fn new() -> Self {
        Self { real: SystemClock::starting_at(1_000), offset_ms: AtomicI64::new(0) }
    }

    /// Starts at a recorded time, in Unix seconds.
    #[must_use]
    pub fn at(recorded_s: i64) -> Self {
        let clock = Self::new();
        clock.offset_ms.store(recorded_s * 1000 - clock.real.now_ms(), Ordering::SeqCst);
        clock
    }

    /// Advances time to a recorded one; it never moves back.
    pub fn reach(&self, recorded_s: i64) {
        let ahead_ms = recorded_s * 1000 - self.now_ms();
        if ahead_ms > 0 {
            self.offset_ms.fetch_add(ahead_ms, Ordering::SeqCst);
        }
    }

    /// Moves time on.
    pub fn advance(&self, by: Duration) {
        self.offset_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or_default(), Ordering::SeqCst);
    }
}

impl Default for MovedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MovedClock {
    fn now_ms(&self) -> i64 {
        self.real.now_ms() + self.offset_ms.load(Ordering::SeqCst)
    }

    fn pause(&self, length: Duration) {
        self.real.pause(length);
    }

    fn next_number(&self) -> u64 {
        self.real.next_number()
    }

    fn random(&self, bytes: &mut [u8]) {
        self.real.random(bytes);
    }
}
