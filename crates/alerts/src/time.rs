//! Arithmetic of times that cannot overflow.

use jiff::{SignedDuration, Timestamp};

/// An hour, in seconds.
pub const HOUR_S: u32 = 3_600;

/// The time so many seconds later, or the end of time.
pub fn after(at: Timestamp, seconds: u32) -> Timestamp {
    at.saturating_add(SignedDuration::from_secs(i64::from(seconds))).unwrap_or(Timestamp::MAX)
}

/// The time so many seconds earlier, or the beginning of time.
pub fn before(at: Timestamp, seconds: u32) -> Timestamp {
    at.saturating_sub(SignedDuration::from_secs(i64::from(seconds))).unwrap_or(Timestamp::MIN)
}
