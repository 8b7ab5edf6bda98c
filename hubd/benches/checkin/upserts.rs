//! Check-ins on PostgreSQL against a bare batched upsert.
//!
//! In: the store with its engine, and a table of its own at the same server. Out: the CPU of both, of this program and of the
//! server's processes together, for reports that changed and for those that did not. The baseline is what a program without
//! rules would do: one thread, one session of the same driver, one statement with `unnest` for all that waits, answered after
//! its commit. Both are asked by the same tasks in turn, and the server syncs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alerts::Rules;
use anyhow::{Context as _, anyhow, bail};
use holdfast_protocol::checkin::Coverage;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CorrelationId, HostId, InviteId};
use holdfast_protocol::secret::Secret;
use hubd::authority::{AgentKey, Authority, Fresh, HostLife};
use hubd::clock::{Clock as _, SystemClock};
use hubd::domain::alerting::{AlertContext, ReportedConditions};
use hubd::domain::identity::Presented;
use hubd::domain::merge::IncomingReport;
use hubd::domain::summary::Summary;
use hubd::postgres::{Postgres, Server, Users};
use hubd::store::{By, Checkin, NewInvite, Redemption, SectionTexts, SharedStore};
use rcgen::{CertificateParams, KeyPair};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::figures::{self, Figure, Sample};
use crate::load::{Kind, report};
use crate::postgres_server::{fresh_database_with, url_of};

/// What an operator's server does, and the tests' does not.
pub const SYNCED: &str = "fsync = on
synchronous_commit = on
full_page_writes = on
autovacuum = on
shared_buffers = 128MB
max_wal_size = 1GB
";

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    /// Hosts, each with one check-in under way.
    #[arg(long, default_value_t = 256)]
    hosts: u32,
    /// How many times each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each time.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

/// Rows of one statement at most, as the hub has it.
const BATCH_MAX: usize = 512;

const TABLE: &str = "CREATE TABLE bare (id BYTEA PRIMARY KEY, seen_at BIGINT NOT NULL, sequence BIGINT NOT NULL, report TEXT)";

const UPSERT: &str = "INSERT INTO bare (id, seen_at, sequence, report)
    SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::text[])
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, sequence = excluded.sequence,
        report = coalesce(excluded.report, bare.report) WHERE excluded.sequence > bare.sequence";

/// One report on its way to the bare table.
struct BareRow {
    host: HostId,
    at: i64,
    sequence: i64,
    report: Option<String>,
    reply: oneshot::Sender<()>,
}

/// Who is measured.
#[derive(Clone)]
enum Side {
    Hub(SharedStore),
    Bare(mpsc::Sender<BareRow>),
}

pub async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = tokio::task::spawn_blocking(|| fresh_database_with(SYNCED)).await?;
    let now = SystemClock.now();
    let rules = Rules::default().resolve(&[]).map_err(|errors| anyhow!("{errors:?}"))?;
    let (at, context) = (server.clone(), AlertContext::new(rules, now));
    let opened = tokio::task::spawn_blocking(move || Postgres::open(&at, context, Users::Several)).await??;
    let (store, _writer) = opened;
    let authority = Arc::new(Authority::open_or_make(folder.path(), Fresh::Yes, now)?);
    eprintln!("{} hosts are enrolled …", arguments.hosts);
    let mut hosts = Vec::new();
    for number in 1..=arguments.hosts {
        hosts.push(enrolled(&store, &authority, number).await?);
    }
    let bare = Side::Bare(bare(&server)?);
    let hub = Side::Hub(store);
    let postmaster = postmaster(&server)?;
    let mut sequence = 1;
    let mut run = async |side: &Side, kind, time| {
        sequence += 10_000_000;
        measured(side, &hosts, (kind, sequence), time, postmaster).await
    };
    let time = Duration::from_secs(arguments.seconds);
    for side in [&hub, &bare] {
        run(side, Kind::Full, time / 3).await?;
    }
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        for (kind, pairs) in [(Kind::Changed, &mut changed), (Kind::Unchanged, &mut unchanged)] {
            pairs.push((run(&hub, kind, time).await?, run(&bare, kind, time).await?));
        }
    }
    print(arguments, &changed, &unchanged)
}

