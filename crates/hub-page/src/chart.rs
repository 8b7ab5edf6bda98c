//! Charts of a host's or guest's use, with tables.
//!
//! In: what the hub keeps of each metric. Out: one chart for each metric that has points: the mean as a line and the highest
//! as a paler one, and the same as a table. A step that was not measured is a gap. Deliberately absent: scripts and styles.

use std::fmt::Write as _;

use holdfast_protocol::time_text::bytes;
use holdfast_protocol::usage::{Unit, UsageMetric, UsagePoint, UsageSeries, UsageSpan};
use jiff::{SignedDuration, Timestamp};

use crate::frame::{Frame, When};

/// How far back the charts of a page go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChartSpan {
    Hour,
    #[default]
    Day,
    Month,
}

impl ChartSpan {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// As it stands in an address.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Month => "30d",
        }
    }

    /// One that is not known is the usual one: a bookmark is no program.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self::ALL.into_iter().find(|span| span.as_str() == text).unwrap_or_default()
    }

    /// The series that has it with the finest step.
    #[must_use]
    pub const fn series(self) -> UsageSpan {
        match self {
            Self::Hour => UsageSpan::Hours2,
            Self::Day => UsageSpan::Days7,
            Self::Month => UsageSpan::Days400,
        }
    }

    const fn seconds(self) -> i64 {
        match self {
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Month => 30 * 86_400,
        }
    }
}

/// Columns of a picture, at most: more than a screen shows.
const COLUMNS: i64 = 180;

/// Rows of a table, at most.
const ROWS: i64 = 24;

/// Size of a picture in its own squares.
const WIDTH: i64 = 540;
const HEIGHT: i64 = 90;

/// Which metrics a page shows, and what the whole of each is.
const SHOWN: [(UsageMetric, &str, Option<UsageMetric>); 9] = [
    (UsageMetric::Cpu, "CPU", None),
    (UsageMetric::MemoryUsed, "Memory", Some(UsageMetric::MemoryTotal)),
    (UsageMetric::DiskUsed, "Root disk", Some(UsageMetric::DiskTotal)),
    (UsageMetric::Load, "Load", None),
    (UsageMetric::IoPressure, "Waiting for disks", None),
    (UsageMetric::NetIn, "Network, received", None),
    (UsageMetric::NetOut, "Network, sent", None),
    (UsageMetric::DiskRead, "Disk, read", None),
    (UsageMetric::DiskWrite, "Disk, written", None),
];

/// One chart.
pub(crate) struct Chart {
    pub title: &'static str,
    pub newest: String,
    pub summary: String,
    pub top: String,
    pub mean: String,
    pub highest: String,
    pub rows: Vec<ChartRow>,
}

pub(crate) struct ChartRow {
    pub at: When,
    pub mean: String,
    pub highest: String,
}

/// A link to another span.
pub(crate) struct SpanLink {
    pub text: &'static str,
    pub is_current: bool,
}

/// The charts of a page.
pub(crate) struct Charts {
    pub spans: Vec<SpanLink>,
    pub from: String,
    pub to: String,
    pub charts: Vec<Chart>,
}

impl Charts {
    pub(crate) fn new(frame: &Frame, span: ChartSpan, series: &UsageSeries) -> Self {
        let from =
            frame.now.saturating_sub(SignedDuration::from_secs(span.seconds())).unwrap_or(Timestamp::MIN);
        let window =
            Window { from: from.as_second(), seconds: span.seconds(), step_s: i64::from(series.step_s) };
        let points = |metric: &UsageMetric| series.metrics.get(metric).map_or(&[][..], Vec::as_slice);
        let chart = |(metric, title, whole): (UsageMetric, &'static str, Option<UsageMetric>)| {
            let whole = whole.and_then(|whole| points(&whole).last().map(|point| point.max));
            chart(frame, window, title, metric.spec().unit, points(&metric), whole)
        };
        Self {
            spans: ChartSpan::ALL
                .into_iter()
                .map(|one| SpanLink { text: one.as_str(), is_current: one == span })
                .collect(),
            from: holdfast_protocol::time_text::stamp(from),
            to: holdfast_protocol::time_text::stamp(frame.now),
            charts: SHOWN.into_iter().filter_map(chart).collect(),
        }
    }
}

/// What part of a series is shown, in seconds.
#[derive(Clone, Copy)]
struct Window {
    from: i64,
    seconds: i64,
    step_s: i64,
}

/// Several points as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    place: i64,
    mean: u64,
    highest: u64,
}

/// Points in so many equal parts of the window, the oldest first; a part without a point is left out.
fn buckets(points: &[UsagePoint], window: Window, parts: i64) -> Vec<Bucket> {
    let parts = parts.min(window.seconds / window.step_s.max(1)).max(1);
    let mut found: Vec<(Bucket, u64)> = Vec::new();
    for point in points {
        let since = point.at.as_second() - window.from;
        if !(0..window.seconds).contains(&since) {
            continue;
        }
        let place = since * parts / window.seconds;
        match found.last_mut() {
            Some((last, count)) if last.place == place => {
                last.mean = last.mean.saturating_add(point.mean);
                last.highest = last.highest.max(point.max);
                *count += 1;
            }
            Some(_) | None => found.push((Bucket { place, mean: point.mean, highest: point.max }, 1)),
        }
    }
    found.into_iter().map(|(bucket, count)| Bucket { mean: bucket.mean / count, ..bucket }).collect()
}

