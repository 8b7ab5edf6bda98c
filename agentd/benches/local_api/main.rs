//! A benchmark of the local API.
//!
//! In: nothing. Out: lines `BENCH {json}` for `cargo bench-all`. Both servers run in this process and are called
//! alternately, over a connection that stays open, as a controller's does. The neighbour has all its eight connections
//! and is answered *too many requests* most of the time; the bare handler serves it, having no such bound. The ratio is
//! the median of the rounds'. Deliberately absent: handshakes, which a controller makes once in ten minutes.
#![forbid(unsafe_code)]

mod bare;
mod client;
mod ours;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use client::{Flood, Wire};

const WEB_AT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 8, 91));
const DB_AT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 8, 92));

/// So that a hundredth of them is a number.
const REQUESTS: usize = 500;
/// Between two of them: a guest within its rate, by the clock of the server that is measured (`ours::FASTER`).
const PACE: Duration = Duration::from_millis(5);
const ROUNDS: u32 = 9;

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

/// The waits of one round.
#[derive(Clone, Copy, Debug)]
struct Turn {
    p50_us: f64,
    p99_us: f64,
}

impl Turn {
    fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        let at = |percent: usize| {
            let wait = waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
            wait.as_secs_f64() * 1e6
        };
        Self { p50_us: at(50), p99_us: at(99) }
    }
}

/// One server, alone and with the flood.
struct Turns {
    alone: Turn,
    copy_of: Turn,
}

struct Round {
    ours: Turns,
    bare: Turns,
}

fn main() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<()> {
    let ours = ours::Server::start().await?;
    let bare = bare::Server::start(ours.folder()).await?;
    let mut rounds = Vec::new();
    // The first round warms both, and is not counted.
    for round in 0..=ROUNDS {
        let measured = Round {
            ours: turns(&ours.listener, &ours.web, &ours.db).await?,
            bare: turns(&bare.listener, &ours.web, &ours.db).await?,
        };
        if round > 0 {
            rounds.push(measured);
        }
    }
    let mut out = std::io::stdout();
    for figure in figures(&rounds) {
        writeln!(out, "BENCH {}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

async fn turns(listener: &client::Endpoint, web: &str, db: &str) -> Result<Turns> {
    let alone = waits(listener, web).await?;
    let flood = Flood::start(listener, DB_AT, db).await?;
    let copy_of = waits(listener, web).await?;
    flood.end().await?;
    Ok(Turns { alone, copy_of })
}

async fn waits(listener: &client::Endpoint, token: &str) -> Result<Turn> {
    let mut wire = Wire::open(listener, WEB_AT, token).await?;
    let mut waits = Vec::with_capacity(REQUESTS);
    let mut beat = tokio::time::interval(PACE);
    for _ in 0..REQUESTS {
        beat.tick().await;
        waits.push(wire.ask_for_200().await?);
    }
    Ok(Turn::of(waits))
}

fn figures(rounds: &[Round]) -> [Figure; 3] {
    let median = |of: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let figure = |name, ours: &dyn Fn(&Round) -> f64, baseline: &dyn Fn(&Round) -> f64, note| Figure {
        name,
        ours: median(ours),
        baseline: median(baseline),
        ratio: median(&|round| ours(round) / baseline(round)),
        unit: "µs",
        pairs: ROUNDS,
        note,
    };
    let kept = || {
        format!(
            "{REQUESTS} requests, one every {} ms, on a kept connection, client and server in one process; baseline: bare \
             axum + rustls with the same bytes",
            PACE.as_millis()
        )
    };
    let bare_alone = median(&|round| round.bare.alone.p99_us);
    let bare_copy = median(&|round| round.bare.copy_of.p99_us);
    [
        figure("GET /v1/self, median wait", &|r| r.ours.alone.p50_us, &|r| r.bare.alone.p50_us, kept()),
        figure("GET /v1/self, 99th percentile", &|r| r.ours.alone.p99_us, &|r| r.bare.alone.p99_us, kept()),
        figure(
            "GET /v1/self, 99th percentile while a neighbour floods",
            &|r| r.ours.copy_of.p99_us,
            &|r| r.ours.alone.p99_us,
            format!(
                "eight connections of another guest, each asking as fast as it is answered, the asking on the same two \
                 cores; baseline: the same without them; goal: less than 2; the bare handler under the same flood: \
                 {bare_copy:.0} against {bare_alone:.0} µs"
            ),
        ),
    ]
}
