//! Medians and ratios of the rounds.

use serde::Serialize;

use crate::newcomer::CONNECTIONS;
use crate::reconcile::{EVERY, GUESTS};
use crate::{PACE, REQUESTS, ROUNDS, Round};

/// The form that `cargo bench-all` reads.
#[derive(Debug, Serialize)]
pub struct Figure {
    name: &'static str,
    ours: f64,
    baseline: f64,
    ratio: f64,
    unit: &'static str,
    pairs: u32,
    note: String,
}

type Of = fn(&Round) -> f64;

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn figure(rounds: &[Round], name: &'static str, (ours, baseline): (Of, Of), note: String) -> Figure {
    Figure {
        name,
        ours: median(rounds, ours),
        baseline: median(rounds, baseline),
        ratio: median(rounds, |round| ours(round) / baseline(round)),
        unit: "µs",
        pairs: ROUNDS,
        note,
    }
}

pub fn of(rounds: &[Round]) -> Vec<Figure> {
    let pace = PACE.as_millis();
    let requests = format!("{REQUESTS} requests, one every {pace} ms, on a kept connection");
    let bare = "client and server in one process; baseline: bare axum + rustls with the same bytes";
    let kept = || format!("{requests}, {bare}");
    let anew = |what: &str| {
        format!(
            "{what}; {CONNECTIONS} connections, one every {pace} ms, TLS 1.3 without tickets; {bare} and certificate"
        )
    };
    let reconciled = || {
        format!(
            "{requests}; a cycle every {} ms on the same runtime (an agent at rest: one in 10 s), each with the records of \
             {GUESTS} guests read from the same store and a plan of {GUESTS} settled guests with backups promised; {bare}, \
             with the same cycles",
            EVERY.as_millis()
        )
    };
    let bare_alone = median(rounds, |round| round.bare.alone.p99_us);
    let bare_flooded = median(rounds, |round| round.bare.flooded.p99_us);
    let flooded = format!(
        "eight connections of another guest, each asking as fast as it is answered, the asking on the same two cores; \
         baseline: the same without them; goal: less than 2; the bare handler under the same flood: {bare_flooded:.0} \
         against {bare_alone:.0} µs"
    );
    let rows: [(&str, (Of, Of), String); 7] = [
        ("GET /v1/self, median wait", (|r| r.ours.alone.p50_us, |r| r.bare.alone.p50_us), kept()),
        ("GET /v1/self, 99th percentile", (|r| r.ours.alone.p99_us, |r| r.bare.alone.p99_us), kept()),
        (
            "GET /v1/self, 99th percentile while a neighbour floods",
            (|r| r.ours.flooded.p99_us, |r| r.ours.alone.p99_us),
            flooded,
        ),
        (
            "GET /v1/self, median wait under a reconcile of 100 guests",
            (|r| r.ours.reconciled.p50_us, |r| r.bare.reconciled.p50_us),
            reconciled(),
        ),
        (
            "GET /v1/self, 99th percentile under a reconcile of 100 guests",
            (|r| r.ours.reconciled.p99_us, |r| r.bare.reconciled.p99_us),
            reconciled(),
        ),
        (
            "new connection with one GET, CPU",
            (|r| r.ours.newcomer.cpu_us, |r| r.bare.newcomer.cpu_us),
            anew("CPU of all threads but the asking one"),
        ),
        (
            "new connection with one GET, wall time",
            (|r| r.ours.newcomer.wall_us, |r| r.bare.newcomer.wall_us),
            anew("from the connect to the answer, median"),
        ),
    ];
    rows.into_iter().map(|(name, sides, note)| figure(rounds, name, sides, note)).collect()
}