fn chart(
    frame: &Frame,
    window: Window,
    title: &'static str,
    unit: Unit,
    points: &[UsagePoint],
    whole: Option<u64>,
) -> Option<Chart> {
    let columns = buckets(points, window, COLUMNS);
    let newest = columns.last()?;
    let highest = columns.iter().map(|bucket| bucket.highest).max()?;
    let top = match unit {
        Unit::Permille => 1000,
        Unit::Bytes => whole.unwrap_or(highest),
        Unit::Centi | Unit::BytesPerSecond => highest,
    }
    .max(highest)
    .max(1);
    let parts = COLUMNS.min(window.seconds / window.step_s.max(1)).max(1);
    let of = |value: u64| match whole {
        Some(whole) => format!("{} of {}", words(unit, value), words(unit, whole)),
        None => words(unit, value),
    };
    let row = |bucket: &Bucket| {
        let parts = ROWS.min(window.seconds / window.step_s.max(1)).max(1);
        let at =
            Timestamp::from_second(window.from + bucket.place * window.seconds / parts).unwrap_or(frame.now);
        ChartRow { at: frame.when(at), mean: words(unit, bucket.mean), highest: words(unit, bucket.highest) }
    };
    Some(Chart {
        title,
        newest: of(newest.mean),
        summary: format!(
            "{title}: {} at last, {} at the highest; the table below has the numbers",
            of(newest.mean),
            words(unit, highest)
        ),
        top: words(unit, top),
        mean: path(&columns, parts, top, |bucket| bucket.mean),
        highest: path(&columns, parts, top, |bucket| bucket.highest),
        rows: buckets(points, window, ROWS).iter().rev().map(row).collect(),
    })
}

/// A line through the buckets, cut where parts are missing.
fn path(columns: &[Bucket], parts: i64, top: u64, value: impl Fn(&Bucket) -> u64) -> String {
    let mut line = String::new();
    let mut before = None;
    for bucket in columns {
        let x = (2 * bucket.place + 1) * WIDTH / (2 * parts);
        let part = u128::from(value(bucket)) * u128::from(HEIGHT.unsigned_abs()) / u128::from(top);
        let y = HEIGHT - i64::try_from(part).unwrap_or(HEIGHT).min(HEIGHT);
        let is_next = before == Some(bucket.place - 1);
        // A point alone is a short line, so that it is seen.
        let _into_a_string = match is_next {
            true => write!(line, "L{x} {y}"),
            false => write!(line, "M{x} {y}h1"),
        };
        before = Some(bucket.place);
    }
    line
}

fn words(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Permille => format!("{} %", value.saturating_add(5) / 10),
        Unit::Centi => format!("{}.{:02}", value / 100, value % 100),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
    }
}

/// In how many days a disk is full at the pace of the days that are shown; none where it does not grow, or too few days
/// are known.
pub(crate) fn full_in_days(series: &UsageSeries) -> Option<u64> {
    let used = series.metrics.get(&UsageMetric::DiskUsed)?;
    let total = series.metrics.get(&UsageMetric::DiskTotal)?.last()?.mean;
    let last = used.last()?;
    let from = last.at.as_second().saturating_sub(FORECAST_S);
    let first = used.iter().find(|point| point.at.as_second() >= from)?;
    let seconds = last.at.as_second() - first.at.as_second();
    let grown = last.mean.checked_sub(first.mean).filter(|grown| *grown > 0)?;
    if seconds < FORECAST_LEAST_S {
        return None;
    }
    let left = total.saturating_sub(last.mean);
    let days = u128::from(left) * u128::from(seconds.unsigned_abs()) / u128::from(grown) / 86_400;
    u64::try_from(days).ok().filter(|days| *days <= 3_650)
}

/// The pace is that of two weeks, and of three days at least.
const FORECAST_S: i64 = 14 * 86_400;
const FORECAST_LEAST_S: i64 = 3 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn point(second: i64, mean: u64, max: u64) -> UsagePoint {
        UsagePoint { at: Timestamp::from_second(second).unwrap(), mean, max }
    }

    const WINDOW: Window = Window { from: 1_000_000, seconds: 3_600, step_s: 60 };

    #[test]
    fn points_are_put_together_and_gaps_stay() {
        let points: Vec<_> =
            (0..60).filter(|m| *m != 30).map(|m| point(1_000_000 + m * 60, 10, 20)).collect();
        let all = buckets(&points, WINDOW, COLUMNS);
        assert_eq!(all.len(), 59, "a minute each, and one was not measured");
        let line = path(&all, 60, 20, |bucket| bucket.mean);
        assert_eq!(line.matches('M').count(), 2, "{line}");
        let few = buckets(&points, WINDOW, 6);
        assert_eq!(few.len(), 6);
        assert!(few.iter().all(|bucket| (bucket.mean, bucket.highest) == (10, 20)));
        assert_eq!(buckets(&[point(999_999, 1, 1), point(1_003_600, 1, 1)], WINDOW, 6), []);
    }

    #[test]
    fn the_top_of_a_line_is_the_top_of_the_picture() {
        let all = buckets(&[point(1_000_000, 0, 0), point(1_000_060, 100, 100)], WINDOW, COLUMNS);
        assert_eq!(path(&all, 60, 100, |bucket| bucket.mean), format!("M4 {HEIGHT}h1L13 0"));
    }

    #[test]
    fn a_disk_that_grows_is_full_some_day() {
        let series = |days: i64, per_day: u64| UsageSeries {
            span: UsageSpan::Days400,
            step_s: 3600,
            metrics: [
                (
                    UsageMetric::DiskUsed,
                    (0..=days).map(|d| point(d * 86_400, 100 + d.unsigned_abs() * per_day, 0)).collect(),
                ),
                (UsageMetric::DiskTotal, vec![point(days * 86_400, 300, 300)]),
            ]
            .into(),
        };
        assert_eq!(full_in_days(&series(10, 10)), Some(10));
        assert_eq!(full_in_days(&series(10, 0)), None);
        assert_eq!(full_in_days(&series(2, 10)), None, "too few days");
    }
}
