//! The time since which a program has been able to hear another.
//!
//! In: readings of the clock. Out: since when there was no gap. A program that was stopped or suspended, or whose clock
//! was set back, must not take its own absence for the silence of others.

use jiff::{SignedDuration, Timestamp};

/// Since when a program has been listening without a gap.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    since: Timestamp,
    looked_at: Timestamp,
    /// Two readings that are further apart show an absence.
    absence: SignedDuration,
}

impl Listening {
    /// From now on.
    #[must_use]
    pub const fn from(now: Timestamp, absence: SignedDuration) -> Self {
        Self { since: now, looked_at: now, absence }
    }

    /// Reads the clock. A gap or a step back begins anew.
    pub fn look(&mut self, now: Timestamp) -> Timestamp {
        let gap = now.duration_since(self.looked_at);
        if gap > self.absence || gap.is_negative() {
            self.since = now;
        }
        self.looked_at = now;
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_and_a_step_back_begin_anew() {
        let at = |seconds: i64| Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        let mut listening = Listening::from(at(0), SignedDuration::from_secs(20));
        assert_eq!(listening.look(at(5)), at(0));
        assert_eq!(listening.look(at(20)), at(0));
        assert_eq!(listening.look(at(40)), at(0), "the bound itself is no gap");
        assert_eq!(listening.look(at(640)), at(640));
        assert_eq!(listening.look(at(600)), at(600), "the clock was set back");
    }
}
