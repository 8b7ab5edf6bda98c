//! Tests of the last point of a schedule, over a year.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;

fn schedule(at: &[&str], zone: &str) -> Schedule {
    serde_json::from_value(json!({ "at": at, "zone": zone, "jitter_min": 0, "window_min": 60 })).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_last_point_is_the_one_that_no_other_follows_until_now() {
    let from = at("2026-01-01T00:00:00Z");
    let until = at("2027-01-10T00:00:00Z");
    for (calendars, zone) in [
        (&["02:30"][..], "Europe/Berlin"),
        (&["*:07", "Mon 02:30"], "America/Havana"),
        (&["monthly", "Sat 04:00"], "Australia/Lord_Howe"),
        (&["quarterly"], "UTC"),
    ] {
        let schedule = schedule(calendars, zone);
        let mut before = schedule.last(from);
        assert!(before.is_some_and(|point| point <= from), "{calendars:?}: {before:?}");
        let mut last = from;
        while let Some(point) = schedule.next(last).filter(|point| *point < until) {
            let second = SignedDuration::from_secs(1);
            assert_eq!(schedule.last(point), Some(point), "{calendars:?} at its point");
            assert_eq!(schedule.last(point - second), before, "{calendars:?} just before {point}");
            let middle = last + point.duration_since(last) / 2;
            assert_eq!(schedule.last(middle), before, "{calendars:?} at {middle}");
            (before, last) = (Some(point), point);
        }
    }
}

#[test]
fn a_rare_point_is_found_years_later() {
    let leap = schedule(&["*-2-29 12:00"], "UTC");
    assert_eq!(leap.last(at("2027-06-01T00:00:00Z")), Some(at("2024-02-29T12:00:00Z")));
    assert_eq!(leap.last(at("2024-02-29T12:00:00Z")), Some(at("2024-02-29T12:00:00Z")));
}
