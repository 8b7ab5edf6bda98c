//! Times in which hosts may be updated: weekly windows, and dates without.
//!
//! In: what an operator writes, such as `mon-fri 20:00-04:00 Europe/Vienna` and `2026-12-24..2027-01-02 Europe/Vienna`.
//! Out: spans of time. Deliberately absent: the clock.
//!
//! A window begins on a local date at one wall time and ends at the next of the other, on the same date or on the next. A
//! wall time that the clocks skip counts as the time after the gap, and one that comes twice counts the first time.
//! There is no local zone: each text names one.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{SignedDuration, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::protection::Zone;

/// Windows of one host or rollout.
pub const WINDOWS_MAX: usize = 8;

/// Ranges of dates of one rollout.
pub const BLACKOUTS_MAX: usize = 16;

/// Days of one range of dates.
pub const BLACKOUT_DAYS_MAX: i32 = 92;

/// The shortest window: an agent asks every ten minutes, waits for its operations, and is then on trial.
const WINDOW_MIN: SignedDuration = SignedDuration::from_hours(1);

/// Longer than any text of these.
const BYTES_MAX: usize = 160;

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

const EVERY_DAY: u8 = 0b111_1111;

/// A time with its end, which no longer belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
}

/// Not a window, or not a range of dates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// No window.
    #[error(
        "{0:?} is no window: write it as mon-fri 20:00-04:00 Europe/Vienna, with daily or days such as sat,sun, and the name \
         of a time zone"
    )]
    Window(String),
    /// Too short.
    #[error("the window {0:?} is shorter than an hour, in which no host could take a release")]
    Short(String),
    /// No dates.
    #[error(
        "{0:?} are no dates: write them as 2026-12-24..2027-01-02 Europe/Vienna; without a time zone they are in UTC"
    )]
    Dates(String),
    /// Too many days.
    #[error("the dates {0:?} are more than {BLACKOUT_DAYS_MAX} days, or end before they begin")]
    Long(String),
    /// Too many windows.
    #[error("at most {WINDOWS_MAX} windows are possible, and this were {0}")]
    Windows(usize),
    /// Too many ranges.
    #[error("at most {BLACKOUTS_MAX} ranges of dates are possible, and this were {0}")]
    Ranges(usize),
}

fn clip(text: &str) -> String {
    text.chars().take(BYTES_MAX).collect()
}

/// A window that comes each week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UpdateWindow {
    /// Bit 0 is Monday: the days on which it begins.
    days: u8,
    from: Time,
    until: Time,
    zone: Zone,
}

impl UpdateWindow {
    /// The windows that begin on the local dates of a time, from the day before it on, so that one which is open at its
    /// beginning is among them.
    pub fn spans(&self, from: Timestamp, until: Timestamp) -> impl Iterator<Item = Span> {
        let zone = self.zone.time_zone();
        let first = zone.to_datetime(from).date().yesterday().ok();
        let last = zone.to_datetime(until).date();
        let dates = std::iter::successors(first, |date| date.tomorrow().ok());
        dates.take_while(move |date| *date <= last).filter_map(|date| self.span_of(date))
    }

    fn span_of(&self, date: Date) -> Option<Span> {
        let day = u32::try_from(date.weekday().to_monday_zero_offset()).ok()?;
        let last = if self.until > self.from { date } else { date.tomorrow().ok()? };
        let from = point(&self.zone, date.to_datetime(self.from))?;
        let until = point(&self.zone, last.to_datetime(self.until))?;
        // Both ends can be in the hour that a change of clocks skips.
        (self.days >> day & 1 == 1 && from < until).then_some(Span { from, until })
    }
}

fn point(zone: &Zone, at: DateTime) -> Option<Timestamp> {
    zone.time_zone().to_ambiguous_timestamp(at).compatible().ok()
}

fn day(text: &str) -> Option<usize> {
    DAYS.iter().position(|(name, _)| name.eq_ignore_ascii_case(text))
}

