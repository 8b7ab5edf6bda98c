//! Hosts that hold their check-ins open, as agents do.
//!
//! Each host has a connection and a request under way. A hub holds an answer for the time that agents ask for. The bare
//! echo answers at once, so there the host waits by itself, and both servers get as many requests. A host without an
//! answer waits as an agent does, and connects again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_protocol::checkin::{CheckinRequest, Need};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::fleet::Fleet;
use crate::load::{Connection, Kind, check_in, report};

/// How long agents ask a hub to hold a check-in, and so the time between two of a host.
pub const HELD: Duration = Duration::from_secs(25);

/// Hosts behind one address. The hub lets 64 strangers of one address in at a time.
const BEHIND_ONE_ADDRESS: usize = 50;

/// The first wait of an agent that lost its hub, and the longest.
const AWAY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// No answer after this time counts as a lost connection.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Which server the hosts call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Hub,
    /// The bare echo.
    Echo,
}

/// The hosts, each in a task of its own; they end with this.
pub struct Hosts {
    watched: Arc<Watched>,
    _hosts: JoinSet<()>,
}

/// What all hosts share.
struct Watched {
    server: Target,
    address: SocketAddr,
    record: Mutex<Record>,
}

/// What happened since the last call of [`Hosts::take`].
#[derive(Default)]
pub struct Record {
    /// How late answers were: beyond the time for which the hub was to hold them.
    pub late: Vec<Duration>,
    /// For each host, when its first request was sent that was answered.
    pub heard: Vec<Option<Instant>>,
    /// For each host, how often it shook hands.
    pub handshakes: Vec<u32>,
    /// Connections that ended without an answer, and attempts that failed.
    pub lost: u64,
}

impl Hosts {
    /// Starts the hosts one after the other within the time between two check-ins, so that these are spread evenly.
    pub fn start(fleet: &Fleet, server: Target, address: SocketAddr) -> Self {
        let hosts = fleet.members.len();
        let watched = Arc::new(Watched { server, address, record: Mutex::new(Record::of(hosts)) });
        let mut tasks = JoinSet::new();
        for (number, tls) in fleet.members.iter().enumerate() {
            let host = Host { number, tls: Arc::clone(tls), watched: Arc::clone(&watched), sequence: 0 };
            let begins = HELD.mul_f64(number as f64 / hosts as f64);
            tasks.spawn(async move {
                tokio::time::sleep(begins).await;
                host.run().await;
            });
        }
        Self { watched, _hosts: tasks }
    }

    /// What happened since the last call.
    pub fn take(&self) -> Record {
        let mut record = self.watched.record();
        let hosts = record.heard.len();
        std::mem::replace(&mut record, Record::of(hosts))
    }

    pub fn count(&self) -> usize {
        self.watched.record().heard.len()
    }

    /// How many hosts shook hands since the last [`Hosts::take`].
    pub fn connected(&self) -> usize {
        self.watched.record().handshakes.iter().filter(|handshakes| **handshakes > 0).count()
    }

    /// How many hosts got an answer since the last [`Hosts::take`].
    pub fn heard(&self) -> usize {
        self.watched.record().heard.iter().flatten().count()
    }
}

impl Record {
    fn of(hosts: usize) -> Self {
        Self { heard: vec![None; hosts], handshakes: vec![0; hosts], ..Self::default() }
    }
}

impl Watched {
    fn record(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, host: usize, sent: Instant, wait: Duration) {
        let held = match self.server {
            Target::Hub => wait,
            Target::Echo => Duration::ZERO,
        };
        let late = sent.elapsed().saturating_sub(held);
        let mut record = self.record();
        if wait == HELD {
            record.late.push(late);
        }
        if let Some(heard) = record.heard.get_mut(host) {
            heard.get_or_insert(sent);
        }
    }
}

/// Connects from an address that not too many hosts share.
pub async fn dial(host: usize, to: SocketAddr) -> anyhow::Result<TcpStream> {
    let behind = u8::try_from(1 + host / BEHIND_ONE_ADDRESS % 250)?;
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 1, behind)), 0))?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

struct Host {
    number: usize,
    tls: Arc<rustls::ClientConfig>,
    watched: Arc<Watched>,
    /// Of its last report.
    sequence: u64,
}

impl Host {
    /// Connects and checks in until its task is dropped.
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            if let Ok(connection) = self.connect().await {
                let before = self.sequence;
                // A connection that ends is the end of the hub, or of its patience; the host calls again.
                drop(self.check_in_on(connection).await);
                if self.sequence > before + 1 {
                    failures = 0;
                }
            }
            failures += 1;
            self.watched.record().lost += 1;
            tokio::time::sleep(self.away(failures)).await;
        }
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = dial(self.number, self.watched.address).await?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
        if let Some(handshakes) = self.watched.record().handshakes.get_mut(self.number) {
            *handshakes += 1;
        }
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        #[expect(clippy::disallowed_methods, reason = "it ends with the sender")]
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn check_in_on(&mut self, mut connection: Connection) -> anyhow::Result<()> {
        let (mut full, mut unchanged) = (report(Kind::Full)?, report(Kind::Unchanged)?);
        let mut need = if self.sequence == 0 { Need::Full } else { Need::Changed };
        loop {
            self.sequence += 1;
            let (request, wait) = match need {
                // News are answered at once.
                Need::Full => (&mut full, Duration::ZERO),
                Need::Changed => (&mut unchanged, HELD),
            };
            request.sequence = self.sequence;
            let sent = Instant::now();
            let asked = self.ask(&mut connection, request, wait);
            need = tokio::time::timeout(ANSWER_MAX, asked).await??;
            self.watched.answered(self.number, sent, wait);
            tokio::time::sleep(wait.saturating_sub(sent.elapsed())).await;
        }
    }

    async fn ask(
        &self,
        connection: &mut Connection,
        request: &CheckinRequest,
        wait: Duration,
    ) -> anyhow::Result<Need> {
        let body = check_in(connection, wait, request).await?;
        // Both the hub's envelope and a bare answer would have it in this form.
        let full = br#""need":"full""#;
        Ok(if body.windows(full.len()).any(|part| part == full) { Need::Full } else { Need::Changed })
    }

    /// Doubling waits, spread over one half to one and a half, as agents do.
    fn away(&self, failures: u32) -> Duration {
        let (first, longest) = AWAY;
        let middle = first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(longest);
        // Any spread does; this one is the same in every run.
        let random = (self.number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(failures) >> 32;
        middle.mul_f64(0.5 + random as f64 / f64::from(u32::MAX)).min(longest)
    }
}
