//! A benchmark of the agent as a program.
//!
//! Its start, and its memory while a recovery code is tried.
//!
//! In: nothing; needs the program `zabbix_agent2`. Out: lines `BENCH {json}` for `cargo bench-all`. The agent is enrolled
//! at a hub that is gone, and no Proxmox answers it; zabbix-agent2 has no server either. Both start in turn, as a user
//! without rights when this runs as root. Deliberately absent: guests.
#![forbid(unsafe_code)]

mod installed;
#[expect(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a host for tests, laid down only"
)]
#[path = "../../tests/it/escrow/place.rs"]
mod place;
mod program;
#[expect(clippy::unwrap_used, reason = "a terminal for tests")]
#[path = "../../../tests/support/terminal.rs"]
mod terminal;

use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use installed::Host;

const STARTS: u32 = 15;
const DRILLS: u32 = 5;

/// Until a started agent does nothing any more.
const CALM: Duration = Duration::from_secs(5);

/// The form that `cargo bench-all` reads.
#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    ours: f64,
    baseline: f64,
    ratio: f64,
    unit: &'static str,
    pairs: usize,
    note: &'static str,
}

/// What a figure is of.
struct Row {
    name: &'static str,
    unit: &'static str,
    note: &'static str,
}

fn main() -> Result<()> {
    let host = Host::lay_down()?;
    let mut out = std::io::stdout();
    for figure in [starts(&host)?, drills(&host)?] {
        writeln!(out, "BENCH {}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

fn starts(host: &Host) -> Result<Figure> {
    let mut pairs = Vec::new();
    // The first pair brings both programs into memory, and is not counted.
    for pair in 0..=STARTS {
        let mut agent = host.start_agent()?;
        let ours = agent.ready_after(|| host.shakes_hands())?;
        agent.end()?;
        let mut other = host.start_zabbix()?;
        let baseline = other.ready_after(|| host.zabbix_accepts())?;
        other.end()?;
        if pair > 0 {
            pairs.push((ours.as_secs_f64() * 1e3, baseline.as_secs_f64() * 1e3));
        }
    }
    let row = Row {
        name: "agent start, until a TLS handshake at its local API",
        unit: "ms",
        note: "from the start of the process, with the records of a run that was killed; as benchmarks build it, with the points at \
               which tests stop it; baseline: zabbix-agent2 of Debian, until it accepts a TCP connection",
    };
    Ok(figure(row, &pairs))
}

/// The peak is that of the daemon, which serves the file; the words are typed at a program of their own.
fn drills(host: &Host) -> Result<Figure> {
    let mut agent = host.start_agent()?;
    agent.ready_after(|| host.shakes_hands())?;
    let mut pairs = Vec::new();
    for _ in 0..DRILLS {
        std::thread::sleep(CALM);
        let idle = agent.memory_mib("VmRSS:")?;
        agent.forget_peak()?;
        host.drill();
        pairs.push((agent.memory_mib("VmHWM:")?, idle));
    }
    agent.end()?;
    let row = Row {
        name: "peak memory of the agent while a recovery code opens its file",
        unit: "MiB",
        note: "VmHWM of the daemon during `agentd escrow drill`: the command derives the key in a process of its own (64 MiB \
               more there, and for a tenth of a second); baseline: VmRSS of the same daemon before it",
    };
    Ok(figure(row, &pairs))
}

fn figure(row: Row, pairs: &[(f64, f64)]) -> Figure {
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Figure {
        name: row.name,
        ours: median(|pair| pair.0),
        baseline: median(|pair| pair.1),
        ratio: median(|pair| pair.0 / pair.1),
        unit: row.unit,
        pairs: pairs.len(),
        note: row.note,
    }
}
