//! The next point of a calendar expression.
//!
//! A point is a local time. A time that the clocks skip in spring does not come on that day; one that comes twice in
//! autumn counts the first time. systemd does the same, and a test compares with it.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::Calendar;
use crate::protection::zone::Zone;

/// The 29th of February on a given weekday comes at least once in forty years. Sixty is more.
const DAYS_MAX: u32 = 60 * 366;

impl Calendar {
    /// The first point after `after`; none only where the calendar itself ends.
    #[must_use]
    pub fn next(&self, zone: &Zone, after: Timestamp) -> Option<Timestamp> {
        let zone = zone.time_zone();
        let local = zone.to_datetime(after);
        let mut date = local.date();
        let mut from = local.time();
        for _ in 0..DAYS_MAX {
            if self.is_on(date)
                && let Some(found) =
                    self.on(date, from).find_map(|at| point(zone, at).filter(|at| *at > after))
            {
                return Some(found);
            }
            date = date.tomorrow().ok()?;
            from = Time::midnight();
        }
        None
    }

    fn is_on(&self, date: Date) -> bool {
        let has = |bits: u32, number: i8| u32::try_from(number).is_ok_and(|number| bits >> number & 1 == 1);
        has(self.points.months.into(), date.month())
            && has(self.points.days, date.day())
            && has(self.points.weekdays.into(), date.weekday().to_monday_zero_offset())
    }

    /// The points of a day, from a time on.
    fn on(&self, date: Date, from: Time) -> impl Iterator<Item = DateTime> {
        let points = self.points;
        let hours = (0..24_i8).filter(move |hour| points.hours >> hour & 1 == 1 && *hour >= from.hour());
        let minutes = move || (0..60_i8).filter(move |minute| points.minutes >> minute & 1 == 1);
        let times = hours.flat_map(move |hour| minutes().map(move |minute| (hour, minute)));
        times.filter_map(move |(hour, minute)| {
            let time = Time::new(hour, minute, points.second, 0).ok().filter(|time| *time >= from)?;
            Some(date.to_datetime(time))
        })
    }
}

fn point(zone: &TimeZone, at: DateTime) -> Option<Timestamp> {
    let offset = match zone.to_ambiguous_timestamp(at).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => offset,
        AmbiguousOffset::Gap { .. } => return None,
    };
    offset.to_timestamp(at).ok()
}
