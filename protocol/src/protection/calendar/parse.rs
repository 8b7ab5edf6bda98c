//! A parser of calendar expressions.

use super::{BYTES_MAX, Points};

/// Why a text is no calendar expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// Longer than any.
    #[error("the calendar expression is {0} bytes long; at most {BYTES_MAX} are accepted")]
    Length(usize),
    /// Its parts are not separated by one space each.
    #[error("a calendar expression has one space between its parts, and none before or after them")]
    Spaces,
    /// An empty part, or one where it does not belong.
    #[error(
        "{0:?} does not belong there: write [WEEKDAYS] [[*-]MONTHS-DAYS] [HOURS:MINUTES[:SECOND]], or one of minutely, \
         hourly, daily, weekly, monthly, quarterly, semiannually, yearly"
    )]
    Part(String),
    /// Not a weekday.
    #[error(
        "{0:?} is no weekday: write Mon, Tue, Wed, Thu, Fri, Sat or Sun, one after another or as Mon..Fri"
    )]
    Weekday(String),
    /// A year.
    #[error(
        "{0:?} names years: a schedule that ends protects nothing afterwards; write * or leave the year out"
    )]
    Years(String),
    /// Not a number of its field.
    #[error(
        "{text:?} is none of the {field}, which are {min} to {max}: write *, a number, 8..18, 0/15, or several with commas"
    )]
    Number {
        /// As written there.
        text: String,
        /// What it should be.
        field: &'static str,
        /// The least.
        min: u8,
        /// The largest.
        max: u8,
    },
    /// A range that ends before it begins.
    #[error("{0:?} ends before it begins: write it in two parts")]
    Backwards(String),
    /// A step of nothing, or past the end.
    #[error("{0:?} never takes its step: give one of at least 1 that stays within its field")]
    Step(String),
    /// `*/15` is Proxmox's alone, and `8..18/2` systemd's.
    #[error("{text:?} is not read alike by systemd and Proxmox: {instead}")]
    NotShared {
        /// As written there.
        text: String,
        /// What to write.
        instead: &'static str,
    },
    /// No day of the calendar.
    #[error("no month has such a day: the schedule would never come")]
    Never,
}

/// One field of an expression.
#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    min: u8,
    max: u8,
}

const MONTHS: Field = Field { name: "months", min: 1, max: 12 };
const DAYS: Field = Field { name: "days", min: 1, max: 31 };
const HOURS: Field = Field { name: "hours", min: 0, max: 23 };
const MINUTES: Field = Field { name: "minutes", min: 0, max: 59 };
const SECONDS: Field = Field { name: "seconds", min: 0, max: 59 };

const EVERY_DAY: u8 = 0b111_1111;

/// Short and long, in the order of their bits.
const WEEKDAYS: [[&str; 2]; 7] = [
    ["mon", "monday"],
    ["tue", "tuesday"],
    ["wed", "wednesday"],
    ["thu", "thursday"],
    ["fri", "friday"],
    ["sat", "saturday"],
    ["sun", "sunday"],
];

pub(super) fn points(text: &str) -> Result<Points, CalendarError> {
    if text.len() > BYTES_MAX {
        return Err(CalendarError::Length(text.len()));
    }
    let text = keyword(text).unwrap_or(text);
    let mut words = text.split(' ').peekable();
    if text.split(' ').any(str::is_empty) {
        return Err(CalendarError::Spaces);
    }
    let is_weekdays = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let weekdays = words.next_if(is_weekdays).map_or(Ok(EVERY_DAY), weekdays)?;
    let date = words.next_if(|word| word.contains('-') && !word.contains(':'));
    let (months, days) = date.map_or(Ok((MONTHS.all(), DAYS.all())), self::date)?;
    let time = words.next_if(|word| word.contains(':'));
    let (hours, minutes, second) = time.map_or(Ok((1, 1, 0)), self::time)?;
    if let Some(word) = words.next() {
        return Err(CalendarError::Part(word.to_owned()));
    }
    let [months, days, hours] = [months, days, hours].map(|bits| u32::try_from(bits).unwrap_or_default());
    let months = u16::try_from(months).unwrap_or_default();
    let points = Points { weekdays, months, days, hours, minutes, second };
    if points.comes() { Ok(points) } else { Err(CalendarError::Never) }
}

