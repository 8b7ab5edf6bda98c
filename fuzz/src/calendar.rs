//! Fuzzed calendar expressions, against a second reading.

use std::collections::BTreeSet;

use holdfast_protocol::protection::calendar::BYTES_MAX;
use holdfast_protocol::protection::{Calendar, Zone};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

/// How many minutes are searched for a skipped point.
const MINUTES: i64 = 400;

/// One input: an expression, a zone and a moment, a line each.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (text, name, moment) = (line(), line(), line());
    let calendar = match text.parse::<Calendar>() {
        Ok(calendar) => calendar,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(calendar.as_str() == text && text.len() <= BYTES_MAX);
    assert!(calendar.points().holds(calendar.points()));
    let sets = Sets::read(text).unwrap_or_else(|| panic!("a second reading makes nothing of {text:?}"));
    let every: Calendar = format!("*:*:{:02}", sets.second).parse().expect("each minute");
    assert!(every.points().holds(calendar.points()), "it comes more than once a minute");
    let Ok(zone) = Zone::try_from(name.to_owned()) else { return };
    let rules = TimeZoneDatabase::bundled().get(name).expect("a zone that was taken");
    let Ok(moment) = moment.parse::<i64>() else { return };
    let Ok(after) = Timestamp::from_second(moment) else { return };
    next(&calendar, &zone, &sets, &rules, after);
}

fn next(calendar: &Calendar, zone: &Zone, sets: &Sets, rules: &TimeZone, after: Timestamp) {
    let Some(at) = calendar.next(zone, after) else {
        // The calendar's own end is the year 9999, and an expression that never comes was refused.
        assert!(after.as_second() > 251_000_000_000, "it never comes after {after}");
        return;
    };
    assert!(at > after && is_point(sets, rules, at), "{at} is none of {calendar}");
    let minute = |count| at.checked_sub(SignedDuration::from_mins(count));
    for earlier in (1..=MINUTES).map_while(|count| minute(count).ok()).take_while(|earlier| *earlier > after)
    {
        assert!(!is_point(sets, rules, earlier), "{calendar} passes over {earlier} on its way to {at}");
    }
    let just_before = at.checked_sub(SignedDuration::from_secs(1)).expect("it is after something");
    assert_eq!(calendar.next(zone, just_before), Some(at), "{calendar} depends on where one looks from");
    if let Some(later) = calendar.next(zone, at) {
        assert!(later > at);
    }
}

/// Whether the expression comes at this moment: by its local time, the first time of two.
fn is_point(sets: &Sets, rules: &TimeZone, at: Timestamp) -> bool {
    let local = rules.to_datetime(at);
    let first = match rules.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => offset,
        AmbiguousOffset::Gap { .. } => return false,
    };
    let date = local.date();
    let has = |set: &BTreeSet<u8>, number: i8| u8::try_from(number).is_ok_and(|number| set.contains(&number));
    first.to_timestamp(local).ok() == Some(at)
        && has(&sets.weekdays, date.weekday().to_monday_zero_offset())
        && has(&sets.months, date.month())
        && has(&sets.days, date.day())
        && has(&sets.hours, local.hour())
        && has(&sets.minutes, local.minute())
        && i8::try_from(sets.second) == Ok(local.second())
        && local.subsec_nanosecond() == 0
}

/// An expression, read token by token from its end. Each field is the set of its numbers.
struct Sets {
    weekdays: BTreeSet<u8>,
    months: BTreeSet<u8>,
    days: BTreeSet<u8>,
    hours: BTreeSet<u8>,
    minutes: BTreeSet<u8>,
    second: u8,
}

impl Sets {
    fn read(text: &str) -> Option<Self> {
        let text = match text {
            "minutely" => "*:*",
            "hourly" => "*:0",
            "daily" => "0:0",
            "weekly" => "mon 0:0",
            "monthly" => "*-1 0:0",
            "quarterly" => "1,4,7,10-1 0:0",
            "semiannually" | "semi-annually" => "1,7-1 0:0",
            "yearly" | "annually" => "1-1 0:0",
            other => other,
        };
        let mut words: Vec<&str> = text.split(' ').collect();
        let time = words.pop_if(|word| word.contains(':')).unwrap_or("0:0");
        let date = words.pop_if(|word| word.contains('-')).unwrap_or("*-*");
        let days = words.pop().unwrap_or("mon..sun");
        let (hours, rest) = time.split_once(':')?;
        let (minutes, second) = rest.split_once(':').unwrap_or((rest, "0"));
        let (rest, day) = date.rsplit_once('-')?;
        let months = rest.strip_prefix("*-").unwrap_or(rest);
        let sets = Self {
            weekdays: numbers(days, 0, 6, weekday)?,
            months: numbers(months, 1, 12, digits)?,
            days: numbers(day, 1, 31, digits)?,
            hours: numbers(hours, 0, 23, digits)?,
            minutes: numbers(minutes, 0, 59, digits)?,
            second: digits(second).filter(|second| *second < 60)?,
        };
        words.is_empty().then_some(sets)
    }
}

fn digits(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Reads a weekday by its first three letters, which are enough to distinguish the days.
fn weekday(text: &str) -> Option<u8> {
    let start = text.get(..3)?.to_ascii_lowercase();
    (0..7)
        .zip(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])
        .find(|(_, day)| *day == start)
        .map(|(n, _)| n)
}

fn numbers(text: &str, min: u8, max: u8, read: fn(&str) -> Option<u8>) -> Option<BTreeSet<u8>> {
    if text == "*" {
        return Some((min..=max).collect());
    }
    let mut all = BTreeSet::new();
    for item in text.split(',') {
        if let Some((first, last)) = item.split_once("..") {
            all.extend(read(first)?..=read(last)?);
        } else if let Some((first, step)) = item.split_once('/') {
            let (mut number, step) = (read(first)?, read(step)?);
            while number <= max {
                all.insert(number);
                number = number.checked_add(step.max(1))?;
            }
        } else {
            all.insert(read(item)?);
        }
    }
    all.iter().all(|number| (min..=max).contains(number)).then_some(all)
}
