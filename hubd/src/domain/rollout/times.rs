//! The times in which one host may be offered a release.
//!
//! In: the times of the rollout, the windows of the host, and a range of time. Out: the spans in which both allow it, and
//! what follows from them. Deliberately absent: the clock, and the rate, which is of all hosts together.

use holdfast_protocol::release::rollout::{RolloutTimes, WaitReason};
use holdfast_protocol::release::window::{Span, UpdateWindows};
use jiff::{SignedDuration, Timestamp};

/// A host that has no allowed time within this, from now on, counts as failed: it would wait for ever.
pub const AHEAD: SignedDuration = SignedDuration::from_hours(60 * 24);

/// A host is waited for no longer than this, however little of the time was allowed.
pub const BACK: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Spans of time in order, none of which touches another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spans(Vec<Span>);

const ALWAYS: Span = Span { from: Timestamp::MIN, until: Timestamp::MAX };

impl Spans {
    fn union(mut spans: Vec<Span>) -> Self {
        spans.sort();
        let mut merged: Vec<Span> = Vec::new();
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.from <= last.until => last.until = last.until.max(span.until),
                Some(_) | None => merged.push(span),
            }
        }
        Self(merged)
    }

    fn of_windows(windows: &UpdateWindows, from: Timestamp, until: Timestamp) -> Self {
        if windows.is_empty() {
            return Self(vec![ALWAYS]);
        }
        Self::union(windows.all().iter().flat_map(|window| window.spans(from, until)).collect())
    }

    fn and(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let span = Span { from: a.from.max(b.from), until: a.until.min(b.until) };
            if span.from < span.until {
                both.push(span);
            }
            if a.until <= b.until {
                left.next()
            } else {
                right.next()
            };
        }
        Self(both)
    }

    /// What is in none of these.
    fn outside(&self) -> Self {
        let mut gaps = Vec::new();
        let mut from = Timestamp::MIN;
        for span in &self.0 {
            if from < span.from {
                gaps.push(Span { from, until: span.from });
            }
            from = span.until;
        }
        if from < Timestamp::MAX {
            gaps.push(Span { from, until: Timestamp::MAX });
        }
        Self(gaps)
    }

    fn at(&self, now: Timestamp) -> Option<&Span> {
        self.0.iter().find(|span| span.from <= now && now < span.until)
    }
}

/// When a host may take a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTimes {
    of_rollout: Spans,
    of_host: Spans,
    blackouts: Spans,
    /// In which all three agree.
    open: Spans,
}

impl AllowedTimes {
    /// Those around a time: as far back as a host is waited for, and as far ahead as one may have to wait.
    #[must_use]
    pub fn around(times: &RolloutTimes, host: &UpdateWindows, now: Timestamp) -> Self {
        let from = now.saturating_sub(BACK).unwrap_or(Timestamp::MIN);
        Self::between(times, host, from, now.saturating_add(AHEAD).unwrap_or(Timestamp::MAX))
    }

    /// Those at a time, and no others.
    #[must_use]
    pub fn at(times: &RolloutTimes, host: &UpdateWindows, now: Timestamp) -> Self {
        Self::between(times, host, now, now)
    }

    fn between(times: &RolloutTimes, host: &UpdateWindows, from: Timestamp, until: Timestamp) -> Self {
        let of_rollout = Spans::of_windows(&times.windows, from, until);
        let of_host = Spans::of_windows(host, from, until);
        let blackouts = Spans::union(times.not.all().iter().filter_map(|dates| dates.span()).collect());
        let open = of_rollout.and(&of_host).and(&blackouts.outside());
        Self { of_rollout, of_host, blackouts, open }
    }

    /// Whether the host may be offered the release now.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.open.at(now).is_some()
    }

    /// When it may next, where it may not now.
    #[must_use]
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.open.0.iter().map(|span| span.from).find(|from| *from > now)
    }

    /// Why it may not now.
    #[must_use]
    pub fn closed_by(&self, now: Timestamp) -> Option<WaitReason> {
        if self.is_open(now) {
            return None;
        }
        Some(if self.blackouts.at(now).is_some() {
            WaitReason::Blackout
        } else if self.of_host.at(now).is_none() {
            WaitReason::HostWindow
        } else {
            WaitReason::RolloutWindow
        })
    }

    /// How much of the time between two times was allowed.
    #[must_use]
    pub fn allowed_between(&self, from: Timestamp, until: Timestamp) -> SignedDuration {
        let part = |span: &Span| span.until.min(until).duration_since(span.from.max(from));
        let parts = self.open.0.iter().map(part).filter(|part| part.is_positive());
        parts.fold(SignedDuration::ZERO, SignedDuration::saturating_add)
    }

    /// When so much of the time since `from` was allowed. `None` beyond what is looked at.
    #[must_use]
    pub fn reaches(&self, from: Timestamp, amount: SignedDuration) -> Option<Timestamp> {
        let mut left = amount;
        for span in self.open.0.iter().filter(|span| span.until > from) {
            let begin = span.from.max(from);
            let length = span.until.duration_since(begin);
            if left <= length {
                return begin.checked_add(left).ok();
            }
            left = left.saturating_sub(length);
        }
        None
    }
}

