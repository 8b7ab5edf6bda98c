//! When the latest time seen may move: a clock that is synchronised, and that ran evenly for a while.
//!
//! What comes in: glances at the wall clock, at the clock that only runs forward, and at whether somebody keeps the wall
//! clock right. What goes out: a time to be written down, which no clock is believed to stand behind afterwards. A time
//! that was written too far ahead would stop every job until it is reached, so a jump is not believed: after one the clock
//! must run evenly again. A jump ahead and back therefore leaves nothing behind. Pure; nothing of it outlives a run.

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use jiff::{SignedDuration, Timestamp};

/// Whether somebody keeps the wall clock right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchrony {
    /// A time service says that it does.
    Kept,
    /// None does, or none can be asked.
    Unkept,
}

/// One look at the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The wall clock.
    pub wall: Timestamp,
    /// The clock that only runs forward.
    pub forward: Duration,
    /// Whether the wall clock is kept right.
    pub synchrony: Synchrony,
}

/// A clock is believed once it ran evenly for so long. An operator's slip with `date` is seen and set right within it.
pub const STEADY: Duration = Duration::from_secs(600);

/// What is written is behind by at most this: a resting agent rests.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_mins(15);

/// Both clocks may part by this between two glances, and by a thousandth of what passed: a slewed clock is no jump.
const APART: Duration = Duration::from_secs(2);

/// A person is told of a clock that nobody keeps after this: a machine that starts needs a while.
const TOLD_AFTER: Duration = Duration::from_secs(600);

/// What was seen of the clocks in this run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timekeeper {
    last: Option<Glance>,
    steady_since: Option<Duration>,
    unkept_since: Option<Duration>,
    written: Option<Timestamp>,
}

impl Timekeeper {
    /// Takes a glance. Gives the time to be written down, when it is believed and far enough from the last one.
    pub fn look(&mut self, glance: Glance) -> Option<Timestamp> {
        let even = self.last.is_some_and(|last| ran_evenly(&last, &glance));
        self.last = Some(glance);
        if glance.synchrony == Synchrony::Unkept {
            self.unkept_since.get_or_insert(glance.forward);
            self.steady_since = None;
            return None;
        }
        self.unkept_since = None;
        if !even {
            self.steady_since = None;
        }
        let since = *self.steady_since.get_or_insert(glance.forward);
        if glance.forward.saturating_sub(since) < STEADY {
            return None;
        }
        let due = self.written.is_none_or(|written| glance.wall.duration_since(written) >= WRITTEN_EVERY);
        due.then(|| *self.written.insert(glance.wall))
    }

    /// What a person should know.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        let (since, last) = (self.unkept_since?, self.last?);
        (last.forward.saturating_sub(since) >= TOLD_AFTER).then(|| {
            let text = "nobody keeps this box's clock right: start chrony or systemd-timesyncd (`timedatectl set-ntp true`); until \
                        then the latest time seen does not move, and a clock that is set back is noticed late";
            Problem::new(ErrorCode::ClockUnkept, text)
        })
    }
}

fn ran_evenly(last: &Glance, now: &Glance) -> bool {
    let Some(passed) = now.forward.checked_sub(last.forward) else { return false };
    let wall = now.wall.duration_since(last.wall);
    let Ok(passed_signed) = SignedDuration::try_from(passed) else { return false };
    let apart = (wall - passed_signed).abs();
    SignedDuration::try_from(APART + passed / 1_000).is_ok_and(|most| apart <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEARS: i64 = 10 * 365 * 86_400;

    struct Clocks {
        keeper: Timekeeper,
        wall_s: i64,
        forward_s: u64,
    }

    impl Clocks {
        fn start() -> Self {
            Self { keeper: Timekeeper::default(), wall_s: 1_800_000_000, forward_s: 5 }
        }

        /// Lets so many minutes pass, a glance in each. Gives what was to be written, in seconds after the start.
        fn run(&mut self, minutes: u64, synchrony: Synchrony) -> Vec<i64> {
            let mut written = Vec::new();
            for _ in 0..minutes {
                let wall = Timestamp::from_second(self.wall_s).unwrap();
                let forward = Duration::from_secs(self.forward_s);
                let told = self.keeper.look(Glance { wall, forward, synchrony });
                written.extend(told.map(|at| at.as_second() - 1_800_000_000));
                self.wall_s += 60;
                self.forward_s += 60;
            }
            written
        }
    }

    #[test]
    fn a_steady_clock_is_believed_after_a_while_and_written_now_and_then() {
        let mut clocks = Clocks::start();
        assert_eq!(clocks.run(10, Synchrony::Kept), Vec::<i64>::new());
        assert_eq!(clocks.run(31, Synchrony::Kept), [600, 1_500, 2_400]);
    }

    #[test]
    fn a_jump_ahead_and_back_leaves_nothing_behind() {
        for jump in [YEARS, 86_400, 181, -86_400] {
            let mut clocks = Clocks::start();
            clocks.run(20, Synchrony::Kept);
            clocks.wall_s += jump;
            assert_eq!(clocks.run(9, Synchrony::Kept), Vec::<i64>::new(), "{jump}");
            clocks.wall_s -= jump;
            let after = clocks.run(60, Synchrony::Kept);
            assert!(
                !after.is_empty() && after.iter().all(|at| (1_000..6_000).contains(at)),
                "{jump}: {after:?}"
            );
        }
    }

    #[test]
    fn a_clock_that_nobody_keeps_moves_nothing_and_is_told() {
        let mut clocks = Clocks::start();
        assert_eq!(clocks.run(10, Synchrony::Unkept), Vec::<i64>::new());
        assert_eq!(clocks.keeper.problem(), None);
        assert_eq!(clocks.run(600, Synchrony::Unkept), Vec::<i64>::new());
        assert_eq!(clocks.keeper.problem().unwrap().code, ErrorCode::ClockUnkept);
        assert_eq!(clocks.run(1, Synchrony::Kept), Vec::<i64>::new());
        assert_eq!(clocks.keeper.problem(), None);
    }

    #[test]
    fn a_slewed_clock_is_no_jump_and_a_pause_of_the_machine_is_one() {
        let mut clocks = Clocks::start();
        for _ in 0..15 {
            clocks.run(1, Synchrony::Kept);
            clocks.wall_s += 1;
        }
        assert_eq!(clocks.run(1, Synchrony::Kept).len(), 0, "written before, and not due again");
        assert!(clocks.keeper.written.is_some());
        clocks.wall_s += 8 * 3_600;
        assert_eq!(clocks.run(10, Synchrony::Kept), Vec::<i64>::new());
        assert_eq!(clocks.run(2, Synchrony::Kept).len(), 1);
    }
}