fn print(
    arguments: &Arguments,
    changed: &[(Sample, Sample)],
    unchanged: &[(Sample, Sample)],
) -> anyhow::Result<()> {
    let how = format!(
        "CPU of the store and of the server's processes by schedstat, {} hosts with one check-in each under way; baseline: one \
         upsert with unnest for all that waits, same driver and server, fsync on; both answer after the commit",
        arguments.hosts
    );
    let mut figures = Vec::new();
    for (name, pairs) in [("report of 4 KiB changed", changed), ("report unchanged", unchanged)] {
        for (what, unit, of) in [
            ("CPU of a check-in on PostgreSQL", "µs", Sample::cpu_us as fn(&Sample) -> f64),
            ("check-ins on PostgreSQL", "per s", Sample::rate),
        ] {
            let pairs: Vec<_> = pairs.iter().map(|(hub, bare)| (of(hub), of(bare))).collect();
            figures.push(Figure::of_pairs(format!("{what}, {name}"), unit, &pairs, how.clone()));
        }
    }
    figures::print(&figures)
}

async fn enrolled(store: &SharedStore, authority: &Arc<Authority>, number: u32) -> anyhow::Result<HostId> {
    let (at, correlation) = (SystemClock.now(), CorrelationId::new(Uuid::new_v4()));
    let host = HostId::new(Uuid::from_u128(number.into()));
    let secret = Secret::new(format!("secret {number}")).hash();
    let by = By { operator: "bench".parse()?, correlation, at, claim: None };
    let invite =
        NewInvite { id: InviteId::new(host.uuid()), host_name: format!("box{number}").parse()?, secret };
    store.create_invite(by, invite).await.map_err(|error| anyhow!("{error:?}"))?;
    let csr = CertificateParams::default().serialize_request(&KeyPair::generate()?)?.pem()?;
    let redemption = Redemption { secret, key: AgentKey::from_csr(&csr)?, host, at, correlation };
    let issuer = Arc::clone(authority);
    let issue = Box::new(move |host, generation, key: &AgentKey, now| {
        issuer.issue_host(host, generation, key, now, HostLife::default())
    });
    store.redeem(redemption, issue).await.map_err(|error| anyhow!("{error:?}"))?;
    Ok(host)
}

/// The thread with the bare table, which ends with its last sender.
fn bare(server: &Server) -> anyhow::Result<mpsc::Sender<BareRow>> {
    let (sender, mut inbox) = mpsc::channel::<BareRow>(1_024);
    let url = url_of(server);
    let mut run = move || -> anyhow::Result<()> {
        let mut client = postgres::Client::connect(&url, postgres::NoTls)?;
        client.batch_execute(TABLE)?;
        let upsert = client.prepare(UPSERT)?;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while inbox.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
            batch.sort_by_key(|row| row.host);
            let uuids: Vec<Uuid> = batch.iter().map(|row| row.host.uuid()).collect();
            let ids: Vec<&[u8]> = uuids.iter().map(|id| id.as_bytes().as_slice()).collect();
            let times: Vec<i64> = batch.iter().map(|row| row.at).collect();
            let sequences: Vec<i64> = batch.iter().map(|row| row.sequence).collect();
            let reports: Vec<Option<&str>> = batch.iter().map(|row| row.report.as_deref()).collect();
            client.execute(&upsert, &[&ids, &times, &sequences, &reports])?;
            for row in batch.drain(..) {
                row.reply.send(()).ok();
            }
        }
        Ok(())
    };
    let logged = move || {
        if let Err(error) = run() {
            eprintln!("the bare table: {error:#}");
        }
    };
    std::thread::Builder::new().name("bare".to_owned()).spawn(logged)?;
    Ok(sender)
}

