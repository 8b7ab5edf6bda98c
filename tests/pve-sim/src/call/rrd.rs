//! Past figures: points in time, with values where something was measured.
use serde_json::{Value, json};

use super::Call;

/// Since when something is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Only now: the newest point has values, all others hold their time alone.
    Now,
    /// For an hour.
    Hour,
}

/// Points of the requested time frame, oldest first; `values` are those of a measured point.
#[must_use]
pub fn points(call: &Call<'_>, values: &[(&str, Value)], measured: Measured) -> Vec<Value> {
    let (step_s, count) = match call.text("timeframe").as_deref() {
        Some("day") => (60, 1440),
        Some("week") => (1_800, 336),
        Some("month") => (1_800, 1440),
        Some("year") => (21_600, 1440),
        Some("decade") => (604_800, 570),
        _ => (60, 60),
    };
    let last_s = call.node.clock.now_s() / step_s * step_s;
    let since_s = match measured {
        Measured::Now => last_s,
        Measured::Hour => last_s - 3_600,
    };
    let point = |back: i64| {
        let at_s = last_s - back * step_s;
        let mut point = json!({"time": at_s});
        if let Some(map) = point.as_object_mut().filter(|_| at_s >= since_s) {
            map.extend(values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        }
        point
    };
    (0..count).rev().map(point).collect()
}
