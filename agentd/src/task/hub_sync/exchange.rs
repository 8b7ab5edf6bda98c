//! The pure state of the exchange with the hub.

use std::time::Duration;

use holdfast_protocol::checkin::{CheckinAnswer, Coverage, Need};
use holdfast_protocol::report::Sections;

/// No hub makes an agent check in more often than this, whatever it answers.
pub(super) const SHORTEST: Duration = Duration::from_secs(1);

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

/// Whether changes may be reported now, or are held back for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Changes,
    /// Changes are held back; a full report that the hub needs first is sent all the same.
    Nothing,
}

/// One report, ready to be sent.
#[derive(Debug)]
pub(super) struct DeliveredReport {
    pub sequence: u64,
    /// Full or changed.
    pub coverage: Coverage,
    /// What it carries.
    pub sections: Sections,
    /// What the hub has once it acknowledges.
    after: Sections,
}

impl DeliveredReport {
    /// A report with news is answered at once, so that it is known to have arrived; one without is held open.
    pub(super) fn is_news(&self) -> bool {
        self.coverage == Coverage::Full || !self.sections.is_empty()
    }

    /// Whether this report covers everything there is to report.
    pub(super) fn leaves_out_nothing_of(&self, now: &Sections) -> bool {
        self.after == *now
    }
}

impl Exchange {
    /// The next report.
    pub(super) fn next(&mut self, now: &Sections, report: Delivery) -> DeliveredReport {
        self.sequence += 1;
        let sequence = self.sequence;
        let Some(before) = &self.acknowledged else {
            return DeliveredReport {
                sequence,
                coverage: Coverage::Full,
                sections: now.clone(),
                after: now.clone(),
            };
        };
        let (sections, after) = match report {
            Delivery::Changes => (now.changed_since(before), now.clone()),
            Delivery::Nothing => (Sections::default(), before.clone()),
        };
        if !sections.is_empty() {
            // If the answer to this news is lost, it is unknown whether the hub has it, so everything is reported
            // again. Otherwise news that is taken back meanwhile would look like no change, and the hub would keep it.
            self.acknowledged = None;
        }
        DeliveredReport { sequence, coverage: Coverage::Changed, sections, after }
    }

    /// The hub answered to that report.
    pub(super) fn answered(&mut self, answer: &CheckinAnswer, reported: DeliveredReport) {
        self.acknowledged = match answer.need {
            Need::Changed if answer.acknowledged >= reported.sequence => Some(reported.after),
            // The hub has no base for changes, or kept another report than this one.
            Need::Full | Need::Changed => None,
        };
    }
}

