//! A series as one line of blocks, with its figures.

use std::collections::BTreeMap;

use holdfast_protocol::usage::{Unit, UsageMetric, UsagePoint, UsageSeries};
use jiff::Timestamp;

use super::time::{ago, bytes, span};

/// From the lowest to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many blocks a line has at most.
const WIDTH: u32 = 60;

/// The metrics that are shown, each with its name and what it is a part of.
const SHOWN: [(UsageMetric, &str, Option<UsageMetric>); 12] = [
    (UsageMetric::Cpu, "CPU", None),
    (UsageMetric::Load, "load", None),
    (UsageMetric::MemoryUsed, "memory", Some(UsageMetric::MemoryTotal)),
    (UsageMetric::SwapUsed, "swap", Some(UsageMetric::SwapTotal)),
    (UsageMetric::DiskUsed, "root disk", Some(UsageMetric::DiskTotal)),
    (UsageMetric::NetIn, "received", None),
    (UsageMetric::NetOut, "sent", None),
    (UsageMetric::DiskRead, "read", None),
    (UsageMetric::DiskWrite, "written", None),
    (UsageMetric::CpuPressure, "waits for CPU", None),
    (UsageMetric::MemoryPressure, "waits for memory", None),
    (UsageMetric::IoPressure, "waits for disks", None),
];

/// One line for each metric that was measured. Empty where nothing was.
pub fn lines(series: &UsageSeries, now: Timestamp) -> Vec<String> {
    SHOWN
        .into_iter()
        .filter_map(|(metric, name, whole)| {
            let points = series.metrics.get(&metric)?;
            let newest = points.last()?;
            let of = whole.and_then(|whole| Some(series.metrics.get(&whole)?.last()?.max));
            // Swap of a host without swap.
            (of != Some(0)).then(|| line(metric, name, (points, newest, of), series, now))
        })
        .collect()
}

fn line(
    metric: UsageMetric,
    name: &str,
    (points, newest, of): (&[UsagePoint], &UsagePoint, Option<u64>),
    series: &UsageSeries,
    now: Timestamp,
) -> String {
    let highest = points.iter().map(|point| point.max).max().unwrap_or(0);
    let top = of.unwrap_or_else(|| ceiling(metric, highest));
    let blocks = blocks(points, (series.span.kept_s(), now), top);
    let of = of.map_or_else(String::new, |of| format!(" of {}", amount(metric, of)));
    let (newest_is, peak) = (amount(metric, newest.mean), amount(metric, highest));
    format!("{name:<16} {blocks} {newest_is}{of} {}, at most {peak}", ago(newest.at, now))
}

/// What a full block stands for, where the metric has no whole.
fn ceiling(metric: UsageMetric, highest: u64) -> u64 {
    match metric.spec().unit {
        Unit::Permille => 1000,
        Unit::Centi | Unit::Bytes | Unit::BytesPerSecond => highest.max(1),
    }
}

/// A block for each part of the time, the highest mean in it; a gap where nothing was measured.
fn blocks(points: &[UsagePoint], (kept_s, now): (u32, Timestamp), top: u64) -> String {
    let part_s = i64::from(kept_s.div_ceil(WIDTH).max(1));
    let begin = now.as_second().saturating_sub(i64::from(kept_s));
    let mut parts: BTreeMap<i64, u64> = BTreeMap::new();
    for point in points {
        let part = point.at.as_second().saturating_sub(begin).div_euclid(part_s);
        let highest = parts.entry(part).or_default();
        *highest = (*highest).max(point.mean);
    }
    let block = |part| match parts.get(&part) {
        None => ' ',
        Some(value) => {
            let eighth = u128::from(*value).saturating_mul(8).checked_div(u128::from(top)).unwrap_or(0);
            let place = usize::try_from(eighth.min(7)).unwrap_or(7);
            BLOCKS.get(place).copied().unwrap_or(' ')
        }
    };
    (0..i64::from(WIDTH)).map(block).collect()
}

fn amount(metric: UsageMetric, value: u64) -> String {
    match metric.spec().unit {
        Unit::Permille => format!("{}.{} %", value / 10, value % 10),
        Unit::Centi => format!("{}.{:02}", value / 100, value % 100),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
    }
}

/// The heading: how far back, and what a block is.
pub fn heading(series: &UsageSeries) -> String {
    let part = series.span.kept_s().div_ceil(WIDTH);
    format!("Use in the last {}; a block is {}", span(series.span.kept_s().into()), span(part.into()))
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::usage::UsageSpan;

    use super::*;

    #[test]
    fn gaps_are_gaps_and_a_full_block_is_the_whole() {
        let now: Timestamp = "2027-03-01T12:00:00Z".parse().unwrap();
        let at = |minutes: i64| now.checked_sub(jiff::SignedDuration::from_mins(minutes)).unwrap();
        let point = |minutes, value| UsagePoint { at: at(minutes), mean: value, max: value };
        let metrics = BTreeMap::from([
            (UsageMetric::Cpu, vec![point(120, 0), point(118, 500), point(2, 1000)]),
            (UsageMetric::MemoryUsed, vec![point(4, 256 << 20), point(2, 512 << 20)]),
            (UsageMetric::MemoryTotal, vec![point(2, 1 << 30)]),
            (UsageMetric::SwapUsed, vec![point(2, 0)]),
            (UsageMetric::SwapTotal, vec![point(2, 0)]),
        ]);
        let series = UsageSeries { span: UsageSpan::Hours2, step_s: 60, metrics };
        let drawn = lines(&series, now);
        assert_eq!(heading(&series), "Use in the last 2 h; a block is 2 min");
        let gap = " ".repeat(57);
        assert_eq!(drawn[0], format!("CPU              ▁▅{gap}█ 100.0 % 2 min ago, at most 100.0 %"));
        let gap = " ".repeat(58);
        assert_eq!(
            drawn[1],
            format!("memory           {gap}▃▅ 512.0 MiB of 1.0 GiB 2 min ago, at most 512.0 MiB")
        );
        assert_eq!(drawn.len(), 2, "no swap, no line: {drawn:?}");
    }
}
