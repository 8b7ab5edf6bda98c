//! Tests of calendar expressions, some against systemd.

use jiff::Timestamp;

use super::*;
use crate::protection::Zone;

mod oracle;

fn zone(name: &str) -> Zone {
    Zone::try_from(name.to_owned()).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn same(one: &str, other: &str) {
    let points =
        |text: &str| *text.parse::<Calendar>().unwrap_or_else(|why| panic!("{text}: {why}")).points();
    assert_eq!(points(one), points(other), "{one} and {other}");
}

#[test]
fn the_same_points_in_other_words() {
    for (one, other) in [
        ("02:30", "*-*-* 2:30:00"),
        ("02:30", "Mon..Sun *-* 02:30"),
        ("Mon", "weekly"),
        ("daily", "0:0"),
        ("hourly", "*:00"),
        ("minutely", "*:*"),
        ("monthly", "*-*-1"),
        ("quarterly", "1/3-1"),
        ("semi-annually", "01,07-01 00:00"),
        ("annually", "01-01"),
        ("sat,Thu,Mon..wednesday,Sat..Sun 1:00", "Mon..Thu,Sat,Sun 01:00"),
        ("*:0/15", "*:00,15,30,45"),
        ("8..10:5", "8,9,10:05:00"),
        ("*-2/2-1/7 4:00", "2,4,6,8,10,12-1,8,15,22,29 04:00"),
    ] {
        same(one, other);
    }
}

#[test]
fn what_is_not_shared_is_refused_with_its_place() {
    use CalendarError as E;
    let part = |text: &str| E::Part(text.to_owned());
    let number = |text: &str, field, min, max| E::Number { text: text.to_owned(), field, min, max };
    let weekday = |text: &str| E::Weekday(text.to_owned());
    let cases = [
        ("", E::Spaces),
        (" 2:00", E::Spaces),
        ("2:00 ", E::Spaces),
        ("Mon  2:00", E::Spaces),
        ("2", part("2")),
        ("*/15", part("*/15")),
        ("2:00 Mon", part("Mon")),
        ("2:00 10-15", part("10-15")),
        ("daily 2:00", weekday("daily")),
        ("2:00 UTC", part("UTC")),
        ("1:2:3:4", part("1:2:3:4")),
        ("1-2-3-4", part("1-2-3-4")),
        ("Day 2:00", weekday("Day")),
        ("Mon, 2:00", weekday("")),
        ("Mon-Fri 2:00", weekday("Mon-Fri")),
        ("Fri..Mon 2:00", E::Backwards("Fri..Mon".to_owned())),
        ("24:00", number("24", "hours", 0, 23)),
        ("1:60", number("60", "minutes", 0, 59)),
        ("1:00:60", number("60", "seconds", 0, 59)),
        ("1:00:0/5", number("0/5", "seconds", 0, 59)),
        ("1:00:*", number("*", "seconds", 0, 59)),
        ("1:00:1.5", number("1.5", "seconds", 0, 59)),
        ("012:00", number("012", "hours", 0, 23)),
        ("+1:00", number("+1", "hours", 0, 23)),
        ("١:00", number("١", "hours", 0, 23)),
        ("1,:00", number("", "hours", 0, 23)),
        ("*,2:00", number("*", "hours", 0, 23)),
        ("13-1 1:00", number("13", "months", 1, 12)),
        ("*-0 1:00", number("0", "days", 1, 31)),
        ("*-*~1 1:00", number("*~1", "days", 1, 31)),
        ("9..8:00", E::Backwards("9..8".to_owned())),
        ("0/0:00", E::Step("0/0".to_owned())),
        ("*:30/40", E::Step("30/40".to_owned())),
        ("*:0/60", E::Step("0/60".to_owned())),
        ("*:0/x", E::Step("0/x".to_owned())),
        ("2030-*-* 1:00", E::Years("2030".to_owned())),
        ("*-2-30 1:00", E::Never),
        ("2,4,6-31", E::Never),
    ];
    for (text, error) in cases {
        assert_eq!(text.parse::<Calendar>().unwrap_err(), error, "{text}");
    }
    for text in ["*:*/15", "8..18/2:00"] {
        assert!(matches!(text.parse::<Calendar>(), Err(E::NotShared { .. })), "{text}");
    }
    let long = format!("{}2:00", "1,".repeat(70));
    assert_eq!(long.parse::<Calendar>().unwrap_err(), E::Length(144));
}

/// By hand, for machines without systemd, and for what the clocks do to a night.
#[test]
fn points_come_in_their_zone() {
    let points = |text: &str, name: &str, from: &str| -> Vec<String> {
        let (calendar, zone) = (text.parse::<Calendar>().unwrap(), zone(name));
        let mut after = at(from);
        let mut next = || {
            after = calendar.next(&zone, after).unwrap();
            after.to_string()
        };
        (0..3).map(|_| next()).collect()
    };
    assert_eq!(
        points("02:30", "Europe/Berlin", "2026-03-27T12:00:00Z"),
        ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"],
        "the 29th has no half past two"
    );
    assert_eq!(
        points("02:30", "Europe/Berlin", "2026-10-24T12:00:00Z"),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"],
        "the 25th has two, and the first counts"
    );
    assert_eq!(
        points("02:30", "Europe/Berlin", "2026-10-25T01:15:00Z")[0],
        "2026-10-26T01:30:00Z",
        "asked between the two"
    );
    assert_eq!(
        points("Sun 2-29 00:00", "UTC", "2026-01-01T00:00:00Z"),
        ["2032-02-29T00:00:00Z", "2060-02-29T00:00:00Z", "2088-02-29T00:00:00Z"]
    );
    let daily: Calendar = "12:00".parse().unwrap();
    let noon = at("2026-01-01T12:00:00Z");
    assert_eq!(daily.next(&zone("UTC"), noon).unwrap(), at("2026-01-02T12:00:00Z"), "after, not at");
    assert_eq!(daily.next(&zone("UTC"), at("2026-01-01T11:59:59.999999Z")).unwrap(), noon);
    assert_eq!(daily.next(&zone("UTC"), Timestamp::MAX), None);
}
