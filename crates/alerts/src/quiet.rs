//! Quiet hours, by wall time in a named zone.
//!
//! A window begins on a local date at one wall time and ends at the next of the other wall time, on the same date or on
//! the next. It is turned into two points of time, so it never flickers where clocks are changed: a wall time that is
//! skipped counts as the time after the gap, and one that comes twice counts the first time.

use std::fmt;
use std::str::FromStr;

use holdfast_protocol::condition::{DataRisk, Severity};
use holdfast_protocol::id::ReceiverName;
use holdfast_protocol::protection::Zone;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time, Weekday};
use serde::{Deserialize, Serialize};

use crate::name::RuleName;

/// Days that are looked at for the next window. A window that begins on one weekday alone comes within eight.
const DAYS_AHEAD: usize = 9;

/// A time of the day, written `22:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WallTime(Time);

/// Not a time of the day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time of the day: write it as 22:00")]
pub struct WallTimeError(String);

impl FromStr for WallTime {
    type Err = WallTimeError;
    fn from_str(text: &str) -> Result<Self, WallTimeError> {
        let number = |digits: &str| {
            let two = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<i8>().ok().filter(|_| two)
        };
        let time = text.split_once(':').and_then(|(hour, minute)| {
            let (hour, minute) = (number(hour)?, number(minute)?);
            Time::new(hour, minute, 0, 0).ok()
        });
        time.map(Self).ok_or_else(|| WallTimeError(text.chars().take(16).collect()))
    }
}

impl TryFrom<String> for WallTime {
    type Error = WallTimeError;
    fn try_from(text: String) -> Result<Self, WallTimeError> {
        text.parse()
    }
}

impl From<WallTime> for String {
    fn from(time: WallTime) -> Self {
        time.to_string()
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    const fn weekday(self) -> Weekday {
        match self {
            Self::Mon => Weekday::Monday,
            Self::Tue => Weekday::Tuesday,
            Self::Wed => Weekday::Wednesday,
            Self::Thu => Weekday::Thursday,
            Self::Fri => Weekday::Friday,
            Self::Sat => Weekday::Saturday,
            Self::Sun => Weekday::Sunday,
        }
    }
}

/// Times of the week in which notices are held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// What they are called in the log.
    pub name: RuleName,
    /// When they begin.
    pub from: WallTime,
    /// When they end; on the next day, where that is not after `from`.
    pub until: WallTime,
    /// Where these times are read.
    pub zone: Zone,
    /// The days on which they begin; empty for each day.
    #[serde(default)]
    pub days: Vec<Day>,
    /// The receivers that they hold notices for; empty for all.
    #[serde(default)]
    pub receivers: Vec<ReceiverName>,
    /// Incidents from this severity on are not held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except_from: Option<Severity>,
}

/// One window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
}

impl QuietHours {
    /// The window in which a time is.
    #[must_use]
    pub fn window_at(&self, now: Timestamp) -> Option<Window> {
        self.windows(now).take(2).flatten().find(|window| window.from <= now && now < window.until)
    }

    /// The next window that begins after a time.
    #[must_use]
    pub fn next_window(&self, now: Timestamp) -> Option<Window> {
        self.windows(now).flatten().find(|window| window.from > now)
    }

    /// Whether they hold a notice of this kind for a receiver, and until when. What endangers data is never held.
    #[must_use]
    pub fn holds(
        &self,
        receiver: &ReceiverName,
        (risk, severity): (DataRisk, Severity),
        now: Timestamp,
    ) -> Option<Timestamp> {
        let excepted = self.except_from.is_some_and(|from| severity >= from);
        let concerned = self.receivers.is_empty() || self.receivers.contains(receiver);
        match risk {
            DataRisk::Safe if concerned && !excepted => self.window_at(now).map(|window| window.until),
            DataRisk::Safe | DataRisk::Endangered => None,
        }
    }

    /// Windows by the date on which they begin, from yesterday's on.
    fn windows(&self, now: Timestamp) -> impl Iterator<Item = Option<Window>> {
        let today = self.zone.time_zone().to_datetime(now).date();
        let dates = std::iter::successors(today.yesterday().ok(), |date| date.tomorrow().ok());
        dates.take(DAYS_AHEAD + 1).map(|date| self.window_of(date))
    }

    fn window_of(&self, date: Date) -> Option<Window> {
        let begins = self.days.is_empty() || self.days.iter().any(|day| day.weekday() == date.weekday());
        let last = if self.until > self.from { date } else { date.tomorrow().ok()? };
        let from = self.point(date.to_datetime(self.from.0))?;
        let until = self.point(last.to_datetime(self.until.0))?;
        // Both ends can be in the hour that a change of clocks skips.
        (begins && from < until).then_some(Window { from, until })
    }

    fn point(&self, at: DateTime) -> Option<Timestamp> {
        self.zone.time_zone().to_ambiguous_timestamp(at).compatible().ok()
    }
}
