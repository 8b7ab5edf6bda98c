//! A hub with ten thousand hosts at rest.
//!
//! The hosts connect over many addresses of this machine and hold their check-ins open, as agents do. Measured are the
//! hub's CPU and memory, how late its answers are, and what it costs when the hub crashes and all hosts come back. A
//! bare axum + rustls echo gets the same connections and requests.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::figures::{self, Figure};
use crate::fleet::Fleet;
use crate::handshakes::{self, Costs};
use crate::hosts::{HELD, Hosts, Target};
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Hosts, each with a connection of its own.
    #[arg(long, default_value_t = 10_000)]
    hosts: usize,
    /// How long they are watched at rest.
    #[arg(long, default_value_t = 60)]
    window: u64,
}

/// Descriptors of a program in addition to its connections.
const DESCRIPTORS: u64 = 200;

/// Two polls of the default interval: by then every host should be back.
const BACK: Duration = Duration::from_secs(60);

/// After this time those that are not back stay away.
const BACK_MAX: Duration = Duration::from_secs(180);

/// What one server did.
struct Outcome {
    /// Of the whole machine.
    cpu_percent: f64,
    kib_per_connection: f64,
    p99_ms: f64,
    answers: usize,
    back: Back,
}

/// What followed the crash.
struct Back {
    /// Until the last host was heard of again.
    after: Duration,
    cpu_us_per_host: f64,
    handshakes: u32,
    hosts: usize,
}

pub async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let hosts = allowed(arguments.hosts)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    eprintln!("{hosts} hosts are enrolled …");
    let fleet = Fleet::enrol(folder, hosts).await?;
    eprintln!("bare handshakes …");
    let handshakes = handshakes::measure(&fleet, folder).await?;
    let window = Duration::from_secs(arguments.window);
    let echo = watch(&fleet, folder, Target::Echo, window).await.context("the bare echo")?;
    let hub = watch(&fleet, folder, Target::Hub, window).await.context("the hub")?;
    print(&hub, &echo, handshakes, window)
}

/// As many of the hosts as this machine lets two processes hold; both need a descriptor for each.
fn allowed(wanted: usize) -> anyhow::Result<usize> {
    let limit = getrlimit(Resource::Nofile);
    // Also for the servers, which inherit it.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let room = limit.maximum.map_or(u64::MAX, |maximum| maximum.saturating_sub(DESCRIPTORS));
    let hosts = wanted.min(usize::try_from(room).unwrap_or(usize::MAX));
    if hosts == 0 {
        bail!("the limit on file descriptors leaves room for no connection: raise it (`ulimit -Hn`)");
    }
    if hosts < wanted {
        eprintln!("only {hosts} hosts of {wanted}: the limit on file descriptors leaves room for no more");
    }
    Ok(hosts)
}

