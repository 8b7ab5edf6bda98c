//! A benchmark of the local API.
//!
//! In: nothing. Out: lines `BENCH {json}` for `cargo bench-all`. Both servers run in this process and are called
//! alternately, over a connection that stays open, as a controller's does; then over a new connection for each request;
//! then with a neighbour that floods, and with a reconcile of 100 guests on the same threads. The neighbour has all its
//! eight connections and is answered *too many requests* most of the time; the bare handler serves it, having no such
//! bound. The ratio is the median of the rounds'.
#![forbid(unsafe_code)]

mod bare;
mod client;
mod figures;
mod newcomer;
mod ours;
mod reconcile;
#[expect(dead_code, reason = "of the worlds of the plan's benchmark, only the settled one is used")]
#[path = "../plan/world.rs"]
mod world;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::Result;
use client::{Flood, Wire};
use newcomer::Newcomer;
use reconcile::Reconcile;

const WEB_AT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 8, 91));
const DB_AT: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 66, 8, 92));

/// So that a hundredth of them is a number.
const REQUESTS: usize = 500;
/// Between two of them: a guest within its rate, by the clock of the server that is measured (`ours::FASTER`).
const PACE: Duration = Duration::from_millis(5);
const ROUNDS: u32 = 9;

/// The waits of one round.
#[derive(Clone, Copy, Debug)]
struct Turn {
    p50_us: f64,
    p99_us: f64,
}

impl Turn {
    fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        Self { p50_us: percentile(&waits, 50), p99_us: percentile(&waits, 99) }
    }
}

/// Of sorted waits, in microseconds.
fn percentile(waits: &[Duration], percent: usize) -> f64 {
    waits.get(waits.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e6
}

/// One server, alone and with each load.
struct Turns {
    alone: Turn,
    flooded: Turn,
    reconciled: Turn,
    newcomer: Newcomer,
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
        let measured =
            Round { ours: turns(&ours.listener, &ours).await?, bare: turns(&bare.listener, &ours).await? };
        if round > 0 {
            rounds.push(measured);
        }
    }
    let mut out = std::io::stdout();
    for figure in figures::of(&rounds) {
        writeln!(out, "BENCH {}", serde_json::to_string(&figure)?)?;
    }
    Ok(())
}

/// One server, with the tokens and the store of ours.
async fn turns(listener: &client::Endpoint, ours: &ours::Server) -> Result<Turns> {
    let alone = waits(listener, &ours.web).await?;
    let newcomer = newcomer::measure(listener, &ours.web).await?;
    let flood = Flood::start(listener, DB_AT, &ours.db).await?;
    let flooded = waits(listener, &ours.web).await?;
    flood.end().await?;
    let reconcile = Reconcile::start(ours.store.clone())?;
    let reconciled = waits(listener, &ours.web).await?;
    reconcile.end().await?;
    Ok(Turns { alone, flooded, reconciled, newcomer })
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
