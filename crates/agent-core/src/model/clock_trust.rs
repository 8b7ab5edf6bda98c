//! The rule by which the latest trusted time moves.
//!
//! What comes in: readings of the wall clock, of the clock that only runs forward, and of whether the wall clock is
//! synchronised. What goes out: a time to be written down; afterwards no clock is trusted that is behind it. A time
//! that was written too far ahead would stop every job until it is reached, so a jump is not believed: after one the
//! clock must run evenly again. A jump ahead and back therefore leaves nothing behind. Pure; nothing of it outlives a
//! run.
//!
//! Schedules go by a time of their own, [`TrustedTime`]: the wall clock for as long as it runs evenly, and from a jump on the time
//! that has passed since, until the wall clock is believed again ([`docs/adr/0027`](../../../docs/adr/0027-schedules-under-a-wrong-clock.md)).

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use jiff::{SignedDuration, Timestamp};

/// Whether the wall clock is synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchrony {
    /// A time service says that it does.
    Kept,
    /// None does, or none can be asked.
    Unkept,
}

/// One reading of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// The wall clock.
    pub wall: Timestamp,
    /// The clock that only runs forward.
    pub forward: Duration,
    /// Whether the wall clock is kept right.
    pub synchrony: Synchrony,
}

/// A clock is believed once it ran evenly for so long. An operator's slip with `date` is seen and set right within it.
pub const STEADY: Duration = Duration::from_secs(600);

/// The written time is behind by at most this: an idle agent writes no more often.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_mins(15);

/// Both clocks may part by this between two glances, and by a thousandth of what passed: a slewed clock is no jump.
const APART: Duration = Duration::from_secs(2);

/// An unsynchronised clock is reported to the operator after this time: a machine that starts needs a while.
const REPORTED_AFTER: Duration = Duration::from_secs(600);

/// An unsynchronised wall clock is trusted again once it ran evenly for this long: an operator set it and left it
/// there.
const SETTLED: Duration = Duration::from_secs(3_600);

/// The time that schedules go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedTime {
    /// What time it is.
    pub at: Timestamp,
    /// Since when this time is used: the beginning of this run, or the end of a jump. No controller was waited for
    /// before that.
    pub since: Timestamp,
    /// Whether something may be thrown away by it.
    pub steady: Steady,
}

/// Whether a clock is good enough to throw something away by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steady {
    /// It is synchronised, ran evenly for a while, and is not behind any time that was seen.
    Yes,
    /// It is not, or that is not known yet.
    No,
}

/// What schedules go by between two glances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// What time it was.
    wall: Timestamp,
    /// By the clock that only runs forward.
    forward: Duration,
    /// As in [`TrustedTime`].
    since: Timestamp,
    /// As in [`TrustedTime`].
    steady: Steady,
}

impl Anchor {
    /// The time at this reading of the clock that only runs forward.
    #[must_use]
    pub fn at(&self, forward: Duration) -> TrustedTime {
        let passed =
            SignedDuration::try_from(forward.saturating_sub(self.forward)).unwrap_or(SignedDuration::MAX);
        let at = self.wall.checked_add(passed).unwrap_or(Timestamp::MAX);
        TrustedTime { at, since: self.since, steady: self.steady }
    }
}

/// What was seen of the clocks in this run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timekeeper {
    anchor: Option<Anchor>,
    /// Since when both clocks run evenly, whether synchronised or not.
    even_since: Option<Duration>,
    /// The latest time that an earlier run had seen.
    latest: Option<Timestamp>,
    last: Option<ClockSample>,
    steady_since: Option<Duration>,
    unkept_since: Option<Duration>,
    written: Option<Timestamp>,
}

impl Timekeeper {
    /// Takes one reading. Gives the time to be written down, when it is believed and far enough from the last one.
    pub fn look(&mut self, glance: ClockSample) -> Option<Timestamp> {
        let even = self.last.is_some_and(|last| ran_evenly(&last, &glance));
        if !even {
            self.even_since = None;
        }
        self.even_since.get_or_insert(glance.forward);
        let reported = self.judge(glance, even);
        self.anchor = Some(self.anchored(glance));
        self.last = Some(glance);
        reported
    }

    /// Sets the latest time that an earlier run had seen, before the first reading.
    pub const fn not_before(&mut self, latest: Timestamp) {
        self.latest = Some(latest);
    }

    /// The time that schedules use; none before the first reading.
    #[must_use]
    pub const fn anchor(&self) -> Option<Anchor> {
        self.anchor
    }

    /// What time schedules take it for, between glances; before the first one, what the wall clock says.
    #[must_use]
    pub fn belief(&self, forward: Duration, wall: Timestamp) -> TrustedTime {
        let not_yet = TrustedTime { at: wall, since: wall, steady: Steady::No };
        self.anchor.map_or(not_yet, |anchor| anchor.at(forward))
    }

    fn anchored(&self, glance: ClockSample) -> Anchor {
        let ClockSample { wall, forward, synchrony } = glance;
        let behind = self.latest.is_some_and(|latest| wall < latest);
        let ran =
            |since: Option<Duration>, long| since.is_some_and(|since| forward.saturating_sub(since) >= long);
        let kept = ran(self.steady_since, STEADY);
        let steady = if kept && !behind { Steady::Yes } else { Steady::No };
        let anew = |wall| Anchor { wall, forward, since: wall, steady };
        let Some(anchor) = self.anchor else {
            // A clock that begins behind what was seen is wrong; so much later than that it is at least.
            return anew(self.latest.map_or(wall, |latest| latest.max(wall)));
        };
        let before = self.last.unwrap_or(glance);
        let believed = ClockSample { wall: anchor.at(before.forward).at, ..before };
        if ran_evenly(&believed, &glance) {
            return Anchor { wall, forward, since: anchor.since, steady };
        }
        if kept || (synchrony == Synchrony::Unkept && ran(self.even_since, SETTLED)) {
            return anew(wall);
        }
        Anchor { wall: anchor.at(forward).at, forward, since: anchor.since, steady: Steady::No }
    }

