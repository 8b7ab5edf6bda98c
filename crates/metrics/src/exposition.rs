//! Prometheus' text format, version 0.0.4.
//!
//! All lines of one metric stand together, below its help. Label values are escaped, so that a name that a host chose cannot
//! begin a line of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;

use crate::catalogue::{Kind, Metric};
use crate::histogram::Counts;

/// The content type of a page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Vec<(&'static str, String)>);

impl Labels {
    /// Adds one.
    #[must_use]
    pub fn with(&self, name: &'static str, value: impl ToString) -> Self {
        let mut labels = self.0.clone();
        labels.push((name, value.to_string()));
        Self(labels)
    }
}

/// The value of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// Thousandths of one.
    Thousandths(u64),
    /// Millionths of one.
    Millionths(u64),
    /// A whole number that may be below 0.
    Signed(i64),
}

impl Value {
    /// A moment in seconds since 1970.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self::Thousandths(u64::try_from(time.as_millisecond()).unwrap_or(0))
    }

    /// Degrees.
    #[must_use]
    pub fn degrees(degrees: i16) -> Self {
        Self::Signed(degrees.into())
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Whole(u64::try_from(count).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Thousandths(number) if number % 1000 == 0 => write!(f, "{}", number / 1000),
            Self::Thousandths(number) => write!(f, "{}.{:03}", number / 1000, number % 1000),
            Self::Millionths(number) => write!(f, "{}.{:06}", number / 1_000_000, number % 1_000_000),
        }
    }
}

/// Lines of one metric.
#[derive(Debug)]
struct Family {
    kind: Kind,
    help: &'static str,
    lines: String,
    /// The endings and labels of its lines.
    labels: BTreeSet<(&'static str, Labels)>,
}

/// A page that is being written.
#[derive(Debug, Default)]
pub struct Exposition(BTreeMap<String, Family>);

impl Exposition {
    /// Adds a line of a metric of the catalogue.
    pub fn add(&mut self, metric: Metric, labels: &Labels, value: Value) {
        self.line((metric.name(), ""), (metric.kind(), metric.help()), labels, value);
    }

    /// Adds all lines of a histogram.
    pub fn histogram(&mut self, metric: Metric, labels: &Labels, counts: &Counts) {
        let (name, family) = (metric.name(), (metric.kind(), metric.help()));
        for (bound, count) in &counts.buckets {
            let labels = labels.with("le", Value::Millionths(*bound));
            self.line((name, "_bucket"), family, &labels, Value::Whole(*count));
        }
        self.line((name, "_bucket"), family, &labels.with("le", "+Inf"), Value::Whole(counts.count));
        self.line((name, "_sum"), family, labels, Value::Millionths(counts.sum_us));
        self.line((name, "_count"), family, labels, Value::Whole(counts.count));
    }

    /// Adds a line of a gauge of another table.
    pub(crate) fn gauge(&mut self, name: &str, help: &'static str, labels: &Labels, value: Value) {
        self.line((name, ""), (Kind::Gauge, help), labels, value);
    }

    fn line(
        &mut self,
        (name, ending): (&str, &'static str),
        (kind, help): (Kind, &'static str),
        labels: &Labels,
        value: Value,
    ) {
        if !self.0.contains_key(name) {
            self.0.insert(
                name.to_owned(),
                Family { kind, help, lines: String::new(), labels: BTreeSet::new() },
            );
        }
        let Some(family) = self.0.get_mut(name) else { return };
        // A page with two lines of the same labels is refused as a whole.
        if !family.labels.insert((ending, labels.clone())) {
            return;
        }
        family.lines.push_str(name);
        family.lines.push_str(ending);
        for (place, (label, text)) in labels.0.iter().enumerate() {
            family.lines.push(if place == 0 { '{' } else { ',' });
            family.lines.push_str(label);
            family.lines.push_str("=\"");
            escape(text, &mut family.lines);
            family.lines.push('"');
        }
        if !labels.0.is_empty() {
            family.lines.push('}');
        }
        // Writing to a string does not fail.
        let _ = writeln!(family.lines, " {value}");
    }

    /// The page.
    #[must_use]
    pub fn page(self) -> String {
        let mut page = String::new();
        for (name, family) in self.0 {
            let kind = family.kind.as_str();
            let _ = write!(page, "# HELP {name} {}\n# TYPE {name} {kind}\n{}", family.help, family.lines);
        }
        page
    }
}

/// As the format asks: backslash, quote and line feed. Other control characters are shown as spaces.
fn escape(text: &str, into: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => into.push_str("\\\\"),
            '"' => into.push_str("\\\""),
            '\n' => into.push_str("\\n"),
            other if other.is_control() => into.push(' '),
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_metric_stand_together_and_names_cannot_break_out() {
        let mut page = Exposition::default();
        let host = |name: &str| Labels::default().with("host", name);
        page.add(Metric::HostAttention, &host("box7"), Value::Whole(3));
        page.add(Metric::HubUsageDropped, &Labels::default(), Value::Whole(u64::MAX));
        page.add(Metric::HostAttention, &host("box7"), Value::Whole(4));
        page.add(Metric::HostAttention, &host("a\"} 1\nfake 2\\\r"), Value::Whole(0));
        page.add(Metric::HubUsageSize, &Labels::default(), Value::Thousandths(1_050));
        let expected = "\
# HELP holdfast_host_attention What needs a person on a host, by count.
# TYPE holdfast_host_attention gauge
holdfast_host_attention{host=\"box7\"} 3
holdfast_host_attention{host=\"a\\\"} 1\\nfake 2\\\\ \"} 0
# HELP holdfast_hub_usage_bytes Size of the use that is kept of all hosts; beyond `usage_gib_max` the oldest is removed.
# TYPE holdfast_hub_usage_bytes gauge
holdfast_hub_usage_bytes 1.050
# HELP holdfast_hub_usage_samples_dropped_total Samples of use that found no room in the queue since the start.
# TYPE holdfast_hub_usage_samples_dropped_total counter
holdfast_hub_usage_samples_dropped_total 18446744073709551615
";
        assert_eq!(page.page(), expected);
        assert_eq!(Value::at("1970-01-02T00:00:00.5Z".parse().unwrap()).to_string(), "86400.500");
    }

    #[test]
    fn a_histogram_has_its_buckets_sum_and_count() {
        let mut page = Exposition::default();
        let counts = Counts { buckets: vec![(500, 1), (2_500_000, 3)], count: 4, sum_us: 9_000_001 };
        page.histogram(Metric::HubCheckins, &Labels::default(), &counts);
        let lines = page.page().split_once("histogram\n").unwrap().1.to_owned();
        let expected = "\
holdfast_hub_checkin_duration_seconds_bucket{le=\"0.000500\"} 1
holdfast_hub_checkin_duration_seconds_bucket{le=\"2.500000\"} 3
holdfast_hub_checkin_duration_seconds_bucket{le=\"+Inf\"} 4
holdfast_hub_checkin_duration_seconds_sum 9.000001
holdfast_hub_checkin_duration_seconds_count 4
";
        assert_eq!(lines, expected);
    }
}
