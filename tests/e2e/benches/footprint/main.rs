//! A benchmark of the resting agent: memory, CPU and wake-ups.
//!
//! In: the folder of the programs in `HOLDFAST_E2E_PROGRAMS` and the golden's manifest in `HOLDFAST_E2E_GOLDEN`, both
//! set by `cargo bench-all`. Out: lines `BENCH {json}`; progress goes to standard error. Guests are processes on
//! loopback addresses and say hello as real ones do; Proxmox is the simulator, whose own cost is not counted.
//! Deliberately absent: any verdict; the budget is in the notes.
#![forbid(unsafe_code)]

mod host;
mod meter;

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use serde::Serialize;

use meter::Rest;

/// Memory, CPU and wake-ups of a resting agent.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many guests.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=150))]
    guests: u8,
    /// How long each measurement lasts.
    #[arg(long, default_value_t = 60)]
    window_s: u64,
    /// How long to let the host settle before a measurement.
    #[arg(long, default_value_t = 35)]
    calm_s: u64,
    /// Passed by `cargo bench`; has no effect.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The form that `cargo bench-all` reads.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    ours: f64,
    baseline: Option<f64>,
    ratio: Option<f64>,
    unit: &'static str,
    pairs: u32,
    note: String,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (window, calm) = (Duration::from_secs(arguments.window_s), Duration::from_secs(arguments.calm_s));
    let host = host::up()?;
    host.goal(0)?;
    eprintln!("no guests: {} s to calm down, then {} s", calm.as_secs(), window.as_secs());
    let none = meter::rest(&host, calm, window)?;
    let began = Instant::now();
    host.goal(arguments.guests)?;
    let made = began.elapsed();
    eprintln!("{} guests: {} s to calm down, then {} s", arguments.guests, calm.as_secs(), window.as_secs());
    let many = meter::rest(&host, calm, window)?;
    let mut out = std::io::stdout();
    for figure in figures(&arguments, &none, &many, made) {
        writeln!(out, "BENCH {}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

/// The budget is the design's. It is compared with zabbix-agent2 and pvestatd as measured at rest elsewhere.
fn figures(arguments: &Arguments, none: &Rest, many: &Rest, made: Duration) -> Vec<Figure> {
    let Arguments { guests, window_s, .. } = arguments;
    let how = format!(
        "one window of {window_s} s at a poll interval of 30 s; baseline: the same agent without guests"
    );
    let compare = |name: &str, unit, of: fn(&Rest) -> f64, note: &str| Figure {
        name: format!("{name} with {guests} guests"),
        ours: of(many),
        baseline: Some(of(none)),
        ratio: Some(of(many) / of(none)),
        unit,
        pairs: 1,
        note: format!("{note}; {how}"),
    };
    vec![
        compare("PSS", "MiB", |rest| rest.pss_mib, "smaps_rollup at the end; budget about 8 (0.6 × an idle zabbix-agent2)"),
        compare("RSS", "MiB", |rest| rest.rss_mib, "smaps_rollup at the end"),
        compare(
            "CPU",
            "ms/min",
            |rest| rest.cpu_ms_per_min,
            "schedstat of all threads: observing, planning, reporting, and answering the guests' hellos; budget about 10 \
             (0.6 × zabbix-agent2's 17, 1/75 of pvestatd's 750 to 920)",
        ),
        compare(
            "wake-ups",
            "per min",
            |rest| rest.wakeups_per_min,
            "voluntary context switches of all threads",
        ),
        Figure {
            name: format!("{guests} guests made, from the request to all hellos"),
            ours: made.as_secs_f64(),
            baseline: None,
            ratio: None,
            unit: "s",
            pairs: 1,
            note: "each restored from a real archive, started, and backed up once; two restores or backups at a time; \
                   guests, simulator and hub share the machine"
                .to_owned(),
        },
    ]
}
