//! Past figures: points in time, with values where something was measured.
use serde_json::{Value, json};

use super::Call;

/// One point a minute over the last hour (or the asked time frame's own step); `now` holds the present values for the newest point.
#[must_use]
pub fn points(call: &Call<'_>, now: &[(&str, Value)]) -> Vec<Value> {
    let step_s = match call.text("timeframe").as_deref() {
        Some("day") => 60 * 30,
        Some("week") => 60 * 180,
        Some("month") => 60 * 720,
        Some("year") => 60 * 10_080,
        _ => 60,
    };
    let last_s = call.node.clock.now_s() / step_s * step_s;
    let mut points: Vec<Value> = (0..70).map(|back| json!({"time": last_s - (69 - back) * step_s})).collect();
    if let Some(map) = points.last_mut().and_then(Value::as_object_mut) {
        map.extend(now.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    points
}
