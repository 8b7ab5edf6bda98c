//! Retry delays of failed deliveries.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// What to do after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Try again after this.
    Pause(Duration),
    /// Let it go and say so in the log.
    GiveUp,
}

/// Judges the `failures`-th failure in a row (the first is 1) of what happened then and is worth trying for so long.
#[must_use]
pub fn after(failures: u32, happened: Timestamp, now: Timestamp, tried_for: SignedDuration) -> AfterFailure {
    if now.duration_since(happened) > tried_for {
        return AfterFailure::GiveUp;
    }
    let doubled = Duration::from_secs(1 << failures.saturating_sub(1).min(16));
    AfterFailure::Pause(doubled.min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes_and_its_time_is_the_end() {
        let day = SignedDuration::from_hours(24);
        let start = Timestamp::from_second(1_700_000_000).unwrap();
        let soon = start + SignedDuration::from_secs(3);
        let seconds = |failures| match after(failures, start, soon, day) {
            AfterFailure::Pause(pause) => pause.as_secs(),
            AfterFailure::GiveUp => 0,
        };
        assert_eq!([1, 2, 3, 9, 10, 4_000_000_000].map(seconds), [1, 2, 4, 256, 300, 300]);
        assert_eq!(after(1, start, start + SignedDuration::from_hours(25), day), AfterFailure::GiveUp);
    }
}
