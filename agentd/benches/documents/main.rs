//! A benchmark of the documents that are judged in memory.
//!
//! In: nothing. Out: lines `BENCH {json}` for `cargo bench-all`: a signed job, and a report of 30 guests. Both sides of
//! a pair run right after one another, each many times, and the ratio is the median of the pairs'. Deliberately absent:
//! the store, the network.
#![forbid(unsafe_code)]

mod job;
mod report;
#[expect(clippy::unwrap_used, reason = "a signer for tests")]
#[path = "../../../tests/support/ssh_signer.rs"]
mod signer;

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

const PAIRS: u32 = 41;

/// How often each side runs within a pair.
const TIMES: u32 = 100;

/// The form that `cargo bench-all` reads.
#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    ours: f64,
    baseline: f64,
    ratio: f64,
    unit: &'static str,
    pairs: u32,
    note: String,
}

/// A figure's name and note.
struct Row {
    name: &'static str,
    note: String,
}

fn main() -> Result<()> {
    let mut out = std::io::stdout();
    for figure in [job::admitted()?, report::plain()?, report::same_types()?] {
        writeln!(out, "BENCH {}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

/// Runs both in turn. The first pair warms both, and is not counted.
fn compare(row: Row, ours: impl Fn() -> Result<()>, bare: impl Fn() -> Result<()>) -> Result<Figure> {
    let (mut ours_us, mut bare_us, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..=PAIRS {
        let (one, other) = (each_us(&ours)?, each_us(&bare)?);
        if pair > 0 {
            ours_us.push(one);
            bare_us.push(other);
            ratios.push(one / other);
        }
    }
    let Row { name, note } = row;
    let (ours, baseline, ratio) = (median(&mut ours_us), median(&mut bare_us), median(&mut ratios));
    Ok(Figure { name, ours, baseline, ratio, unit: "µs", pairs: PAIRS, note })
}

fn each_us(work: &impl Fn() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..TIMES {
        work()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
