//! Which backups a retention lets go: the semantics that Proxmox documents for `prune-backups`.
//!
//! Newest first, each rule in turn (last, hourly, daily, weekly, monthly, yearly) keeps the newest backup of each of its
//! periods, skipping periods in which an earlier rule has kept one already. Protected backups count for nothing and stay.
use std::collections::BTreeSet;

use crate::storage::content::Row;

/// `keep-last=2,keep-daily=7`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    text: String,
    keep_all: bool,
    last: u64,
    periods: [(Period, u64); 5],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Retention {
    /// Reads the property string.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let none =
            [Period::Hour, Period::Day, Period::Week, Period::Month, Period::Year].map(|period| (period, 0));
        let mut read = Self { text: text.to_owned(), keep_all: false, last: 0, periods: none };
        let mut any = false;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is no key=value"))?;
            let count: u64 = value.parse().map_err(|_| format!("'{value}' is no number"))?;
            any |= count > 0;
            let slot = match key {
                "keep-all" => {
                    read.keep_all = count > 0;
                    continue;
                }
                "keep-last" => {
                    read.last = count;
                    continue;
                }
                "keep-hourly" => Period::Hour,
                "keep-daily" => Period::Day,
                "keep-weekly" => Period::Week,
                "keep-monthly" => Period::Month,
                "keep-yearly" => Period::Year,
                other => return Err(format!("'{other}' is unknown")),
            };
            read.periods.iter_mut().filter(|(period, _)| *period == slot).for_each(|(_, held)| *held = count);
        }
        read.keep_all |= !any;
        Ok(read)
    }

    /// Whether nothing is ever let go.
    #[must_use]
    pub const fn keeps_all(&self) -> bool {
        self.keep_all
    }

    /// As it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The backups of one guest that go, oldest first. `backups` are all of that guest; protected ones are named apart.
#[must_use]
pub fn doomed<'a>(retention: &Retention, backups: &'a [Row], protected: &BTreeSet<String>) -> Vec<&'a Row> {
    if retention.keep_all {
        return Vec::new();
    }
    let mut rows: Vec<&Row> = backups.iter().filter(|row| !protected.contains(&row.volid)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ctime));
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    let last = usize::try_from(retention.last).unwrap_or(usize::MAX);
    kept.extend(rows.iter().take(last).map(|row| row.volid.as_str()));
    for (period, count) in retention.periods {
        let mut covered: BTreeSet<i64> = rows
            .iter()
            .filter(|row| kept.contains(row.volid.as_str()))
            .map(|row| period.of(row.ctime))
            .collect();
        let mut left = count;
        for row in &rows {
            if left == 0 {
                break;
            }
            if !kept.contains(row.volid.as_str()) && covered.insert(period.of(row.ctime)) {
                kept.insert(row.volid.as_str());
                left -= 1;
            }
        }
    }
    rows.retain(|row| !kept.contains(row.volid.as_str()));
    rows.reverse();
    rows
}

impl Period {
    /// A number that is the same for all moments of one period, in UTC.
    fn of(self, seconds: i64) -> i64 {
        let days = seconds.div_euclid(86_400);
        let stamp = crate::clock::stamp(seconds);
        let part = |range: std::ops::Range<usize>| {
            stamp.get(range).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)
        };
        match self {
            Self::Hour => seconds.div_euclid(3600),
            Self::Day => days,
            // Weeks begin on Monday; the first of 1970 was a Thursday.
            Self::Week => (days + 3).div_euclid(7),
            Self::Month => part(0..4) * 12 + part(5..7),
            Self::Year => part(0..4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ctime: i64) -> Row {
        Row {
            volid: name.to_owned(),
            content: "backup".to_owned(),
            format: "tar".to_owned(),
            size: 1,
            used: None,
            vmid: Some(100),
            ctime,
        }
    }

    fn gone(text: &str, backups: &[Row], protected: &[&str]) -> Vec<String> {
        let retention = Retention::parse(text).expect("a retention");
        let protected = protected.iter().map(|name| (*name).to_owned()).collect();
        doomed(&retention, backups, &protected).iter().map(|row| row.volid.clone()).collect()
    }

    #[test]
    fn the_last_ones_stay_and_protected_ones_do_not_count() {
        let backups: Vec<Row> = (1_i64..=4).map(|n| row(&n.to_string(), n * 10)).collect();
        assert_eq!(gone("keep-last=2", &backups, &[]), ["1", "2"]);
        assert_eq!(gone("keep-last=2", &backups, &["4"]), ["1"]);
        assert_eq!(gone("keep-all=1", &backups, &[]), Vec::<String>::new());
        assert_eq!(gone("keep-last=0", &backups, &[]), Vec::<String>::new());
    }

    #[test]
    fn each_rule_covers_periods_that_no_earlier_rule_covered() {
        const DAY: i64 = 86_400;
        // Two a day for four days.
        let backups: Vec<Row> = (0..8).map(|n| row(&n.to_string(), 20_000 * DAY + n * DAY / 2)).collect();
        assert_eq!(gone("keep-daily=2", &backups, &[]), ["0", "1", "2", "3", "4", "6"]);
        // The last one covers its own day, so the two daily ones are of the days before.
        assert_eq!(gone("keep-last=1,keep-daily=2", &backups, &[]), ["0", "1", "2", "4", "6"]);
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for wrong in ["keep-last", "keep-last=x", "keep-forever=1"] {
            assert!(Retention::parse(wrong).is_err(), "{wrong}");
        }
    }
}
