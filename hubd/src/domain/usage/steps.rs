//! The steps of time that rows are kept in.

use holdfast_protocol::usage::{UsageSample, UsageSpan};
use jiff::{SignedDuration, Timestamp};

use super::row::UsageRow;

/// A sample further in the future is of a clock that is wrong.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(5);

/// Samples that are taken in: by their time, each later than the one before and than the newest that is kept. Those of a
/// clock that is wrong, or from before the time that minutes are kept for, are left out.
pub struct Accepted<'a>(pub Vec<&'a UsageSample>);

/// Which samples are taken in.
#[must_use]
pub fn accept(samples: &[UsageSample], newest: Option<Timestamp>, now: Timestamp) -> Accepted<'_> {
    let kept = SignedDuration::from_secs(UsageSpan::Hours2.kept_s().into());
    let mut last = newest;
    let mut taken = Vec::new();
    for sample in samples {
        let age = now.duration_since(sample.at);
        let in_time = age <= kept && age >= -AHEAD_MAX;
        if in_time && last.is_none_or(|last| last < sample.at) {
            last = Some(sample.at);
            taken.push(sample);
        }
    }
    Accepted(taken)
}

/// The begin of a step.
fn step(at: Timestamp, span: UsageSpan) -> Timestamp {
    let second = at.as_second();
    let begin = second.saturating_sub(second.rem_euclid(span.step_s().into()));
    Timestamp::from_second(begin).unwrap_or(at)
}

/// A row that is to be made of finer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// Where it goes.
    pub span: UsageSpan,
    /// The rows that it is made of.
    pub from: UsageSpan,
    /// Its begin.
    pub begin: Timestamp,
    /// The begin of the next.
    pub end: Timestamp,
}

/// The rows that are complete when a sample follows another, the finest first.
#[must_use]
pub fn rolled_up(before: Timestamp, next: Timestamp) -> Vec<StepRow> {
    let pairs = [(UsageSpan::Days7, UsageSpan::Hours2), (UsageSpan::Days400, UsageSpan::Days7)];
    let complete = pairs.into_iter().filter(|(span, _)| step(before, *span) < step(next, *span));
    complete
        .map(|(span, from)| {
            let begin = step(before, span);
            let end = begin.checked_add(SignedDuration::from_secs(span.step_s().into())).unwrap_or(begin);
            StepRow { span, from, begin, end }
        })
        .collect()
}

impl StepRow {
    /// The row, of those that it is made of.
    #[must_use]
    pub fn made_of(self, rows: &[UsageRow]) -> Option<UsageRow> {
        (!rows.is_empty()).then(|| UsageRow::merged(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2027-03-01T{text}Z").parse().unwrap()
    }

    fn sample(text: &str) -> UsageSample {
        UsageSample { at: at(text), host: Default::default(), guests: Default::default() }
    }

    #[test]
    fn samples_are_taken_in_once_and_in_order() {
        let sent = ["09:59:00", "10:30:00", "10:29:00", "10:31:00", "12:04:00", "12:06:00"].map(sample);
        let times = |newest: Option<&str>| {
            let taken = accept(&sent, newest.map(at), at("12:00:00")).0;
            taken.iter().map(|sample| sample.at).collect::<Vec<_>>()
        };
        assert_eq!(times(None), ["10:30:00", "10:31:00", "12:04:00"].map(at));
        assert_eq!(times(Some("10:30:00")), ["10:31:00", "12:04:00"].map(at));
        assert_eq!(times(Some("12:04:00")), [], "the same again changes nothing");
    }

    #[test]
    fn a_step_is_rolled_up_when_the_next_begins() {
        let rows = |before: &str, next: &str| rolled_up(at(before), at(next));
        assert_eq!(rows("10:01:00", "10:04:59"), []);
        let five = StepRow {
            span: UsageSpan::Days7,
            from: UsageSpan::Hours2,
            begin: at("10:00:00"),
            end: at("10:05:00"),
        };
        assert_eq!(rows("10:04:00", "10:05:00"), [five]);
        let hour = StepRow {
            span: UsageSpan::Days400,
            from: UsageSpan::Days7,
            begin: at("10:00:00"),
            end: at("11:00:00"),
        };
        assert_eq!(
            rows("10:01:00", "13:30:00"),
            [five, hour],
            "after a gap the steps before it are complete"
        );
    }
}