    /// Whether a time is to be written down.
    fn judge(&mut self, glance: ClockSample, even: bool) -> Option<Timestamp> {
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

    /// The latest time that was written down, by this run or an earlier one, where the wall clock is behind it.
    #[must_use]
    pub fn behind(&self) -> Option<Timestamp> {
        let (latest, last) = (self.latest.max(self.written)?, self.last?);
        (last.wall < latest).then_some(latest)
    }

    /// What a person should know.
    #[must_use]
    pub fn problem(&self) -> Option<ErrorBody> {
        let (since, last) = (self.unkept_since?, self.last?);
        (last.forward.saturating_sub(since) >= REPORTED_AFTER).then(|| {
            let text = "nobody keeps this box's clock right: start chrony or systemd-timesyncd (`timedatectl set-ntp true`); until \
                        then no backup and no scheduled snapshot is removed, so storages fill up, the latest time seen does not \
                        move, and a clock that is set back is noticed late";
            ErrorBody::new(ErrorCode::ClockUnkept, text)
        })
    }
}

fn ran_evenly(last: &ClockSample, now: &ClockSample) -> bool {
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

        /// Lets so many minutes pass, with one reading in each. Gives what was to be written, in seconds after the
        /// start.
        fn run(&mut self, minutes: u64, synchrony: Synchrony) -> Vec<i64> {
            let mut written = Vec::new();
            for _ in 0..minutes {
                let wall = Timestamp::from_second(self.wall_s).unwrap();
                let forward = Duration::from_secs(self.forward_s);
                let reported = self.keeper.look(ClockSample { wall, forward, synchrony });
                written.extend(reported.map(|at| at.as_second() - 1_800_000_000));
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
    fn a_clock_that_no_one_keeps_moves_nothing_and_is_reported() {
        let mut clocks = Clocks::start();
        assert_eq!(clocks.run(10, Synchrony::Unkept), Vec::<i64>::new());
        assert_eq!(clocks.keeper.problem(), None);
        assert_eq!(clocks.run(600, Synchrony::Unkept), Vec::<i64>::new());
        let problem = clocks.keeper.problem().unwrap();
        assert_eq!(problem.code, ErrorCode::ClockUnkept);
        assert!(problem.message.contains("no backup and no scheduled snapshot is removed"), "{problem}");
        assert_eq!(clocks.run(1, Synchrony::Kept), Vec::<i64>::new());
        assert_eq!(clocks.keeper.problem(), None);
    }

    #[test]
    fn schedules_go_on_by_what_passed_until_the_wall_clock_is_believed_again() {
        let begun =
            |clocks: &Clocks| clocks.keeper.anchor().unwrap().at(Duration::from_secs(clocks.forward_s));
        for (synchrony, minutes) in [(Synchrony::Kept, 10), (Synchrony::Unkept, 60)] {
            for jump in [YEARS, 86_400, -86_400] {
                let mut clocks = Clocks::start();
                clocks.run(90, synchrony);
                let right = clocks.wall_s;
                assert_eq!(begun(&clocks).at.as_second(), right);
                assert_eq!(begun(&clocks).steady == Steady::Yes, synchrony == Synchrony::Kept);
                clocks.wall_s += jump;
                clocks.run(minutes, synchrony);
                let minutes = i64::try_from(minutes).unwrap();
                let seen = begun(&clocks);
                assert_eq!((seen.at.as_second(), seen.steady), (right + 60 * minutes, Steady::No), "{jump}");
                clocks.run(2, synchrony);
                let seen = begun(&clocks);
                assert_eq!(seen.at.as_second(), clocks.wall_s, "{jump}: it is the time, it seems");
                assert_eq!(
                    seen.since.as_second(),
                    clocks.wall_s - 120,
                    "{jump}: and nobody was waited for before"
                );
            }
        }
    }

    #[test]
    fn a_clock_that_begins_behind_what_was_seen_is_not_gone_by() {
        let mut clocks = Clocks::start();
        clocks.keeper.not_before(Timestamp::from_second(1_800_086_400).unwrap());
        clocks.run(10, Synchrony::Kept);
        let seen = clocks.keeper.anchor().unwrap().at(Duration::from_secs(clocks.forward_s));
        assert_eq!((seen.at.as_second(), seen.steady), (1_800_087_000, Steady::No));
        clocks.run(2, Synchrony::Kept);
        let seen = clocks.keeper.anchor().unwrap().at(Duration::from_secs(clocks.forward_s));
        assert_eq!(
            (seen.at.as_second(), seen.steady),
            (clocks.wall_s, Steady::No),
            "nothing is thrown away by it"
        );
    }

    #[test]
    fn a_clock_behind_a_time_that_was_written_is_reported_until_it_is_right() {
        let mut clocks = Clocks::start();
        clocks.run(20, Synchrony::Kept);
        assert_eq!(clocks.keeper.behind(), None);
        clocks.wall_s -= 86_400;
        clocks.run(20, Synchrony::Kept);
        assert_eq!(clocks.keeper.behind(), clocks.keeper.written);
        clocks.wall_s += 86_400;
        clocks.run(1, Synchrony::Kept);
        assert_eq!(clocks.keeper.behind(), None);
        // Of an earlier run.
        let (mut next, latest) = (Clocks::start(), Timestamp::from_second(1_800_086_400).unwrap());
        next.keeper.not_before(latest);
        next.run(1, Synchrony::Unkept);
        assert_eq!(next.keeper.behind(), Some(latest));
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