async fn measured(
    side: &Side,
    hosts: &[HostId],
    (kind, sequence): (Kind, u64),
    time: Duration,
    postmaster: u32,
) -> anyhow::Result<Sample> {
    let (cpu, began) = (cpu_s(postmaster)?, Instant::now());
    let mut tasks = JoinSet::new();
    for host in hosts {
        tasks.spawn(check_ins(side.clone(), *host, kind, sequence, began + time));
    }
    let mut times = Vec::new();
    while let Some(task) = tasks.join_next().await {
        times.extend(task??);
    }
    let (wall_s, server_cpu_s) = (began.elapsed().as_secs_f64(), cpu_s(postmaster)? - cpu);
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    if times.is_empty() {
        bail!("nothing was answered");
    }
    Ok(Sample { requests: times.len() as u64, wall_s, server_cpu_s, p99_ms: p99.as_secs_f64() * 1e3 })
}

async fn check_ins(
    side: Side,
    host: HostId,
    kind: Kind,
    first: u64,
    until: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let sections = report(kind)?.sections;
    let guests = sections.guests.as_ref().map(serde_json::to_string).transpose()?;
    let mut times = Vec::new();
    for sequence in first.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        match &side {
            Side::Hub(store) => {
                let checkin = checkin(host, kind, sequence, guests.clone());
                let kept = store.check_in(checkin).await?;
                kept.map_err(|error| anyhow!("{error}"))?;
            }
            Side::Bare(rows) => {
                let (reply, answer) = oneshot::channel();
                let (at, sequence) = (SystemClock.now().as_millisecond(), i64::try_from(sequence)?);
                let row = BareRow { host, at, sequence, report: guests.clone(), reply };
                rows.send(row).await.map_err(|_| anyhow!("the bare table has ended"))?;
                answer.await.context("the bare table gave no answer")?;
            }
        }
        times.push(began.elapsed());
    }
    Ok(times)
}

fn checkin(host: HostId, kind: Kind, sequence: u64, guests: Option<String>) -> Checkin {
    let at = SystemClock.now();
    let (coverage, run) = match kind {
        Kind::Full => (Coverage::Full, Some(at)),
        Kind::Changed | Kind::Unchanged => (Coverage::Changed, None),
    };
    Checkin {
        presented: Presented { host, generation: 1 },
        arriving: IncomingReport { coverage, run, sequence },
        held: Generation::NONE,
        sections: SectionTexts { guests, ..SectionTexts::default() },
        summary: Summary::default(),
        conditions: ReportedConditions::default(),
        jobs: Vec::new(),
        orders: Vec::new(),
        diagnostic: None,
        at,
        correlation: CorrelationId::new(Uuid::new_v4()),
    }
}

/// The number of the server's first process.
fn postmaster(server: &Server) -> anyhow::Result<u32> {
    let name = server.name();
    let folder = PathBuf::from(name.split(" at ").nth(1).context("where is the server?")?);
    let text = std::fs::read_to_string(folder.join("data/postmaster.pid"))?;
    Ok(text.lines().next().context("the file of the server's number is empty")?.trim().parse()?)
}

/// CPU seconds of this program, and of the server with its processes.
fn cpu_s(postmaster: u32) -> anyhow::Result<f64> {
    let mut total_ns = threads_ns("self")? + threads_ns(&postmaster.to_string())?;
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // One that has ended meanwhile has no more to say.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if parent == Some(postmaster) {
            total_ns += threads_ns(&pid.to_string()).unwrap_or_default();
        }
    }
    Ok(total_ns as f64 / 1e9)
}

fn threads_ns(process: &str) -> anyhow::Result<u64> {
    let mut total_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        total_ns += text.split_whitespace().next().context("schedstat")?.parse::<u64>()?;
    }
    Ok(total_ns)
}
