//! Whether a schedule is ready for a backup whenever another one is.
//!
//! In: two schedules in one zone. Out: a proof, or none. A schedule is ready from each of its points, put off by its jitter, until
//! its window ends. Counted by the minutes of a day, so only calendars without dates and weekdays count for the new one. On days on
//! which clocks are changed a window is an hour longer or shorter by them; so an hour is taken off each window of the new one, and
//! put on to each of the old one.

use crate::protection::policy::Schedule;

const DAY_MIN: usize = 24 * 60;

/// By so much clocks are changed, and a minute for calendars of different seconds.
const CHANGED_MIN: u32 = 61;

/// Whether `new` is provably ready at each moment at which `old` is.
pub(super) fn covers(old: &Schedule, new: &Schedule) -> bool {
    let mut ready = [false; DAY_MIN];
    let daily = new.at.iter().filter(|calendar| calendar.points().is_daily());
    let last = new.window_min.get().saturating_sub(CHANGED_MIN);
    for point in daily.flat_map(|calendar| calendar.points().minutes_of_day()) {
        for minute in minutes(point, new.jitter_min.get(), last) {
            if let Some(ready) = ready.get_mut(minute) {
                *ready = true;
            }
        }
    }
    let wanted = old.at.iter().flat_map(|calendar| calendar.points().minutes_of_day());
    let mut wanted =
        wanted.flat_map(|point| minutes(point, old.jitter_min.get(), old.window_min.get() + CHANGED_MIN));
    wanted.all(|minute| ready.get(minute) == Some(&true))
}

/// The minutes of the day from so long after a point until so long after it.
fn minutes(point: u32, from: u32, until: u32) -> impl Iterator<Item = usize> {
    (from..=until).filter_map(move |after| usize::try_from(point + after).ok()).map(|minute| minute % DAY_MIN)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::*;

    fn schedule(at: &[&str], jitter: u32, window: u32) -> Schedule {
        let zone = "Europe/Berlin";
        serde_json::from_value(json!({ "at": at, "zone": zone, "jitter_min": jitter, "window_min": window }))
            .unwrap()
    }

    #[test]
    fn a_denser_schedule_covers_a_longer_window_and_a_sparser_one_does_not() {
        let old = schedule(&["02:00"], 0, 480);
        for (at, jitter, window, covered) in [
            ("*:00", 0, 180, true),
            ("*:00", 0, 121, true),
            ("*:00", 0, 119, false),
            ("*:00", 59, 180, true),
            ("*:00", 61, 180, false),
            ("02,04,06,08,10:00", 0, 181, true),
            ("02,04,06,08:00", 0, 181, false),
            ("Mon..Fri *:00", 0, 180, false),
            ("02:00", 0, 180, false),
            ("02:00", 0, 602, true),
            ("02:00", 0, 601, false),
        ] {
            assert_eq!(covers(&old, &schedule(&[at], jitter, window)), covered, "{at} {jitter} {window}");
        }
        assert!(covers(&schedule(&["Sun 22:00"], 30, 600), &schedule(&["*:00"], 30, 200)), "past midnight");
    }

    /// Whether it is ready, by its points themselves.
    fn is_ready(schedule: &Schedule, at: Timestamp) -> bool {
        let minutes = |minutes: u32| SignedDuration::from_mins(i64::from(minutes));
        let mut after = at - minutes(schedule.window_min.get()) - SignedDuration::from_secs(1);
        while let Some(point) = schedule.next(after).filter(|point| *point <= at) {
            let since = at.duration_since(point);
            // Put off by the whole jitter, in the worst case.
            if since >= minutes(schedule.jitter_min.get()) && since <= minutes(schedule.window_min.get()) {
                return true;
            }
            after = point;
        }
        false
    }

    /// Through both days of a year on which clocks are changed, minute by minute.
    #[test]
    fn what_is_called_covered_is_ready_at_each_moment() {
        let pairs = [
            (schedule(&["02:00"], 0, 480), schedule(&["*:00"], 0, 121)),
            (schedule(&["01:30"], 0, 240), schedule(&["01,03,05:30"], 0, 181)),
            (schedule(&["Sun 01:30"], 10, 300), schedule(&["*:00,30"], 20, 141)),
            (
                schedule(&["02:30", "14:00"], 0, 240),
                schedule(&["00,02,04,06,08,10,12,14,16,18,20,22:30", "*:00"], 0, 150),
            ),
        ];
        for (old, new) in pairs {
            assert!(covers(&old, &new), "{new:?}");
            for day in ["2026-03-28T18:00:00Z", "2026-10-24T18:00:00Z"] {
                let begin: Timestamp = day.parse().unwrap();
                for minute in 0..36 * 60 {
                    let at = begin + SignedDuration::from_mins(minute);
                    assert!(!is_ready(&old, at) || is_ready(&new, at), "{at}: {old:?} {new:?}");
                }
            }
        }
    }
}
