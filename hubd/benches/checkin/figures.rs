//! Medians and ratios of what was measured.

use std::io::Write as _;

use serde::Serialize;

use crate::Round;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub requests: u64,
    pub wall_s: f64,
    pub server_cpu_s: f64,
    pub p99_ms: f64,
}

impl Sample {
    fn rate(&self) -> f64 {
        self.requests as f64 / self.wall_s
    }

    fn cpu_us(&self) -> f64 {
        self.server_cpu_s * 1e6 / self.requests as f64
    }
}

#[derive(Default)]
pub struct Figures {
    rounds: Vec<Round>,
}

#[derive(Serialize)]
struct Line {
    bench: &'static str,
    rounds: usize,
    echo_per_s: f64,
    echo_cpu_us: f64,
    changed_per_s: f64,
    changed_cpu_us: f64,
    changed_p99_ms: f64,
    changed_cpu_ratio: f64,
    unchanged_per_s: f64,
    unchanged_cpu_us: f64,
    unchanged_cpu_ratio: f64,
}

impl Figures {
    pub fn add(&mut self, round: Round) {
        self.rounds.push(round);
    }

    /// The middle one of what the rounds say.
    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub fn print(&self) -> anyhow::Result<()> {
        let line = Line {
            bench: "hub-checkin",
            rounds: self.rounds.len(),
            echo_per_s: self.median(|[echo, ..]| echo.rate()),
            echo_cpu_us: self.median(|[echo, ..]| echo.cpu_us()),
            changed_per_s: self.median(|[_, changed, _]| changed.rate()),
            changed_cpu_us: self.median(|[_, changed, _]| changed.cpu_us()),
            changed_p99_ms: self.median(|[_, changed, _]| changed.p99_ms),
            changed_cpu_ratio: self.median(|[echo, changed, _]| changed.cpu_us() / echo.cpu_us()),
            unchanged_per_s: self.median(|[.., unchanged]| unchanged.rate()),
            unchanged_cpu_us: self.median(|[.., unchanged]| unchanged.cpu_us()),
            unchanged_cpu_ratio: self.median(|[echo, _, unchanged]| unchanged.cpu_us() / echo.cpu_us()),
        };
        let mut out = std::io::stdout();
        writeln!(out, "{:<28}{:>12}{:>16}{:>14}", "", "per second", "CPU us each", "x the echo")?;
        let rows = [
            ("bare echo, 4 KiB", line.echo_per_s, line.echo_cpu_us, 1.0),
            ("check-in, changed, 4 KiB", line.changed_per_s, line.changed_cpu_us, line.changed_cpu_ratio),
            ("check-in, unchanged", line.unchanged_per_s, line.unchanged_cpu_us, line.unchanged_cpu_ratio),
        ];
        for (name, rate, cpu, ratio) in rows {
            writeln!(out, "{name:<28}{rate:>12.0}{cpu:>16.1}{ratio:>14.2}")?;
        }
        writeln!(out, "p99 of a changed check-in: {:.1} ms", line.changed_p99_ms)?;
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
        Ok(())
    }
}
