//! Judgement of a receiver's answer.
//!
//! `by_status` holds what all receivers have in common; each channel adds its own exceptions.

use std::time::Duration;

use jiff::Timestamp;

use crate::http::HttpAnswer;
use crate::reason::Reason;

/// What an answer means for the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// The receiver asks for a pause of this length.
    RetryAfter(Duration),
    /// Try again with the usual back-off.
    Retry,
    /// Every repeat would be refused, too.
    Permanent(Reason),
    /// Send again at once, changed.
    Fallback(Fallback),
}

/// A change to a request that the receiver's answer calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Its markup was not understood.
    PlainText,
    /// The chat has a new number.
    Chat(i64),
}

/// How a request is made after fallbacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub markup: Markup,
    /// The new number of a chat that was moved.
    pub chat: Option<i64>,
}

/// Whether the text has markup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Markup {
    #[default]
    Rich,
    Plain,
}

impl Form {
    /// The form after one more fallback; none when it would be the same again.
    #[must_use]
    pub fn after(self, fallback: Fallback) -> Option<Self> {
        let form = match fallback {
            Fallback::PlainText => Self { markup: Markup::Plain, ..self },
            Fallback::Chat(chat) => Self { chat: Some(chat), ..self },
        };
        (form != self).then_some(form)
    }
}

/// A receiver that says nothing about the pause gets this one.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest pause. A receiver's mistake must not hold a message back for days.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// A pause that a receiver asks for, within one second and one hour.
pub(crate) fn pause(asked: Option<Duration>) -> Verdict {
    Verdict::RetryAfter(asked.unwrap_or(PAUSE).clamp(Duration::from_secs(1), PAUSE_MAX))
}

/// The header `Retry-After`: seconds or a date.
pub(crate) fn retry_after(answer: &HttpAnswer, now: Timestamp) -> Option<Duration> {
    let text = answer.retry_after.as_deref()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Judges by the status alone.
pub(crate) fn by_status(answer: &HttpAnswer, now: Timestamp) -> Verdict {
    match answer.status {
        200..=299 => Verdict::Delivered,
        300..=399 => Verdict::Permanent(Reason::Redirect),
        401 | 403 | 407 => Verdict::Permanent(Reason::Credential),
        404 | 410 => Verdict::Permanent(Reason::Address),
        413 => Verdict::Permanent(Reason::TooLong),
        408 | 425 => Verdict::Retry,
        429 => pause(retry_after(answer, now)),
        400..=499 => Verdict::Permanent(Reason::Request),
        503 if answer.retry_after.is_some() => pause(retry_after(answer, now)),
        _ => Verdict::Retry,
    }
}

/// Another server than expected (a proxy's login page) may answer 200, too; then `shown` is false.
pub(crate) fn confirmed(verdict: Verdict, shown: impl FnOnce() -> bool) -> Verdict {
    match verdict {
        Verdict::Delivered if !shown() => Verdict::Retry,
        Verdict::Delivered
        | Verdict::RetryAfter(_)
        | Verdict::Retry
        | Verdict::Permanent(_)
        | Verdict::Fallback(_) => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, retry_after: Option<&str>) -> Verdict {
        let answer = HttpAnswer { status, retry_after: retry_after.map(str::to_owned), body: Vec::new() };
        by_status(&answer, Timestamp::from_second(1_785_679_380).unwrap())
    }

    #[test]
    fn a_status_decides_alike_for_all_receivers() {
        let after = |seconds| Verdict::RetryAfter(Duration::from_secs(seconds));
        for (status, header, verdict) in [
            (200, None, Verdict::Delivered),
            (204, None, Verdict::Delivered),
            (301, None, Verdict::Permanent(Reason::Redirect)),
            (307, None, Verdict::Permanent(Reason::Redirect)),
            (400, None, Verdict::Permanent(Reason::Request)),
            (401, None, Verdict::Permanent(Reason::Credential)),
            (404, None, Verdict::Permanent(Reason::Address)),
            (408, None, Verdict::Retry),
            (413, None, Verdict::Permanent(Reason::TooLong)),
            (425, None, Verdict::Retry),
            (429, None, after(60)),
            (429, Some("7"), after(7)),
            (429, Some("0"), after(1)),
            (429, Some("999999"), after(3600)),
            (429, Some("soon"), after(60)),
            (429, Some("Sun, 02 Aug 2026 14:03:30 GMT"), after(30)),
            (429, Some("Sun, 02 Aug 2026 14:02:30 GMT"), after(1)),
            (500, None, Verdict::Retry),
            (500, Some("7"), Verdict::Retry),
            (502, None, Verdict::Retry),
            (503, None, Verdict::Retry),
            (503, Some("20"), after(20)),
            (100, None, Verdict::Retry),
            (700, None, Verdict::Retry),
        ] {
            assert_eq!(judged(status, header), verdict, "{status} {header:?}");
        }
    }

    #[test]
    fn fallbacks_come_to_an_end() {
        let form = Form::default();
        let plain = form.after(Fallback::PlainText).unwrap();
        assert_eq!(plain.after(Fallback::PlainText), None);
        let moved = plain.after(Fallback::Chat(-100)).unwrap();
        assert_eq!(moved, Form { markup: Markup::Plain, chat: Some(-100) });
        assert_eq!(moved.after(Fallback::Chat(-100)), None);
    }
}
