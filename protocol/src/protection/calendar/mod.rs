//! Calendar expressions, such as `Mon..Fri 02:30`: points in time that come again.
//!
//! What comes in: the part of the language in which systemd's `OnCalendar` and Proxmox's schedules mean the same. What
//! goes out: the points after a given one, in a time zone that is always named. Weekdays, a date and a time may each be
//! left out: `[WEEKDAYS] [[*-]MONTHS-DAYS] [HOURS:MINUTES[:SECOND]]`. One keyword may replace them all, such as
//! `weekly`. An expression that only one of the two programs understands is refused with the reason (`*/15`, `8..18/2`,
//! `~`, years, fractions). So is one that comes more than once a minute or never. Deliberately absent: the clock.

mod next;
mod parse;

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use parse::CalendarError;

/// As long as Proxmox takes one.
pub const BYTES_MAX: usize = 128;

/// A calendar expression. It keeps its spelling; two spellings of the same points have the same [`Points`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Calendar {
    text: String,
    points: Points,
}

/// The points, by the local time at which they come. Each bit represents a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// Bit 0 is Monday.
    weekdays: u8,
    /// Bit 1 is January.
    months: u16,
    /// Bit 1 is the first.
    days: u32,
    hours: u32,
    minutes: u64,
    /// One, so that nothing comes more than once a minute.
    second: i8,
}

impl Points {
    /// Whether every point of `other` is provably one of these. It may say no although it is so, where weekdays and dates
    /// only together leave nothing over.
    #[must_use]
    pub const fn holds(&self, other: &Self) -> bool {
        other.weekdays & !self.weekdays == 0
            && other.months & !self.months == 0
            && other.days & !self.days == 0
            && other.hours & !self.hours == 0
            && other.minutes & !self.minutes == 0
            && other.second == self.second
    }

    /// Whether they come on every day.
    #[must_use]
    pub const fn is_daily(&self) -> bool {
        let (weekdays, months, days) = (0b111_1111, 0b1_1111_1111_1110, 0xffff_fffe);
        self.weekdays & weekdays == weekdays && self.months & months == months && self.days & days == days
    }

    /// The minutes of a day at which they come, on days on which they do.
    pub fn minutes_of_day(self) -> impl Iterator<Item = u32> {
        let hours = (0..24_u32).filter(move |hour| self.hours >> hour & 1 == 1);
        hours.flat_map(move |hour| {
            let minutes = (0..60_u32).filter(move |minute| self.minutes >> minute & 1 == 1);
            minutes.map(move |minute| hour * 60 + minute)
        })
    }
}

impl Calendar {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The points that it denotes.
    #[must_use]
    pub const fn points(&self) -> &Points {
        &self.points
    }
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Calendar {
    type Err = CalendarError;
    fn from_str(text: &str) -> Result<Self, CalendarError> {
        Ok(Self { points: parse::points(text)?, text: text.to_owned() })
    }
}

impl TryFrom<String> for Calendar {
    type Error = CalendarError;
    fn try_from(text: String) -> Result<Self, CalendarError> {
        text.parse()
    }
}

impl From<Calendar> for String {
    fn from(calendar: Calendar) -> Self {
        calendar.text
    }
}

impl JsonSchema for Calendar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Calendar".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "minLength": 1, "maxLength": BYTES_MAX,
            "description": "a calendar expression that systemd and Proxmox read alike, such as `Mon..Fri 02:30`, `*-*-1 04:00` or `weekly`",
        })
    }
}

#[cfg(test)]
mod tests;