/// Each time.
#[cfg(test)]
pub(super) fn always() -> std::sync::Arc<AllowedTimes> {
    let times = RolloutTimes::default();
    std::sync::Arc::new(AllowedTimes::at(&times, &UpdateWindows::default(), Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn allowed(rollout: &[&str], not: &[&str], host: &[&str], now: &str) -> AllowedTimes {
        let times = json!({ "windows": rollout, "not": not });
        let (times, host) =
            (serde_json::from_value(times).unwrap(), serde_json::from_value(json!(host)).unwrap());
        AllowedTimes::around(&times, &host, at(now))
    }

    #[test]
    fn rollout_and_host_must_both_allow_a_time_and_no_date_forbid_it() {
        let night = "daily 20:00-04:00 Europe/Vienna";
        // Windows of the rollout, its dates, windows of the host, now, what closes it, and when it opens.
        type Case<'a> = ([&'a [&'a str]; 3], &'a str, Option<WaitReason>, Option<&'a str>);
        let cases: [Case<'_>; 8] = [
            ([&[], &[], &[]], "2026-11-27T12:00:00Z", None, None),
            ([&[night], &[], &[]], "2026-11-27T20:00:00Z", None, Some("2026-11-28T19:00:00Z")),
            (
                [&[night], &[], &[]],
                "2026-11-27T12:00:00Z",
                Some(WaitReason::RolloutWindow),
                Some("2026-11-27T19:00:00Z"),
            ),
            (
                [&[], &[], &[night]],
                "2026-11-27T12:00:00Z",
                Some(WaitReason::HostWindow),
                Some("2026-11-27T19:00:00Z"),
            ),
            (
                [&[night], &[], &["sat 22:00-06:00 Europe/Vienna"]],
                "2026-11-27T20:00:00Z",
                Some(WaitReason::HostWindow),
                Some("2026-11-28T21:00:00Z"),
            ),
            (
                [&[night], &["2026-11-27..2026-11-29 Europe/Vienna"], &[]],
                "2026-11-27T20:00:00Z",
                Some(WaitReason::Blackout),
                // The window of the last of these dates goes on after midnight.
                Some("2026-11-29T23:00:00Z"),
            ),
            (
                [&["mon 10:00-12:00 UTC"], &[], &["tue 10:00-12:00 UTC"]],
                "2026-11-27T20:00:00Z",
                Some(WaitReason::HostWindow),
                None,
            ),
            // The end of a window no longer belongs to it.
            (
                [&[night], &[], &[]],
                "2026-11-28T03:00:00Z",
                Some(WaitReason::RolloutWindow),
                Some("2026-11-28T19:00:00Z"),
            ),
        ];
        for ([rollout, not, host], now, why, next) in cases {
            let allowed = allowed(rollout, not, host, now);
            let says = format!("{rollout:?} {not:?} {host:?} {now}");
            assert_eq!(allowed.closed_by(at(now)), why, "{says}");
            assert_eq!(allowed.is_open(at(now)), why.is_none(), "{says}");
            assert_eq!(allowed.opens_at(at(now)), next.map(at), "{says}");
        }
    }

    #[test]
    fn only_allowed_time_counts_and_clocks_may_change_in_it() {
        let hours = SignedDuration::from_hours;
        // Eight hours each night, and seven in the one of the change.
        let allowed = allowed(&["daily 20:00-04:00 Europe/Vienna"], &[], &[], "2026-03-30T12:00:00Z");
        let from = at("2026-03-28T12:00:00Z");
        assert_eq!(allowed.allowed_between(from, at("2026-03-28T20:00:00Z")), hours(1));
        assert_eq!(allowed.allowed_between(from, at("2026-03-29T12:00:00Z")), hours(7));
        assert_eq!(allowed.allowed_between(from, at("2026-03-30T12:00:00Z")), hours(15));
        assert_eq!(allowed.allowed_between(from, from), hours(0));
        assert_eq!(allowed.reaches(from, hours(1)), Some(at("2026-03-28T20:00:00Z")));
        assert_eq!(allowed.reaches(from, hours(8)), Some(at("2026-03-29T19:00:00Z")));
        assert_eq!(allowed.reaches(from, hours(9_999)), None);
    }

    #[test]
    fn windows_that_overlap_or_touch_are_one() {
        let windows = ["daily 10:00-12:00 UTC", "daily 11:00-13:00 UTC", "daily 13:00-14:00 UTC"];
        let allowed = allowed(&windows, &[], &[], "2026-11-27T09:00:00Z");
        let day = (at("2026-11-27T00:00:00Z"), at("2026-11-28T00:00:00Z"));
        assert_eq!(allowed.allowed_between(day.0, day.1), SignedDuration::from_hours(4));
        let always = always();
        assert_eq!(always.allowed_between(day.0, day.1), SignedDuration::from_hours(24));
        assert_eq!(always.reaches(day.0, SignedDuration::from_hours(24)), Some(day.1));
    }
}
