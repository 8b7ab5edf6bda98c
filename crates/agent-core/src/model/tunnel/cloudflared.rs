//! Ready connections in the answers of cloudflared.
//!
//! In: the body of `/ready` (`metrics/readiness.go` of cloudflared: JSON, with status 200 or 503), or the page of
//! metrics (`supervisor/metrics.go`). Out: how many connections are ready. Fields that are not known are ignored: the
//! program is of others and changes by itself.

use serde::Deserialize;

/// More than any tunnel has; a larger number is no count.
const CONNECTIONS_MAX: u32 = 1_000;

/// The metric of ready connections.
const METRIC: &str = "cloudflared_tunnel_ha_connections";

#[derive(Deserialize)]
struct Ready {
    #[serde(rename = "readyConnections")]
    ready_connections: u32,
}

/// Of an answer to `/ready`.
#[must_use]
pub fn ready(status: u16, body: &[u8]) -> Option<u32> {
    if !matches!(status, 200 | 503) {
        return None;
    }
    let ready: Ready = serde_json::from_slice(body).ok()?;
    (ready.ready_connections <= CONNECTIONS_MAX).then_some(ready.ready_connections)
}

/// Of the page of metrics. Prometheus' format writes each number as a float.
#[must_use]
pub fn in_metrics(status: u16, body: &[u8]) -> Option<u32> {
    if status != 200 {
        return None;
    }
    let page = String::from_utf8_lossy(body);
    let value = page.lines().find_map(|line| line.strip_prefix(METRIC)?.strip_prefix(' '))?;
    let value: f64 = value.trim().parse().ok()?;
    let whole = value.fract() == 0.0 && (0.0..=f64::from(CONNECTIONS_MAX)).contains(&value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number from 0 to 1000"
    )]
    whole.then_some(value as u32)
}