async fn watch(fleet: &Fleet, folder: &Path, target: Target, window: Duration) -> anyhow::Result<Outcome> {
    let role = match target {
        Target::Hub => "hub",
        Target::Echo => "echo",
    };
    let count = fleet.members.len();
    let server = Server::start(role, folder).await?;
    let (address, empty_kib) = (server.address, server.pss_kib()?);
    let hosts = Hosts::start(fleet, target, address);
    eprintln!("{role}: the hosts connect …");
    let began = Instant::now();
    // The full reports, and then a first round of those that are held.
    while hosts.heard() < count || began.elapsed() < HELD * 2 {
        if began.elapsed() > BACK_MAX {
            bail!("only {} of {count} hosts got an answer", hosts.heard());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eprintln!("{role}: {} s at rest …", window.as_secs());
    hosts.take();
    let (cpu, began) = (server.cpu_s()?, Instant::now());
    tokio::time::sleep(window).await;
    let (cpu_s, wall_s) = (server.cpu_s()? - cpu, began.elapsed().as_secs_f64());
    let kib_per_connection = (server.pss_kib()? - empty_kib) / count as f64;
    let mut rested = hosts.take();
    if rested.lost > 0 {
        eprintln!("{role}: {} connections were lost meanwhile", rested.lost);
    }
    rested.late.sort_unstable();
    let p99 = rested.late.get(rested.late.len() * 99 / 100).context("no answer came")?;
    eprintln!("{role}: crashes, and starts again …");
    let back = crash(server, role, folder, &hosts).await?;
    Ok(Outcome {
        cpu_percent: cpu_s / wall_s / cores()? * 100.0,
        kib_per_connection,
        p99_ms: p99.as_secs_f64() * 1e3,
        answers: rested.late.len(),
        back,
    })
}

async fn crash(server: Server, role: &str, folder: &Path, hosts: &Hosts) -> anyhow::Result<Back> {
    let address = server.address;
    hosts.take();
    let began = Instant::now();
    server.kill().await?;
    let server = Server::start_at(role, folder, address).await?;
    let before = server.cpu_s()?;
    let (count, mut connected) = (hosts.count(), None);
    while hosts.heard() < count && began.elapsed() < BACK_MAX {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if connected.is_none() && hosts.connected() == count {
            // Their first requests are kept a moment later.
            tokio::time::sleep(Duration::from_secs(1)).await;
            connected = Some(server.cpu_s()? - before);
        }
    }
    let since = hosts.take();
    let last = since.heard.iter().flatten().max().context("no host came back")?;
    let cpu_s = connected.context("not every host came back")?;
    Ok(Back {
        after: last.saturating_duration_since(began),
        cpu_us_per_host: cpu_s * 1e6 / count as f64,
        handshakes: since.handshakes.iter().sum(),
        hosts: since.heard.iter().flatten().count(),
    })
}

fn cores() -> anyhow::Result<f64> {
    let cores = std::thread::available_parallelism().context("how many processors?")?;
    Ok(f64::from(u32::try_from(cores.get())?))
}

fn print(hub: &Outcome, echo: &Outcome, handshakes: Costs, window: Duration) -> anyhow::Result<()> {
    let hosts = hub.back.hosts;
    let (window_s, held_s, back_s) = (window.as_secs(), HELD.as_secs(), BACK.as_secs());
    let figures = [
        Figure::of_pair(
            format!("CPU of a hub with {hosts} hosts at rest"),
            "% of the machine",
            (hub.cpu_percent, echo.cpu_percent),
            format!(
                "the server process's CPU by schedstat in {window_s} s with {} answers; each host holds a check-in for \
                 {held_s} s and asks again; baseline: bare axum + rustls + serde echo with as many requests; goal: at \
                 most 5",
                hub.answers
            ),
        ),
        Figure::of_pair(
            "memory of a held connection".to_owned(),
            "KiB",
            (hub.kib_per_connection, echo.kib_per_connection),
            "what the server's PSS grew by, for each host; the kernel's buffers are not in it; goal: at most 64"
                .to_owned(),
        ),
        Figure::of_pair(
            "99th percentile of an answer, hosts at rest".to_owned(),
            "ms",
            (hub.p99_ms, echo.p99_ms),
            format!(
                "beyond the {held_s} s that it is held; the hosts share the machine; baseline: the echo's answer; goal: \
                 at most 50"
            ),
        ),
        Figure {
            name: "until all hosts are back after a crash of the hub".to_owned(),
            ours: hub.back.after.as_secs_f64(),
            baseline: None,
            ratio: None,
            unit: "s",
            pairs: 1,
            note: format!(
                "killed and started again at once; {} handshakes of {hosts} hosts, which wait between attempts as agents \
                 do; goal: at most {back_s}",
                hub.back.handshakes
            ),
        },
        Figure::of_pair(
            "CPU of a host that comes back after a crash".to_owned(),
            "µs",
            (hub.back.cpu_us_per_host, handshakes.whole_us),
            format!(
                "handshake and first check-in; baseline: a bare rustls handshake of the same certificates; the echo with \
                 the same return: {:.0} µs; goal: at most 1.25 × the bare handshake",
                echo.back.cpu_us_per_host
            ),
        ),
        Figure::of_pair(
            "CPU of a resumed handshake".to_owned(),
            "µs",
            (handshakes.resumed_us, handshakes.whole_us),
            "a bare rustls server that gives tickets; baseline: one that gives none, as the hub".to_owned(),
        ),
    ];
    figures::print(&figures)
}
