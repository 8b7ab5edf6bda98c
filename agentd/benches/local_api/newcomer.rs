//! Connections that are opened for one request each.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use crate::client::{Endpoint, Wire};
use crate::{PACE, WEB_AT, percentile};

/// In one round.
pub const CONNECTIONS: usize = 200;

/// What one connection with one request costs.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer {
    /// From the connect to the answer, median.
    pub wall_us: f64,
    /// CPU of all threads but the asking one: the server's, and that of its store.
    pub cpu_us: f64,
}

/// Opens them one after the other. The asking task must be that of `block_on`, which stays on the main thread.
pub async fn measure(listener: &Endpoint, token: &str) -> Result<Newcomer> {
    let mut waits = Vec::with_capacity(CONNECTIONS);
    let mut beat = tokio::time::interval(PACE);
    let before = servers_cpu();
    for _ in 0..CONNECTIONS {
        beat.tick().await;
        let began = Instant::now();
        Wire::open(listener, WEB_AT, token).await?.ask_for_200().await?;
        waits.push(began.elapsed());
    }
    let cpu_us = servers_cpu().saturating_sub(before).as_secs_f64() * 1e6 / CONNECTIONS as f64;
    waits.sort_unstable();
    Ok(Newcomer { wall_us: percentile(&waits, 50), cpu_us })
}

/// CPU of this process so far, without the calling thread's.
fn servers_cpu() -> Duration {
    let of = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    of(ClockId::ProcessCPUTime).saturating_sub(of(ClockId::ThreadCPUTime))
}
