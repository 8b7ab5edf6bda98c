//! What the hub has of our report, and when to ask again: pure.

use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, Coverage, Need};
use holdfast_protocol::report::Sections;

/// No hub makes an agent ask more often than this, whatever it answers.
const SHORTEST: Duration = Duration::from_secs(1);

/// What became of the document in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There was none.
    Nothing,
    /// It is in use now.
    Taken,
    /// It was held already, or refused.
    NotTaken,
}

/// What the hub has.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    sequence: u64,
    acknowledged: Option<Sections>,
}

impl Exchange {
    /// The number, coverage and sections of the next report.
    pub(super) fn next(&mut self, now: &Sections) -> (u64, Coverage, Sections) {
        self.sequence += 1;
        match &self.acknowledged {
            None => (self.sequence, Coverage::Full, now.clone()),
            Some(before) => (self.sequence, Coverage::Changed, now.changed_since(before)),
        }
    }

    /// The hub answered to the last report, which told it of `sent`.
    pub(super) fn answered(&mut self, answer: &CheckinAnswer, sent: Sections) {
        match answer.need {
            Need::Full => self.acknowledged = None,
            Need::Changed if answer.acknowledged >= self.sequence => self.acknowledged = Some(sent),
            // The hub kept another report than this one: what it has is not known.
            Need::Changed => self.acknowledged = None,
        }
    }
}

/// How long to wait before the next check-in.
pub(super) fn pause(answer: &CheckinAnswer, verdict: Verdict, elapsed: Duration, wait: Duration) -> Duration {
    let interval = Duration::from_secs(answer.poll_interval_s.get().into());
    let was_held = elapsed + SHORTEST >= wait.min(interval);
    match verdict {
        Verdict::Taken => Duration::ZERO,
        _ if answer.need == Need::Full => SHORTEST,
        Verdict::Nothing if was_held && elapsed >= SHORTEST => Duration::ZERO,
        Verdict::Nothing | Verdict::NotTaken => interval.saturating_sub(elapsed).max(SHORTEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(acknowledged: u64, need: Need) -> CheckinAnswer {
        CheckinAnswer { acknowledged, need, poll_interval_s: 30.try_into().unwrap(), desired: None }
    }

    fn sections(waiting: bool) -> Sections {
        Sections { guests: Some(Vec::new()), waiting: waiting.then(Vec::new), ..Sections::default() }
    }

    #[test]
    fn what_was_not_acknowledged_is_told_again() {
        let mut exchange = Exchange::default();
        let (first, second) = (sections(false), sections(true));
        assert_eq!(exchange.next(&first).1, Coverage::Full);
        assert_eq!(exchange.next(&first).1, Coverage::Full, "the answer to the first never came");
        exchange.answered(&answer(2, Need::Changed), first);
        let (sequence, coverage, told) = exchange.next(&second);
        assert_eq!((sequence, coverage), (3, Coverage::Changed));
        assert!(told.guests.is_none() && told.waiting.is_some());
        assert!(exchange.next(&second).2.waiting.is_some(), "dropped on the way, told again");
        exchange.answered(&answer(4, Need::Changed), second.clone());
        assert!(exchange.next(&second).2.is_empty());
        exchange.answered(&answer(5, Need::Full), second.clone());
        assert_eq!(exchange.next(&second).1, Coverage::Full);
        exchange.answered(&answer(2, Need::Changed), second.clone());
        assert_eq!(exchange.next(&second).1, Coverage::Full, "the hub kept an older report");
    }

    #[test]
    fn no_answer_makes_the_agent_spin() {
        let (wait, at_once) = (Duration::from_secs(25), Duration::from_millis(5));
        let quiet = answer(1, Need::Changed);
        assert_eq!(pause(&quiet, Verdict::Nothing, wait, wait), Duration::ZERO, "it was held open");
        assert_eq!(pause(&quiet, Verdict::Taken, at_once, wait), Duration::ZERO);
        assert!(pause(&quiet, Verdict::Nothing, at_once, wait) > Duration::from_secs(29));
        assert!(pause(&quiet, Verdict::NotTaken, at_once, wait) > Duration::from_secs(29));
        assert_eq!(pause(&answer(1, Need::Full), Verdict::Nothing, at_once, wait), SHORTEST);
        let hasty = CheckinAnswer { poll_interval_s: 1.try_into().unwrap(), ..quiet };
        assert_eq!(pause(&hasty, Verdict::Nothing, at_once, wait), SHORTEST);
    }
}