/// `mon-fri`, `sat,sun`, `fri-mon`, `daily`.
fn days(text: &str) -> Option<u8> {
    if text == "daily" {
        return Some(EVERY_DAY);
    }
    text.split(',').try_fold(0_u8, |bits, item| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (day(first)?, day(last)?);
        let count = (last + DAYS.len() - first) % DAYS.len();
        Some((0..=count).fold(bits, |bits, offset| bits | 1 << ((first + offset) % DAYS.len())))
    })
}

/// `20:00`.
fn wall_time(text: &str) -> Option<Time> {
    let number = |digits: &str| {
        let two = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i8>().ok().filter(|_| two)
    };
    let (hour, minute) = text.split_once(':')?;
    Time::new(number(hour)?, number(minute)?, 0, 0).ok()
}

fn window(text: &str) -> Option<UpdateWindow> {
    let mut words = text.split(' ');
    let days = days(words.next()?)?;
    let (from, until) = words.next()?.split_once('-')?;
    let (from, until) = (wall_time(from)?, wall_time(until)?);
    let zone = Zone::try_from(words.next()?.to_owned()).ok()?;
    words.next().is_none().then_some(UpdateWindow { days, from, until, zone })
}

impl FromStr for UpdateWindow {
    type Err = WindowError;
    fn from_str(text: &str) -> Result<Self, WindowError> {
        let short = Some(text).filter(|text| text.len() <= BYTES_MAX);
        let window = short.and_then(window).ok_or_else(|| WindowError::Window(clip(text)))?;
        let length = window.from.duration_until(window.until);
        let is_short = length > SignedDuration::ZERO && length < WINDOW_MIN;
        // From 23:30 to 00:00 is half an hour less than a day backwards.
        let over_midnight =
            length < SignedDuration::ZERO && length + SignedDuration::from_hours(24) < WINDOW_MIN;
        if is_short || over_midnight { Err(WindowError::Short(clip(text))) } else { Ok(window) }
    }
}

impl fmt::Display for UpdateWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |day: usize| self.days >> day & 1 == 1;
        if self.days == EVERY_DAY {
            f.write_str("daily")?;
        } else {
            let mut parts = Vec::new();
            let mut days = DAYS.iter().enumerate().filter(|(day, _)| has(*day)).peekable();
            while let Some((first, (name, _))) = days.next() {
                let mut last = (first, *name);
                while let Some((day, (name, _))) = days.next_if(|(day, _)| *day == last.0 + 1) {
                    last = (day, *name);
                }
                match last.0 - first {
                    0 => parts.push((*name).to_owned()),
                    1 => parts.push(format!("{name},{}", last.1)),
                    2.. => parts.push(format!("{name}-{}", last.1)),
                }
            }
            f.write_str(&parts.join(","))?;
        }
        let wall = |time: Time| format!("{:02}:{:02}", time.hour(), time.minute());
        write!(f, " {}-{} {}", wall(self.from), wall(self.until), self.zone)
    }
}

/// Local dates on which nothing is updated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlackoutDates {
    first: Date,
    last: Date,
    zone: Zone,
}

impl BlackoutDates {
    /// From the first moment of the first date to the last of the last.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let from = point(&self.zone, self.first.to_datetime(Time::midnight()))?;
        let until = point(&self.zone, self.last.tomorrow().ok()?.to_datetime(Time::midnight()))?;
        Some(Span { from, until })
    }
}

fn dates(text: &str) -> Option<BlackoutDates> {
    let mut words = text.split(' ');
    let range = words.next()?;
    let (first, last) = range.split_once("..").unwrap_or((range, range));
    let zone = Zone::try_from(words.next().unwrap_or("UTC").to_owned()).ok()?;
    // One spelling each.
    let date = |text: &str| text.parse::<Date>().ok().filter(|date| date.to_string() == text);
    let found = BlackoutDates { first: date(first)?, last: date(last)?, zone };
    words.next().is_none().then_some(found)
}

