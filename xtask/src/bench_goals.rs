//! Goals of the benchmarks, in one table.
//!
//! A goal bounds the ratio to the baseline, or our own figure in its unit. It is found by the beginning of a figure's
//! name, the longest first. Deliberately absent: any failure; a page says whether a goal is met.

/// What a goal bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Ours by the baseline is at most this.
    Ratio(f64),
    /// Ours is at most this, in the figure's unit.
    Ours(f64),
}

/// The beginning of a figure's name, and its goal.
const GOALS: &[(&str, Bound)] = &[
    ("plan of ", Bound::Ratio(3.0)),
    ("journaled step", Bound::Ratio(2.5)),
    ("start after kill -9", Bound::Ours(1_000.0)),
    ("GET /v1/self, median wait", Bound::Ratio(1.3)),
    ("GET /v1/self, 99th percentile", Bound::Ratio(1.5)),
    ("GET /v1/self, 99th percentile while a neighbour floods", Bound::Ratio(2.0)),
    ("new connection with one GET", Bound::Ratio(1.2)),
    ("signed job judged", Bound::Ratio(1.3)),
    ("report of 30 guests parsed", Bound::Ratio(1.5)),
    ("agent start, until a TLS handshake", Bound::Ratio(1.0)),
    ("peak memory of the agent while a recovery code opens", Bound::Ratio(1.2)),
    ("helper call by its socket", Bound::Ratio(0.6)),
    ("helper call by sudo", Bound::Ratio(1.15)),
    ("CPU of a check-in, report of 4 KiB changed", Bound::Ratio(1.5)),
    ("CPU of a check-in, report unchanged", Bound::Ratio(2.0)),
    ("CPU of a check-in on PostgreSQL", Bound::Ratio(1.5)),
    ("CPU of a hub with 10000 hosts at rest", Bound::Ours(5.0)),
    ("memory of a held connection", Bound::Ours(64.0)),
    ("99th percentile of an answer, hosts at rest", Bound::Ours(50.0)),
    ("until all hosts are back after a crash of the hub", Bound::Ours(60.0)),
    ("CPU of a host that comes back after a crash", Bound::Ratio(1.25)),
    ("PSS with 100 guests", Bound::Ours(9.0)),
    ("CPU with 100 guests", Bound::Ours(10.0)),
    ("100 guests made", Bound::Ours(98.0)),
];

/// Goal and verdict of a figure, as the page shows them.
#[must_use]
pub fn judged(name: &str, ours: f64, ratio: Option<f64>) -> (String, &'static str) {
    let of = GOALS.iter().filter(|(start, _)| name.starts_with(start));
    let Some((_, bound)) = of.max_by_key(|(start, _)| start.len()) else { return ("—".to_owned(), "—") };
    let verdict = |is_met: bool| if is_met { "met" } else { "**not met**" };
    match *bound {
        Bound::Ratio(most) => {
            (format!("ratio ≤ {most}"), ratio.map_or("—", |ratio| verdict(rounded(ratio) <= most)))
        }
        Bound::Ours(most) => (format!("≤ {most}"), verdict(rounded(ours) <= most)),
    }
}

/// As precise as the page shows it.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_is_the_goal() {
        let flood = "GET /v1/self, 99th percentile while a neighbour floods";
        assert_eq!(judged(flood, 336.0, Some(1.8)), ("ratio ≤ 2".to_owned(), "met"));
        assert_eq!(judged("GET /v1/self, 99th percentile", 307.0, Some(1.8)).1, "**not met**");
        assert_eq!(judged("PSS with 100 guests", 9.004, None), ("≤ 9".to_owned(), "met"));
        assert_eq!(judged("wake-ups with 100 guests", 1.0, None), ("—".to_owned(), "—"));
    }
}
