//! A benchmark of the resting agent: memory, CPU and wake-ups.
//!
//! In: the folder of the programs in `HOLDFAST_E2E_PROGRAMS` and the golden's manifest in `HOLDFAST_E2E_GOLDEN`, both
//! set by `cargo bench-all`. Out: lines `BENCH {json}`; progress goes to standard error. Guests are processes on
//! loopback addresses and say hello as real ones do; Proxmox is the simulator, whose own cost is not counted.
//! Deliberately absent: any verdict.
#![forbid(unsafe_code)]

mod host;
mod memory;
mod meter;
mod peer;

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use serde::Serialize;

use memory::Part;
use meter::Rest;
use peer::Peer;

/// Memory, CPU and wake-ups of a resting agent.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many guests.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=150))]
    guests: u8,
    /// How long each measurement lasts.
    #[arg(long, default_value_t = 60)]
    window_s: u64,
    /// How many measurements count in each state, after a first one in which the host settles.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=60))]
    windows: u8,
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
    let window = Duration::from_secs(arguments.window_s);
    let peer = Peer::start()?;
    let host = host::up()?;
    host.goal(0)?;
    let agent = host.agent_pid()?;
    let pairs = |guests: u8| -> Result<Vec<[Rest; 2]>> {
        let (window_s, windows) = (arguments.window_s, arguments.windows);
        eprintln!(
            "{guests} guests: {window_s} s in which the host settles, then {windows} times {window_s} s"
        );
        meter::rest([agent, peer.pid()], window)?;
        (0..windows).map(|_| meter::rest([agent, peer.pid()], window)).collect()
    };
    let none = pairs(0)?;
    let began = Instant::now();
    host.goal(arguments.guests)?;
    let made = began.elapsed();
    let many = pairs(arguments.guests)?;
    ensure!(host.agent_pid()? == agent, "the agent was restarted while it was measured");
    let mut out = std::io::stdout();
    let how = format!("windows of {window_s} s at a poll interval of 30 s", window_s = arguments.window_s);
    let guests = arguments.guests;
    for figure in compare(&format!("with {guests} guests"), &many, &how)
        .into_iter()
        .chain(parts(&format!("with {guests} guests"), &many, &how))
        .chain(compare("without guests", &none, &how))
        .chain(parts("without guests", &none, &how))
        .chain([time_to_make(guests, made)])
    {
        writeln!(out, "BENCH {}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

/// Ours and the peer's, measured in the same windows; medians.
fn compare(state: &str, pairs: &[[Rest; 2]], how: &str) -> Vec<Figure> {
    let figure = |name: &str, unit, of: fn(&Rest) -> f64, note: &str| {
        let median_of = |value: &dyn Fn(&[Rest; 2]) -> f64| median(pairs.iter().map(value).collect());
        Figure {
            name: format!("{name} {state}"),
            ours: median_of(&|[ours, _]| of(ours)),
            baseline: Some(median_of(&|[_, peer]| of(peer))),
            ratio: Some(median_of(&|[ours, peer]| of(ours) / of(peer))),
            unit,
            pairs: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
            note: format!("{note}; {how}; baseline: an idle zabbix-agent2 in the same windows"),
        }
    };
    vec![
        figure("PSS", "MiB", |rest| rest.pss_mib, "smaps_rollup at the end of each window"),
        figure("RSS", "MiB", |rest| rest.rss_mib, "smaps_rollup at the end of each window"),
        figure(
            "CPU",
            "ms/min",
            |rest| rest.cpu_ms_per_min,
            "schedstat of all threads: observing, planning, reporting, and answering the guests' hellos",
        ),
        figure(
            "wake-ups",
            "per min",
            |rest| rest.wakeups_per_min,
            "voluntary context switches of all threads",
        ),
    ]
}

/// Where the memory lies: one figure for each part.
fn parts(state: &str, pairs: &[[Rest; 2]], how: &str) -> Vec<Figure> {
    let of_part = |(place, part): (usize, Part)| {
        let median_of = |of: usize| {
            median(
                pairs
                    .iter()
                    .filter_map(|pair| Some(*pair.get(of)?.parts.get(place)? as f64 / 1024.0))
                    .collect(),
            )
        };
        Figure {
            name: format!("PSS {state}: {}", part.name()),
            ours: median_of(0),
            baseline: Some(median_of(1)),
            ratio: None,
            unit: "MiB",
            pairs: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
            note: format!(
                "smaps at the end of each window; {how}; baseline: the same of an idle zabbix-agent2"
            ),
        }
    };
    Part::ALL.into_iter().enumerate().map(of_part).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn time_to_make(guests: u8, made: Duration) -> Figure {
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
    }
}
