//! A proof that one schedule covers another.
//!
//! In: two schedules in one zone. Out: a proof, or none. A schedule is ready from each of its points, put off by its
//! jitter, until its window ends. The proof counts the minutes of a day, so only calendars without dates and weekdays
//! count for the new schedule. On days on which clocks are changed, a window is an hour longer or shorter. So each
//! window of the new schedule is an hour shorter in the proof, and each of the old one an hour longer.

use crate::protection::policy::Schedule;

const DAY_MIN: usize = 24 * 60;

/// The largest change of the clocks, and a minute for calendars of different seconds.
const CHANGED_MIN: u32 = 61;

/// Whether `new` is provably ready at each moment at which `old` is.
pub(super) fn covers(old: &Schedule, new: &Schedule) -> bool {
    let daily = new.at.iter().filter(|calendar| calendar.points().is_daily());
    let last = new.window_min.get().saturating_sub(CHANGED_MIN);
    let mut ready = Spans::none();
    for point in daily.flat_map(|calendar| calendar.points().minutes_of_day()) {
        ready.add(point, new.jitter_min.get(), last);
    }
    let mut wanted = Spans::none();
    for point in old.at.iter().flat_map(|calendar| calendar.points().minutes_of_day()) {
        wanted.add(point, old.jitter_min.get(), old.window_min.get().saturating_add(CHANGED_MIN));
    }
    ready.minutes().iter().zip(wanted.minutes()).all(|(ready, wanted)| *ready || !wanted)
}

/// Spans of minutes, by where each begins and ends in two days from midnight.
///
/// A schedule may have a point each minute and a window of a day, and schedules are compared in each cycle of the plan: so a
/// span costs the same however long it is.
struct Spans([i32; 2 * DAY_MIN]);

impl Spans {
    const fn none() -> Self {
        Self([0; 2 * DAY_MIN])
    }

    /// Adds the minutes from so long after a point until so long after it, both included.
    fn add(&mut self, point: u32, from: u32, until: u32) {
        let Some(longer) = until.checked_sub(from) else { return };
        let Ok(begin) = usize::try_from(point.saturating_add(from)) else { return };
        let begin = begin % DAY_MIN;
        // A day and more is each minute of the day.
        let length = usize::try_from(longer).map_or(DAY_MIN, |longer| (longer + 1).min(DAY_MIN));
        if let Some(begins) = self.0.get_mut(begin) {
            *begins += 1;
        }
        if let Some(ends) = self.0.get_mut(begin + length) {
            *ends -= 1;
        }
    }

    /// Of each minute of a day, whether it is in a span, also in one that began the day before.
    fn minutes(&self) -> [bool; DAY_MIN] {
        let (mut open, mut covered) = (0, [false; DAY_MIN]);
        for (minute, change) in self.0.iter().enumerate() {
            open += change;
            if let Some(covered) = covered.get_mut(minute % DAY_MIN) {
                *covered |= open > 0;
            }
        }
        covered
    }
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

    /// The same, one minute after the other.
    fn walked(old: &Schedule, new: &Schedule) -> bool {
        let walk = |schedule: &Schedule, daily: bool, from: u32, until: u32| {
            let mut minutes = [false; DAY_MIN];
            for calendar in schedule.at.iter().filter(|at| !daily || at.points().is_daily()) {
                for (point, after) in calendar
                    .points()
                    .minutes_of_day()
                    .flat_map(|point| (from..=until).map(move |after| (point, after)))
                {
                    minutes[usize::try_from(point + after).unwrap() % DAY_MIN] = true;
                }
            }
            minutes
        };
        let last = new.window_min.get().saturating_sub(CHANGED_MIN);
        let ready = walk(new, true, new.jitter_min.get(), last);
        let wanted = walk(old, false, old.jitter_min.get(), old.window_min.get() + CHANGED_MIN);
        (0..DAY_MIN).all(|minute| ready[minute] || !wanted[minute])
    }

    #[test]
    fn spans_say_what_a_walk_through_their_minutes_says() {
        let all = [("00:00", 0), ("02:00", 5), ("*:00", 59), ("*:00,30", 61), ("23:59", 0), ("Sat 03:10", 0)];
        let windows = [1, 62, 90, 181, 1379, 1440];
        let mut covered = 0;
        for ((old, old_jitter), (new, jitter)) in
            all.iter().flat_map(|old| all.iter().map(move |new| (old, new)))
        {
            for (old_window, window) in
                windows.iter().flat_map(|old| windows.iter().map(move |new| (old, new)))
            {
                let old = schedule(&[old], *old_jitter.min(&(old_window - 1)), *old_window);
                let new = schedule(&[new], *jitter.min(&(window - 1)), *window);
                let says = covers(&old, &new);
                assert_eq!(says, walked(&old, &new), "{old:?} {new:?}");
                covered += u32::from(says);
            }
        }
        assert!(covered > 50, "{covered} of them are covered");
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