impl FromStr for BlackoutDates {
    type Err = WindowError;
    fn from_str(text: &str) -> Result<Self, WindowError> {
        let short = Some(text).filter(|text| text.len() <= BYTES_MAX);
        let found = short.and_then(dates).ok_or_else(|| WindowError::Dates(clip(text)))?;
        let days = found.first.until(found.last).map_or(i32::MAX, |span| span.get_days().saturating_add(1));
        if (1..=BLACKOUT_DAYS_MAX).contains(&days) { Ok(found) } else { Err(WindowError::Long(clip(text))) }
    }
}

impl fmt::Display for BlackoutDates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{} {}", self.first, self.last, self.zone)
    }
}

/// Texts on the wire: their conversions and schemas.
macro_rules! wire_texts {
    ($($name:ident: $says:literal;)*) => {$(
        impl TryFrom<String> for $name {
            type Error = WindowError;
            fn try_from(text: String) -> Result<Self, WindowError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "minLength": 1, "maxLength": BYTES_MAX, "description": $says })
            }
        }
    )*};
}

wire_texts! {
    UpdateWindow: "a weekly window, such as `mon-fri 20:00-04:00 Europe/Vienna`";
    BlackoutDates: "dates, such as `2026-12-24..2027-01-02 Europe/Vienna`";
}

