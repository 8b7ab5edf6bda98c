//! Which kept snapshots of state stay.
//!
//! In: what is kept, and the bound in bytes. Out: the numbers of those that go. Of each of the last days, weeks and months
//! that have one, the newest stays. Then the oldest go until the bound is kept; the newest of all always stays.

use std::collections::BTreeSet;

use jiff::civil::{Date, ISOWeekDate};

/// Days, weeks and months of which one snapshot stays.
pub const DAYS_KEPT: usize = 14;
pub const WEEKS_KEPT: usize = 8;
pub const MONTHS_KEPT: usize = 12;

/// A snapshot that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSnapshot {
    pub number: i64,
    pub day: Date,
    pub stored_bytes: u64,
}

/// The numbers of those that go.
#[must_use]
pub fn expired(kept: &[KeptSnapshot], bytes_max: u64) -> Vec<i64> {
    let mut newest_first = kept.to_vec();
    newest_first.sort_by_key(|one| std::cmp::Reverse((one.day, one.number)));
    let mut staying = first_of_each(&newest_first, DAYS_KEPT, |day| day);
    staying.extend(first_of_each(&newest_first, WEEKS_KEPT, |day| week(day.iso_week_date())));
    staying.extend(first_of_each(&newest_first, MONTHS_KEPT, |day| (day.year(), day.month())));
    let mut bytes: u64 = 0;
    for (place, one) in newest_first.iter().enumerate().filter(|(_, one)| staying.contains(&one.number)) {
        bytes = bytes.saturating_add(one.stored_bytes);
        if bytes > bytes_max && place > 0 {
            let older: Vec<i64> = newest_first.iter().skip(place).map(|one| one.number).collect();
            return gone(kept, |number| !staying.contains(&number) || older.contains(&number));
        }
    }
    gone(kept, |number| !staying.contains(&number))
}

fn gone(kept: &[KeptSnapshot], goes: impl Fn(i64) -> bool) -> Vec<i64> {
    kept.iter().map(|one| one.number).filter(|number| goes(*number)).collect()
}

fn week(date: ISOWeekDate) -> (i16, i8) {
    (date.year(), date.week())
}

/// The newest of each of the newest `count` periods that have one.
fn first_of_each<P: Ord>(
    newest_first: &[KeptSnapshot],
    count: usize,
    period: impl Fn(Date) -> P,
) -> BTreeSet<i64> {
    let mut seen = BTreeSet::new();
    let firsts = newest_first.iter().filter(|one| seen.insert(period(one.day)));
    firsts.take(count).map(|one| one.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One for each day of two years.
    fn two_years(stored_bytes: u64) -> Vec<KeptSnapshot> {
        let begin: Date = "2025-01-01".parse().unwrap();
        let days = (0..730).map(|day| begin.checked_add(jiff::Span::new().days(day)).unwrap());
        (1..).zip(days).map(|(number, day)| KeptSnapshot { number, day, stored_bytes }).collect()
    }

    fn after(kept: &[KeptSnapshot], bytes_max: u64) -> Vec<KeptSnapshot> {
        let gone = expired(kept, bytes_max);
        kept.iter().filter(|one| !gone.contains(&one.number)).copied().collect()
    }

    #[test]
    fn days_then_weeks_then_months_stay() {
        let kept = after(&two_years(1), u64::MAX);
        let days: Vec<String> = kept.iter().map(|one| one.day.to_string()).collect();
        // 2026-12-31 is a Thursday: the newest of each week and month, then the last fourteen days.
        assert_eq!(days.len(), 30, "{days:?}");
        assert_eq!(days.first().map(String::as_str), Some("2026-01-31"));
        assert_eq!(days.last().map(String::as_str), Some("2026-12-31"));
        assert!(days.iter().filter(|day| day.as_str() >= "2026-12-18").count() == DAYS_KEPT);
        assert!(expired(&kept, u64::MAX).is_empty(), "what stays once stays");
    }

    #[test]
    fn thinning_each_day_keeps_what_thinning_at_the_end_keeps() {
        let mut kept: Vec<KeptSnapshot> = Vec::new();
        for one in two_years(1) {
            kept.push(one);
            kept = after(&kept, u64::MAX);
        }
        assert_eq!(kept, after(&two_years(1), u64::MAX));
    }

    #[test]
    fn the_oldest_go_until_the_bound_is_kept_and_the_newest_stays() {
        let kept = after(&two_years(10), 50);
        assert_eq!(kept.len(), 5);
        assert_eq!(kept.last().map(|one| one.day.to_string()).as_deref(), Some("2026-12-31"));
        assert_eq!(after(&two_years(10), 0).len(), 1);
    }
}