/// How long to wait before the next check-in. `wait` is how long the hub was asked to hold this one open.
pub(super) fn pause(answer: &CheckinAnswer, verdict: Verdict, elapsed: Duration, wait: Duration) -> Duration {
    let interval = Duration::from_secs(answer.poll_interval_s.get().into());
    if wait.is_zero() && verdict == Verdict::Nothing && answer.need == Need::Changed {
        // The news arrived; the next one is held open.
        return Duration::ZERO;
    }
    let was_held = elapsed + SHORTEST >= wait.min(interval);
    match verdict {
        // News of it is reported soon, and a hub that sends one document after the other does not cause a busy loop.
        Verdict::Taken => SHORTEST.saturating_sub(elapsed),
        _ if answer.need == Need::Full => SHORTEST,
        Verdict::Nothing if was_held && elapsed >= SHORTEST => Duration::ZERO,
        Verdict::Nothing | Verdict::NotTaken => interval.saturating_sub(elapsed).max(SHORTEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(acknowledged: u64, need: Need) -> CheckinAnswer {
        CheckinAnswer {
            acknowledged,
            need,
            poll_interval_s: 30.try_into().unwrap(),
            desired: None,
            jobs: Vec::new(),
            orders: Vec::new(),
            audit_seen: 0,
            maintenance: None,
            hub_ca: None,
        }
    }

    fn sections(waiting: bool) -> Sections {
        Sections { guests: Some(Vec::new()), waiting: waiting.then(Vec::new), ..Sections::default() }
    }

    #[test]
    fn what_was_not_acknowledged_is_reported_again() {
        let mut exchange = Exchange::default();
        let (first, second) = (sections(false), sections(true));
        assert_eq!(exchange.next(&first, Delivery::Changes).coverage, Coverage::Full);
        let again = exchange.next(&first, Delivery::Nothing);
        assert_eq!(again.coverage, Coverage::Full, "the answer to the first never came");
        exchange.answered(&answer(2, Need::Changed), again);
        let reported = exchange.next(&second, Delivery::Changes);
        assert_eq!((reported.sequence, reported.coverage), (3, Coverage::Changed));
        assert!(reported.sections.guests.is_none() && reported.sections.waiting.is_some());
        let reported = exchange.next(&second, Delivery::Changes);
        assert_eq!(reported.coverage, Coverage::Full, "news dropped on the way: all is told again");
        assert!(reported.sections.waiting.is_some());
        exchange.answered(&answer(4, Need::Changed), reported);
        let reported = exchange.next(&second, Delivery::Changes);
        assert!(!reported.is_news());
        exchange.answered(&answer(5, Need::Full), reported);
        let reported = exchange.next(&second, Delivery::Changes);
        assert_eq!(reported.coverage, Coverage::Full);
        exchange.answered(&answer(2, Need::Changed), reported);
        let reported = exchange.next(&second, Delivery::Changes);
        assert_eq!(reported.coverage, Coverage::Full, "the hub kept an older report");
    }

    #[test]
    fn news_that_is_taken_back_after_a_lost_answer_is_corrected() {
        let mut exchange = Exchange::default();
        let (first, second) = (sections(false), sections(true));
        let reported = exchange.next(&first, Delivery::Changes);
        exchange.answered(&answer(1, Need::Changed), reported);
        drop(exchange.next(&second, Delivery::Changes));
        let reported = exchange.next(&first, Delivery::Changes);
        assert!(reported.is_news(), "the hub may hold the second report");
    }

    #[test]
    fn what_is_held_back_is_not_taken_for_reported() {
        let mut exchange = Exchange::default();
        let (first, second) = (sections(false), sections(true));
        let reported = exchange.next(&first, Delivery::Changes);
        exchange.answered(&answer(1, Need::Changed), reported);
        let quiet = exchange.next(&second, Delivery::Nothing);
        assert!(!quiet.is_news() && !quiet.leaves_out_nothing_of(&second));
        exchange.answered(&answer(2, Need::Changed), quiet);
        let reported = exchange.next(&second, Delivery::Changes);
        assert!(reported.sections.waiting.is_some() && reported.leaves_out_nothing_of(&second));
    }

    #[test]
    fn no_answer_makes_the_agent_spin() {
        let (wait, at_once) = (Duration::from_secs(25), Duration::from_millis(5));
        let quiet = answer(1, Need::Changed);
        assert_eq!(pause(&quiet, Verdict::Nothing, wait, wait), Duration::ZERO, "it was held open");
        assert_eq!(pause(&quiet, Verdict::Nothing, at_once, Duration::ZERO), Duration::ZERO, "news arrived");
        assert!(pause(&quiet, Verdict::NotTaken, at_once, Duration::ZERO) > Duration::from_secs(29));
        assert_eq!(pause(&quiet, Verdict::Taken, wait, wait), Duration::ZERO);
        assert_eq!(pause(&quiet, Verdict::Taken, at_once, wait), SHORTEST - at_once);
        assert!(pause(&quiet, Verdict::Nothing, at_once, wait) > Duration::from_secs(29));
        assert!(pause(&quiet, Verdict::NotTaken, at_once, wait) > Duration::from_secs(29));
        assert_eq!(pause(&answer(1, Need::Full), Verdict::Nothing, at_once, wait), SHORTEST);
        let hasty = CheckinAnswer { poll_interval_s: 1.try_into().unwrap(), ..quiet };
        assert_eq!(pause(&hasty, Verdict::Nothing, at_once, wait), SHORTEST);
    }
}