/// The expression that a keyword abbreviates.
fn keyword(text: &str) -> Option<&'static str> {
    Some(match text {
        "minutely" => "*-*-* *:*:00",
        "hourly" => "*-*-* *:00:00",
        "daily" => "*-*-* 00:00:00",
        "weekly" => "Mon *-*-* 00:00:00",
        "monthly" => "*-*-01 00:00:00",
        "quarterly" => "*-01,04,07,10-01 00:00:00",
        "semiannually" | "semi-annually" => "*-01,07-01 00:00:00",
        "yearly" | "annually" => "*-01-01 00:00:00",
        _ => return None,
    })
}

fn weekday(text: &str) -> Result<usize, CalendarError> {
    let is = |names: &[&str; 2]| names.iter().any(|name| name.eq_ignore_ascii_case(text));
    WEEKDAYS.iter().position(is).ok_or_else(|| CalendarError::Weekday(text.to_owned()))
}

fn weekdays(text: &str) -> Result<u8, CalendarError> {
    let mut bits = 0;
    for item in text.split(',') {
        let (first, last) = item.split_once("..").unwrap_or((item, item));
        let (first, last) = (weekday(first)?, weekday(last)?);
        if first > last {
            return Err(CalendarError::Backwards(item.to_owned()));
        }
        bits |= (first..=last).fold(0, |bits, day| bits | 1 << day);
    }
    Ok(bits)
}

fn date(text: &str) -> Result<(u64, u64), CalendarError> {
    let parts: Vec<&str> = text.split('-').collect();
    let (months, days) = match parts.as_slice() {
        [months, days] | ["*", months, days] => (months, days),
        [years, _, _] => return Err(CalendarError::Years((*years).to_owned())),
        _ => return Err(CalendarError::Part(text.to_owned())),
    };
    Ok((MONTHS.set(months)?, DAYS.set(days)?))
}

fn time(text: &str) -> Result<(u64, u64, i8), CalendarError> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, second) = match parts.as_slice() {
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, second] => (hours, minutes, SECONDS.number(second)?),
        _ => return Err(CalendarError::Part(text.to_owned())),
    };
    Ok((HOURS.set(hours)?, MINUTES.set(minutes)?, i8::try_from(second).unwrap_or_default()))
}

impl Field {
    const fn all(self) -> u64 {
        (2 << self.max) - (1 << self.min)
    }

    fn number(self, text: &str) -> Result<u8, CalendarError> {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && (self.min..=self.max).contains(number));
        number.ok_or_else(|| CalendarError::Number {
            text: text.to_owned(),
            field: self.name,
            min: self.min,
            max: self.max,
        })
    }

    fn set(self, text: &str) -> Result<u64, CalendarError> {
        if text == "*" {
            return Ok(self.all());
        }
        let mut bits = 0;
        for item in text.split(',') {
            bits |= self.item(item)?;
        }
        Ok(bits)
    }

    fn item(self, item: &str) -> Result<u64, CalendarError> {
        let not_shared = |instead| CalendarError::NotShared { text: item.to_owned(), instead };
        let bit = |number: u8| 1_u64 << number;
        match (item.split_once(".."), item.split_once('/')) {
            (Some(_), Some(_)) => Err(not_shared("name the values, with commas")),
            (None, Some(("*", _))) => Err(not_shared("write 0/15 for every quarter of an hour")),
            (Some((first, last)), None) => {
                let (first, last) = (self.number(first)?, self.number(last)?);
                if first > last {
                    return Err(CalendarError::Backwards(item.to_owned()));
                }
                Ok((first..=last).fold(0, |bits, number| bits | bit(number)))
            }
            (None, Some((first, step))) => {
                let first = self.number(first)?;
                let wrong = || CalendarError::Step(item.to_owned());
                let digits = (1..=2).contains(&step.len()) && step.bytes().all(|b| b.is_ascii_digit());
                let step: u8 = step.parse().ok().filter(|step| digits && *step >= 1).ok_or_else(wrong)?;
                if first.saturating_add(step) > self.max {
                    return Err(wrong());
                }
                let values = (first..=self.max).step_by(step.into());
                Ok(values.fold(0, |bits, number| bits | bit(number)))
            }
            (None, None) => Ok(bit(self.number(item)?)),
        }
    }
}

impl Points {
    /// Whether some month has one of the days. Every weekday comes to every date in time.
    fn comes(&self) -> bool {
        const MONTHS_BY_LENGTH: [(u16, u8); 3] =
            [(0b1_0101_1010_1010, 31), (0b1010_0101_0000, 30), (0b100, 29)];
        let has = |(months, last): &(u16, u8)| {
            let days = Field { name: "", min: 1, max: *last }.all();
            self.months & months != 0 && u64::from(self.days) & days != 0
        };
        MONTHS_BY_LENGTH.iter().any(has)
    }
}
