//! A series for a plot, made of kept rows.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::usage::{UsageMetric, UsagePoint, UsageSeries, UsageSpan};
use jiff::Timestamp;

use super::row::{Figure, UsageRow};

/// Points of one metric in an answer, at most. Longer series are merged to wider steps.
pub const POINTS_MAX: u32 = 800;

/// The series of a host, or of one of its guests.
#[must_use]
pub fn series(span: UsageSpan, guest: Option<GuestUid>, rows: &[(Timestamp, UsageRow)]) -> UsageSeries {
    let steps = span.kept_s().checked_div(span.step_s()).unwrap_or(0);
    let width = steps.div_ceil(POINTS_MAX).max(1);
    let step_s = span.step_s().saturating_mul(width);
    let mut wide: BTreeMap<i64, Vec<UsageRow>> = BTreeMap::new();
    for (at, row) in rows {
        let one = UsageRow {
            host: if guest.is_none() { row.host.clone() } else { BTreeMap::new() },
            guests: guest.and_then(|uid| Some((uid, row.guests.get(&uid)?.clone()))).into_iter().collect(),
        };
        let second = at.as_second();
        wide.entry(second.saturating_sub(second.rem_euclid(step_s.into()))).or_default().push(one);
    }
    let mut metrics: BTreeMap<UsageMetric, Vec<UsagePoint>> = BTreeMap::new();
    for (second, rows) in wide {
        let Ok(at) = Timestamp::from_second(second) else { continue };
        let merged = UsageRow::merged(&rows);
        let figures = match guest {
            Some(uid) => merged.guests.get(&uid).cloned().unwrap_or_default(),
            None => merged.host,
        };
        for (metric, Figure { mean, max }) in figures {
            metrics.entry(metric).or_default().push(UsagePoint { at, mean, max });
        }
    }
    UsageSeries { span, step_s, metrics }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::usage::{Readings, UsageSample};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn long_series_are_merged_to_wider_steps() {
        let uid = GuestUid::new(Uuid::from_u128(7));
        let row = |n: i64| {
            let at = Timestamp::from_second(1_800_000_000 + n * 3600).unwrap();
            let guests = BTreeMap::from([(uid, Readings::from([(UsageMetric::Cpu, n.unsigned_abs())]))]);
            (at, UsageRow::of(&UsageSample { at, host: Readings::from([(UsageMetric::Cpu, 500)]), guests }))
        };
        let rows: Vec<_> = (0..9600).map(row).collect();
        let of_guest = series(UsageSpan::Days400, Some(uid), &rows);
        assert_eq!(of_guest.step_s, 12 * 3600);
        let points = &of_guest.metrics[&UsageMetric::Cpu];
        assert!(points.len() <= usize::try_from(POINTS_MAX).unwrap() + 1, "{}", points.len());
        assert_eq!(points.last().map(|point| point.max), Some(9599));
        let of_host = series(UsageSpan::Hours2, None, &rows[..3]);
        assert_eq!(of_host.metrics[&UsageMetric::Cpu].len(), 3);
        assert_eq!(
            series(UsageSpan::Hours2, Some(GuestUid::new(Uuid::nil())), &rows).metrics,
            BTreeMap::new()
        );
    }
}
