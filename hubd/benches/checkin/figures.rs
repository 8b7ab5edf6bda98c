//! Medians and ratios of what was measured.

use std::io::Write as _;

use serde::Serialize;

#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub requests: u64,
    pub wall_s: f64,
    pub server_cpu_s: f64,
    pub p99_ms: f64,
}

impl Sample {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.wall_s
    }

    pub fn cpu_us(&self) -> f64 {
        self.server_cpu_s * 1e6 / self.requests as f64
    }
}

#[derive(Default)]
pub struct Figures {
    rounds: Vec<Round>,
}

/// The form that `cargo bench-all` reads.
#[derive(Serialize)]
pub struct Figure {
    pub name: String,
    pub ours: f64,
    pub baseline: Option<f64>,
    pub ratio: Option<f64>,
    pub unit: &'static str,
    pub pairs: usize,
    pub note: String,
}

impl Figure {
    /// The medians of measured pairs: ours, the baseline, and their ratio.
    pub fn of_pairs(name: String, unit: &'static str, pairs: &[(f64, f64)], note: String) -> Self {
        Self {
            name,
            ours: median(pairs.iter().map(|(ours, _)| *ours)),
            baseline: Some(median(pairs.iter().map(|(_, baseline)| *baseline))),
            ratio: Some(median(pairs.iter().map(|(ours, baseline)| ours / baseline))),
            unit,
            pairs: pairs.len(),
            note,
        }
    }

    /// One measured pair.
    pub fn of_pair(name: String, unit: &'static str, pair: (f64, f64), note: String) -> Self {
        Self::of_pairs(name, unit, &[pair], note)
    }
}

/// The middle one.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn print(figures: &[Figure]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for figure in figures {
        writeln!(out, "BENCH {}", serde_json::to_string(figure)?)?;
    }
    Ok(())
}

/// The same body, to the one and to the other.
pub struct Pair {
    pub echo: Sample,
    pub hub: Sample,
}

/// Everything measured once.
pub struct Round {
    pub changed: Pair,
    pub unchanged: Pair,
}

/// One of a round's pairs.
type Of = fn(&Round) -> &Pair;

const CHANGED: Of = |round| &round.changed;
const UNCHANGED: Of = |round| &round.unchanged;

impl Figures {
    pub fn add(&mut self, round: Round) {
        self.rounds.push(round);
    }

    fn echo_ratio(
        &self,
        (name, unit, note): (&'static str, &'static str, String),
        kind: Of,
        of: fn(&Sample) -> f64,
    ) -> Figure {
        let pair = |round: &Round| (of(&kind(round).hub), of(&kind(round).echo));
        let pairs: Vec<_> = self.rounds.iter().map(pair).collect();
        Figure::of_pairs(name.to_owned(), unit, &pairs, note)
    }

    pub fn print(&self, connections: usize) -> anyhow::Result<()> {
        let cpu = |goal: &str| {
            format!(
                "the server process's CPU by schedstat, {connections} connections with one request each; baseline: bare \
                 axum + rustls + serde echo of the same body; goal: at most {goal}"
            )
        };
        let rate = || {
            "load and server share the machine; a changed check-in is answered once it is durable, an echo never is"
                .to_owned()
        };
        let figures = [
            self.echo_ratio(
                ("CPU of a check-in, report of 4 KiB changed", "µs", cpu("1.5 × the echo")),
                CHANGED,
                Sample::cpu_us,
            ),
            self.echo_ratio(
                ("CPU of a check-in, report unchanged", "µs", cpu("2 × the echo")),
                UNCHANGED,
                Sample::cpu_us,
            ),
            self.echo_ratio(("check-ins, report changed", "per s", rate()), CHANGED, Sample::rate),
            self.echo_ratio(("check-ins, report unchanged", "per s", rate()), UNCHANGED, Sample::rate),
            self.echo_ratio(
                ("99th percentile of a check-in, report changed", "ms", rate()),
                CHANGED,
                |sample| sample.p99_ms,
            ),
        ];
        print(&figures)
    }
}
