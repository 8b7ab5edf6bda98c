//! Check-ins during the calls of one customer.
//!
//! In: a hub with the usual limits, whose hosts have reported guests of a customer. Out: how long a check-in takes while one
//! token of that customer reads as fast as the hub lets it, against the same check-ins without it. The token's calls of a
//! minute may come at once, so this is the most that it can do to a hub, for as long as they last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use holdfast_protocol::checkin::CheckinRequest;
use holdfast_protocol::id::GuestUid;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::RETRY_AFTER;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::figures::{self, Figure};
use crate::fleet::Fleet;
use crate::load::{Connection, Kind, check_in, connect, measured, report};
use crate::scrape::admin_token;
use crate::server::Server;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Hosts, each with 44 guests. Every second guest is the customer's.
    #[arg(long, default_value_t = 200)]
    hosts: usize,
    /// How many times each is measured.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// How long each time.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

/// Hosts whose check-ins are measured.
const ASKING: usize = 64;

/// Between two check-ins of a host: together they are as many as 38,000 hosts send that poll each half minute.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections of the customer, each with one request under way.
const READERS: usize = 4;

/// What the customer reads, in turn.
const PATHS: [&str; 4] = ["/v1/guests", "/v1/events", "/v1/jobs", "/v1/guests?limit=500"];

/// What the readers were answered.
#[derive(Default)]
struct Answers {
    good: AtomicU64,
    /// The token was used too often.
    refused: AtomicU64,
}

pub async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut fleet = Fleet::enrol(folder.path(), arguments.hosts.max(ASKING)).await?;
    let hub = Server::start("rated-hub", folder.path()).await?;
    for (member, number) in fleet.members.iter().zip(1_u128..) {
        let mut connection = connect(&hub, Arc::clone(member)).await?;
        check_in(&mut connection, Duration::ZERO, &of_customer(number)?).await?;
    }
    let asking = fleet.members.split_off(fleet.members.len().saturating_sub(ASKING));
    let new = async || connect(&hub, Arc::clone(asking.first().context("there are no hosts")?)).await;
    let token = customer_token(&mut new().await?, &admin_token(folder.path())?).await?;
    let (time, mut sequence) = (Duration::from_secs(arguments.seconds), 1);
    let mut run = async |time| {
        sequence += 1_000_000;
        let mut connections = Vec::new();
        for member in &asking {
            connections.push(connect(&hub, Arc::clone(member)).await?);
        }
        let client = |number, connection, until| at_a_pace(number, connection, sequence, until);
        measured(&hub, connections, time, client).await
    };
    run(time / 4).await?;
    let (answers, mut waits) = (Arc::new(Answers::default()), Vec::new());
    for _ in 0..arguments.times {
        let alone = run(time).await?;
        let mut readers = JoinSet::new();
        for first in 0..READERS {
            readers.spawn(reads(new().await?, token.clone(), first, Arc::clone(&answers)));
        }
        let during = run(time).await?;
        // One that has ended met an error.
        if let Some(ended) = readers.try_join_next() {
            ended??;
        }
        readers.shutdown().await;
        waits.push((during.p99_ms, alone.p99_ms));
    }
    let (good, refused) = (answers.good.load(Ordering::Relaxed), answers.refused.load(Ordering::Relaxed));
    ensure!(good > 0, "the customer was answered nothing");
    let note = format!(
        "unchanged check-ins of {ASKING} hosts, one each {} ms, while {READERS} connections of one customer's token read \
         guests, events and jobs without a pause: {good} answers and {refused} refusals by its rate in {} s; baseline: the \
         same without them; SQLite, load and hub share the machine",
        PAUSE.as_millis(),
        arguments.seconds.saturating_mul(u64::try_from(arguments.times)?)
    );
    let name = "check-in during a customer's calls, 99th percentile".to_owned();
    figures::print(&[Figure::of_pairs(name, "ms", &waits, note)])
}

/// Unchanged check-ins with pauses.
async fn at_a_pace(
    number: usize,
    mut connection: Connection,
    first: u64,
    until: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let (mut request, mut times) = (report(Kind::Unchanged)?, Vec::new());
    // The hosts do not ask all at the same moment.
    tokio::time::sleep(PAUSE.mul_f64(number as f64 / ASKING as f64)).await;
    for sequence in first.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        request.sequence = sequence;
        check_in(&mut connection, Duration::ZERO, &request).await?;
        times.push(began.elapsed());
        tokio::time::sleep(PAUSE.saturating_sub(began.elapsed())).await;
    }
    Ok(times)
}

/// A full report, with guests of which every second one is the customer's.
fn of_customer(host: u128) -> anyhow::Result<CheckinRequest> {
    let mut request = report(Kind::Full)?;
    request.sequence = 1;
    for (guest, number) in request.sections.guests.iter_mut().flatten().zip(1_u128..) {
        guest.uid = Some(GuestUid::new(Uuid::from_u128((host << 32) | number)));
        guest.customer = if number % 2 == 0 { Some("acme".parse()?) } else { None };
    }
    Ok(request)
}

async fn customer_token(connection: &mut Connection, admin: &str) -> anyhow::Result<String> {
    let body = json!({
        "name": "reader",
        "role": "customer",
        "scope": { "kind": "customer", "customer": "acme" },
        "days": 1,
    });
    let asked = Request::post("/v1/tokens")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {admin}"))
        .body(Full::new(serde_json::to_vec(&body)?.into()))?;
    connection.ready().await?;
    let answer = connection.send_request(asked).await?.into_body().collect().await?.to_bytes();
    let made: Value = serde_json::from_slice(&answer)?;
    let token = made.pointer("/data/token").and_then(Value::as_str);
    Ok(token.with_context(|| format!("no token: {}", String::from_utf8_lossy(&answer)))?.to_owned())
}

/// Reads until it is aborted. Where the token was used too often, it waits as long as the hub says.
async fn reads(
    mut connection: Connection,
    token: String,
    first: usize,
    answers: Arc<Answers>,
) -> anyhow::Result<()> {
    for path in PATHS.iter().cycle().skip(first) {
        let asked = Request::get(*path)
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {token}"))
            .body(Full::default())?;
        connection.ready().await?;
        let answer = connection.send_request(asked).await?;
        let (status, wait) = (answer.status(), answer.headers().get(RETRY_AFTER).cloned());
        let body = answer.into_body().collect().await?.to_bytes();
        match (status.as_u16(), wait) {
            (200, _) => answers.good.fetch_add(1, Ordering::Relaxed),
            (429, Some(wait)) => {
                let until = Instant::now() + Duration::from_secs(wait.to_str()?.parse()?);
                tokio::time::sleep_until(until.into()).await;
                answers.refused.fetch_add(1, Ordering::Relaxed)
            }
            (_, _) => bail!("{path}: {status}: {}", String::from_utf8_lossy(&body)),
        };
    }
    Ok(())
}
