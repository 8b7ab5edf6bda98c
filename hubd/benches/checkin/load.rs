//! Load: each host on its own connection, one request after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use holdfast_protocol::checkin::{CheckinRequest, Coverage};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::report::{AgentSection, GuestReport, GuestStatus, ReportSchema, Running, Sections};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::figures::Sample;
use crate::fleet::Fleet;
use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All sections, to begin with.
    Full,
    /// A section of 4 KiB.
    Changed,
    Unchanged,
}

pub struct Load {
    fleet: Fleet,
    /// Never the same twice, over all runs: the hub takes only newer reports.
    sequence: u64,
}

/// A connection of one client, with one request under way at most.
pub type Connection = SendRequest<Full<Bytes>>;

/// Numbers that one connection may use in one run.
const STRIDE: u64 = 10_000_000;

impl Load {
    pub const fn new(fleet: Fleet) -> Self {
        Self { fleet, sequence: 1 }
    }

    /// A connection of its first host.
    pub async fn connect(&self, server: &Server) -> anyhow::Result<Connection> {
        let first = self.fleet.members.first().context("a fleet without hosts")?;
        connect(server, Arc::clone(first)).await
    }

    pub async fn run(&mut self, server: &Server, kind: Kind, time: Duration) -> anyhow::Result<Sample> {
        let mut connections = Vec::new();
        for config in &self.fleet.members {
            connections.push(connect(server, Arc::clone(config)).await?);
        }
        let first = self.sequence;
        self.sequence += STRIDE;
        measured(server, connections, time, |_, connection, until| one(connection, kind, first, until)).await
    }
}

/// What a server does for all connections at once. The client of a connection gets its number and the time of its end,
/// and gives how long each answer took.
pub async fn measured<Client>(
    server: &Server,
    connections: Vec<Connection>,
    time: Duration,
    client: impl Fn(usize, Connection, Instant) -> Client,
) -> anyhow::Result<Sample>
where
    Client: Future<Output = anyhow::Result<Vec<Duration>>> + Send + 'static,
{
    let (cpu, began) = (server.cpu_s()?, Instant::now());
    let mut tasks = JoinSet::new();
    for (number, connection) in connections.into_iter().enumerate() {
        tasks.spawn(client(number, connection, began + time));
    }
    let mut times = Vec::new();
    while let Some(task) = tasks.join_next().await {
        times.extend(task??);
    }
    let (wall_s, server_cpu_s) = (began.elapsed().as_secs_f64(), server.cpu_s()? - cpu);
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    let requests = times.len() as u64;
    if requests == 0 {
        bail!("nothing was answered");
    }
    Ok(Sample { requests, wall_s, server_cpu_s, p99_ms: p99.as_secs_f64() * 1e3 })
}

pub async fn connect(server: &Server, config: Arc<rustls::ClientConfig>) -> anyhow::Result<Connection> {
    let stream = TcpStream::connect(server.address).await?;
    stream.set_nodelay(true)?;
    let stream = TlsConnector::from(config).connect(ServerName::try_from("127.0.0.1")?, stream).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    #[expect(clippy::disallowed_methods, reason = "it ends with the sender")]
    tokio::spawn(connection);
    Ok(sender)
}

async fn one(
    mut connection: Connection,
    kind: Kind,
    first: u64,
    until: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let mut request = report(kind)?;
    let mut times = Vec::new();
    for sequence in first.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        request.sequence = sequence;
        // Written anew each time, as an agent does; this is the client's CPU, not the server's.
        check_in(&mut connection, Duration::ZERO, &request).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

/// One check-in that is held for so long at most, and the bytes of its answer.
pub async fn check_in(
    connection: &mut Connection,
    wait: Duration,
    request: &CheckinRequest,
) -> anyhow::Result<Bytes> {
    let path = format!("/v1/agent/checkin?wait={}s", wait.as_secs());
    post(connection, &path, serde_json::to_vec(request)?).await
}

/// One request with a JSON body, and the bytes of its answer, which says that it was done.
pub async fn post(connection: &mut Connection, path: &str, body: Vec<u8>) -> anyhow::Result<Bytes> {
    let asked = Request::post(path)
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    connection.ready().await?;
    let answer = connection.send_request(asked).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        bail!("{status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(body)
}

pub fn report(kind: Kind) -> anyhow::Result<CheckinRequest> {
    let started_at = Timestamp::from_second(1_700_000_000)?;
    let agent = AgentSection {
        version: "0.1.0".to_owned(),
        started_at,
        problems: Vec::new(),
        unobserved_since: None,
        recipient: None,
        builds: None,
        maintenance: None,
        tunnels: Vec::new(),
    };
    let guests = (0..GUESTS).map(guest).collect();
    let sections = match kind {
        Kind::Unchanged => Sections::default(),
        Kind::Changed => Sections { guests: Some(guests), ..Sections::default() },
        Kind::Full => Sections { agent: Some(agent), guests: Some(guests), ..Sections::default() },
    };
    let coverage = if kind == Kind::Full { Coverage::Full } else { Coverage::Changed };
    let request = CheckinRequest {
        schema: ReportSchema::V1,
        sequence: 0,
        held: Generation::NONE,
        coverage,
        sections,
        usage: Vec::new(),
        diagnostic: None,
    };
    let bytes = serde_json::to_vec(&request).context("a report")?.len();
    if kind == Kind::Changed && !(3_500..=4_700).contains(&bytes) {
        bail!("the report is {bytes} bytes long, not about 4 KiB");
    }
    Ok(request)
}

/// About 90 bytes each.
const GUESTS: u32 = 44;

fn guest(number: u32) -> GuestReport {
    GuestReport {
        uid: None,
        customer: None,
        name: format!("guest-{number:04}"),
        vmid: (100 + number).try_into().ok(),
        former_vmids: Vec::new(),
        status: GuestStatus::Managed,
        run: Running::Running,
        unknown_since: None,
        run_as_of: None,
        configuration_as_of: None,
        wanted: Some(holdfast_protocol::desired::RunState::Running),
        size: None,
        limits: None,
        address: None,
        address_filter: None,
        levels: None,
        lock: None,
        volumes: Vec::new(),
        golden: None,
        golden_built_at: None,
        root_disk_data: None,
        controller: None,
        protection: None,
        conditions: Vec::new(),
        fields: Vec::new(),
    }
}
