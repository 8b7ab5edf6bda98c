//! One scrape of a hub's metrics, and check-ins during scrapes.
//!
//! In: a hub whose hosts have reported their guests. Out: CPU and size of a page, and how long a check-in takes while
//! pages are asked for without a pause, against the same check-ins without them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use tokio::task::JoinHandle;

use crate::figures::{self, Figure};
use crate::fleet::Fleet;
use crate::load::{Connection, Kind, Load, connect};
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Hosts.
    #[arg(long, default_value_t = 1_000)]
    hosts: usize,
    /// How many times each is measured.
    #[arg(long, default_value_t = 5)]
    times: usize,
}

/// Of check-ins, with scrapes and without.
const WINDOW: Duration = Duration::from_millis(400);

/// Hosts whose check-ins are measured. One alone would send more than the hub takes of a host in a minute.
const ASKING: usize = 64;

pub async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut fleet = Fleet::enrol(folder.path(), arguments.hosts).await?;
    let members = fleet.members.split_off(fleet.members.len().saturating_sub(ASKING));
    let last = Arc::clone(members.last().context("there are no hosts")?);
    let hub = Server::start("hub", folder.path()).await?;
    let token = admin_token(folder.path())?;
    let mut scraper = connect(&hub, last).await?;
    let (mut all, mut asking) = (Load::new(fleet), Load::new(Fleet { members }));
    all.run(&hub, Kind::Full, 8 * WINDOW).await?;
    asking.run(&hub, Kind::Full, Duration::from_millis(100)).await?;
    let page = scrape(&mut scraper, &token).await?;
    let lines = page.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let (bytes, series) = (page.len() as f64, lines.count());
    let (mut scrapes, mut waits) = (Vec::new(), Vec::new());
    for _ in 0..arguments.times {
        let (cpu, began) = (hub.cpu_s()?, Instant::now());
        scrape(&mut scraper, &token).await?;
        scrapes.push(((hub.cpu_s()? - cpu) * 1e3, began.elapsed().as_secs_f64() * 1e3));
        let alone = asking.run(&hub, Kind::Unchanged, WINDOW).await?;
        let scraping = without_pause(scraper, token.clone());
        let during = asking.run(&hub, Kind::Unchanged, WINDOW).await?;
        scraping.abort();
        // The connection was cut off in the middle of a page.
        ensure!(scraping.await.is_err_and(|end| end.is_cancelled()), "a scrape failed");
        scraper = asking.connect(&hub).await?;
        waits.push((during.p99_ms, alone.p99_ms));
    }
    let how = format!(
        "{} hosts, {series} series; the reports of the first 200 are on the page, 44 guests each, without samples of use",
        arguments.hosts
    );
    let alone = |name: &str, ours, unit| Figure {
        name: name.to_owned(),
        ours,
        baseline: None,
        ratio: None,
        unit,
        pairs: scrapes.len(),
        note: how.clone(),
    };
    let cpu = figures::median(scrapes.iter().map(|(cpu, _)| *cpu));
    let wall = figures::median(scrapes.iter().map(|(_, wall)| *wall));
    let during = "99th percentile of an unchanged check-in, 64 hosts with one request each, while pages are asked for \
                  without a pause; baseline: the same without them";
    figures::print(&[
        alone("CPU of a scrape of the hub", cpu, "ms"),
        alone("time of a scrape of the hub", wall, "ms"),
        alone("size of a page of the hub's metrics", bytes / 1024.0 / 1024.0, "MiB"),
        Figure::of_pairs(
            "check-in during scrapes, 99th percentile".to_owned(),
            "ms",
            &waits,
            format!("{during}; {how}"),
        ),
    ])
}

/// Until it is aborted.
fn without_pause(mut scraper: Connection, token: String) -> JoinHandle<anyhow::Result<()>> {
    #[expect(clippy::disallowed_methods, reason = "it is awaited after its abort")]
    tokio::spawn(async move {
        loop {
            scrape(&mut scraper, &token).await?;
        }
    })
}

async fn scrape(connection: &mut Connection, token: &str) -> anyhow::Result<Bytes> {
    let asked = Request::get("/metrics")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {token}"))
        .body(Full::new(Bytes::new()))?;
    connection.ready().await?;
    let answer = connection.send_request(asked).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

/// Of the operator that a new hub makes by itself.
pub fn admin_token(folder: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(folder.join(hubd::run::ADMIN_TOKEN_FILE))
        .context("the hub wrote no token")?;
    Ok(text.trim().to_owned())
}