/// The windows of a host or of a rollout; without any, each time will do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<UpdateWindow>", into = "Vec<UpdateWindow>")]
pub struct UpdateWindows(#[schemars(length(max = WINDOWS_MAX))] Vec<UpdateWindow>);

impl UpdateWindows {
    /// Each of them.
    #[must_use]
    pub fn all(&self) -> &[UpdateWindow] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<UpdateWindow>> for UpdateWindows {
    type Error = WindowError;
    fn try_from(windows: Vec<UpdateWindow>) -> Result<Self, WindowError> {
        if windows.len() > WINDOWS_MAX { Err(WindowError::Windows(windows.len())) } else { Ok(Self(windows)) }
    }
}

impl From<UpdateWindows> for Vec<UpdateWindow> {
    fn from(windows: UpdateWindows) -> Self {
        windows.0
    }
}

impl fmt::Display for UpdateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

/// The dates on which a rollout offers nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<BlackoutDates>", into = "Vec<BlackoutDates>")]
pub struct Blackouts(#[schemars(length(max = BLACKOUTS_MAX))] Vec<BlackoutDates>);

impl Blackouts {
    /// Each of them.
    #[must_use]
    pub fn all(&self) -> &[BlackoutDates] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<BlackoutDates>> for Blackouts {
    type Error = WindowError;
    fn try_from(dates: Vec<BlackoutDates>) -> Result<Self, WindowError> {
        if dates.len() > BLACKOUTS_MAX { Err(WindowError::Ranges(dates.len())) } else { Ok(Self(dates)) }
    }
}

impl From<Blackouts> for Vec<BlackoutDates> {
    fn from(dates: Blackouts) -> Self {
        dates.0
    }
}

impl fmt::Display for Blackouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn spans(window: &str, from: &str, until: &str) -> Vec<String> {
        let window: UpdateWindow = window.parse().unwrap();
        window.spans(at(from), at(until)).map(|span| format!("{}/{}", span.from, span.until)).collect()
    }

    #[test]
    fn a_window_has_one_spelling() {
        for (text, spelled) in [
            ("mon-fri 20:00-04:00 Europe/Vienna", "mon-fri 20:00-04:00 Europe/Vienna"),
            ("Mon,TUE,wed 01:00-02:00 UTC", "mon-wed 01:00-02:00 UTC"),
            ("sat,sun 00:00-00:00 UTC", "sat,sun 00:00-00:00 UTC"),
            ("fri-mon 10:00-12:00 UTC", "mon,fri-sun 10:00-12:00 UTC"),
            ("mon-sun 23:30-00:30 UTC", "daily 23:30-00:30 UTC"),
            ("daily 00:00-23:59 UTC", "daily 00:00-23:59 UTC"),
        ] {
            let window: UpdateWindow = text.parse().unwrap();
            assert_eq!(window.to_string(), spelled);
            assert_eq!(spelled.parse(), Ok(window));
        }
        for wrong in [
            "",
            "mon",
            "20:00-04:00 UTC",
            "mon 20:00-04:00",
            "mon 20:00 UTC",
            "mon 20:00-24:00 UTC",
            "mon 8:00-10:00 UTC",
            "mon  20:00-22:00 UTC",
            "mon 20:00-22:00 UTC x",
            "mon 20:00-22:00 Vienna",
            "moon 20:00-22:00 UTC",
        ] {
            assert_eq!(wrong.parse::<UpdateWindow>(), Err(WindowError::Window(wrong.to_owned())));
        }
        for short in ["mon 20:00-20:59 UTC", "mon 23:30-00:29 UTC"] {
            assert_eq!(short.parse::<UpdateWindow>(), Err(WindowError::Short(short.to_owned())));
        }
    }

    #[test]
    fn windows_follow_the_clocks_of_their_zone() {
        // Friday's window goes on until Saturday, and in the night of the change it is an hour shorter, or longer.
        let window = "fri,sat 20:00-04:00 Europe/Vienna";
        assert_eq!(
            spans(window, "2026-03-28T00:00:00Z", "2026-03-29T00:00:00Z"),
            ["2026-03-27T19:00:00Z/2026-03-28T03:00:00Z", "2026-03-28T19:00:00Z/2026-03-29T02:00:00Z"]
        );
        assert_eq!(
            spans(window, "2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"),
            ["2026-10-23T18:00:00Z/2026-10-24T02:00:00Z", "2026-10-24T18:00:00Z/2026-10-25T03:00:00Z"]
        );
        // A beginning that is skipped is the time after the gap; a window that is skipped as a whole does not come.
        assert_eq!(
            spans("sun 02:30-04:00 Europe/Vienna", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"),
            ["2026-03-29T01:30:00Z/2026-03-29T02:00:00Z"]
        );
        assert_eq!(
            spans("sun 02:00-03:00 Europe/Vienna", "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"),
            [""; 0]
        );
        // One that comes twice counts the first time.
        assert_eq!(
            spans("sun 02:30-04:00 Europe/Vienna", "2026-10-25T00:00:00Z", "2026-10-25T12:00:00Z"),
            ["2026-10-25T00:30:00Z/2026-10-25T03:00:00Z"]
        );
    }

    #[test]
    fn dates_are_whole_local_days() {
        let span = |text: &str| text.parse::<BlackoutDates>().unwrap().span().unwrap();
        let holidays = span("2026-12-24..2027-01-02 Europe/Vienna");
        assert_eq!((holidays.from, holidays.until), (at("2026-12-23T23:00:00Z"), at("2027-01-02T23:00:00Z")));
        let day = span("2026-03-29 Europe/Vienna");
        assert_eq!(day.until.duration_since(day.from), SignedDuration::from_hours(23));
        assert_eq!(span("2026-12-24").from, at("2026-12-24T00:00:00Z"), "in UTC, where no zone is named");
        for wrong in ["", "2026-12-24..", "24.12.2026", "2026-02-30", "2026-12-24 Vienna", "2026-12-24 UTC x"]
        {
            assert_eq!(wrong.parse::<BlackoutDates>(), Err(WindowError::Dates(wrong.to_owned())));
        }
        for long in ["2026-12-24..2026-12-23", "2026-01-01..2026-04-03"] {
            assert_eq!(long.parse::<BlackoutDates>(), Err(WindowError::Long(long.to_owned())));
        }
        assert!("2026-01-01..2026-04-02".parse::<BlackoutDates>().is_ok(), "92 days");
    }

    #[test]
    fn lists_are_bounded() {
        let window: UpdateWindow = "daily 01:00-05:00 UTC".parse().unwrap();
        assert!(UpdateWindows::try_from(vec![window.clone(); WINDOWS_MAX]).is_ok());
        let many = UpdateWindows::try_from(vec![window; WINDOWS_MAX + 1]);
        assert_eq!(many, Err(WindowError::Windows(WINDOWS_MAX + 1)));
        let text = r#"["2026-12-24..2026-12-26 UTC"]"#;
        let dates: Blackouts = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&dates).unwrap(), text);
    }
}
