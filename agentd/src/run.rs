//! The composition of the agent: parts, channels and tasks.
//!
//! ```text
//! hub_sync ──▶ store ──(change notice)──▶ reconcile ──▶ view ──▶ report ──▶ sections ──▶ hub_sync, admin socket
//! local_api ──▶ store                        └──▶ watchdog    storage ──▶ report
//! ```
//! In: settings, and the proof that this process runs without special privileges. Out: the end, by a signal or because
//! a part failed. A part that ends by itself ends the agent, since half an agent looks alive and is not. The order of
//! the start is: lock and database, identity, certificate (`parts`), listeners, loops (`start`), ready.

mod fetches;
mod of_tests;
mod parts;
mod start;
mod tunnels;

use std::net::SocketAddr;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::json::chain;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::port::admin_socket::AdminSocketError;
use crate::port::host_key::HostKeyError;
use crate::port::identity::IdentityError;
use crate::port::local_tls::LeafError;
use crate::port::privilege::Unprivileged;
use crate::port::pve::SetUpError;
use crate::port::store::OpenError;
use crate::port::store::roster::LaidDown;
use crate::port::trust_files;
use crate::settings::{SecretFileError, Settings, TrustSettings};
use crate::task::local_api::{ListenError, Listeners};
use crate::task::stop::{self, Stopper};

use parts::Parts;
use start::start;

/// Loops end within their own final reports (three seconds); more than this means that one hangs.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Why the agent did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database, or another agent on it.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The identity's files.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("this box is not enrolled: get an invite (`holdfast host invite NAME`) and run `agentd enroll`")]
    NotEnrolled,
    /// The certificate for guests.
    #[error(transparent)]
    Leaf(#[from] LeafError),
    /// The host's own key.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// Its public half.
    #[error("the public half of this host's own key cannot be computed: this is a fault of this program")]
    Recipient(#[source] holdfast_seal::NoKey),
    /// The local API's address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The status socket.
    #[error(transparent)]
    Listener(#[from] AdminSocketError),
    /// A token's secret.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The channel of the alarm about the hub.
    #[error("the channel of [hub_alarm] in the configuration is refused")]
    HubAlarm(#[source] notify::ChannelFileError),
    /// The client for Proxmox.
    #[error(transparent)]
    Proxmox(#[from] SetUpError),
    /// A setting that other parts would not take.
    #[error("the configuration is refused at `{at}`: {rule}")]
    Setting {
        at: String,
        /// What is expected.
        rule: &'static str,
    },
    #[error("the kernel refuses what a daemon needs ({what})")]
    Kernel {
        /// What the daemon needs from the kernel.
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// A loop that should run for ever.
    #[error(
        "a part of the agent ended by itself ({part}): this is a fault of this program; it is to be started again"
    )]
    PartEnded { part: &'static str },
}

impl RunError {
    /// The exit code, by sysexits.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Store(OpenError::Held(_)) => 75,
            Self::Store(_) | Self::Identity(_) | Self::Leaf(_) | Self::HostKey(_) | Self::Listener(_) => 74,
            Self::NotEnrolled
            | Self::Secret(_)
            | Self::HubAlarm(_)
            | Self::Proxmox(_)
            | Self::Setting { .. } => 78,
            Self::Listen(_) => 69,
            Self::Kernel { .. } => 71,
            Self::PartEnded { .. } | Self::Recipient(_) => 70,
        }
    }
}

/// Runs the agent until a signal stops it.
///
/// # Errors
/// [`RunError`].
pub async fn run(settings: Settings, _no_one: Unprivileged) -> Result<(), RunError> {
    let mut signals = Signals::listen()?;
    let parts = Parts::open(&settings)?;
    let laid_down = lay_down(&settings.trust, &parts).await;
    let listeners = BoundListeners::bind(&settings).await?;
    let (stopper, stop) = stop::pair();
    let mut tasks = start(&settings, parts, listeners, &stop, laid_down)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "the agent runs");
    let outcome = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "the agent is asked to stop");
            Ok(())
        }
        ended = tasks.join_next() => Err(RunError::PartEnded { part: part_name(ended) }),
    };
    shut_down(&stopper, tasks).await;
    outcome
}

/// Puts into use the files that root installed. A file that is not accepted stops nothing else: the files in use stay,
/// guests are still managed, and the problem is reported for as long as this agent runs.
async fn lay_down(trust: &TrustSettings, parts: &Parts) -> Option<ErrorBody> {
    let refused = |error: &dyn std::error::Error| {
        let text = format!("operators and policy are not taken as they lie on this box: {}", chain(error));
        tracing::error!("{text}");
        Some(ErrorBody::new(ErrorCode::TrustFile, text))
    };
    let texts = match trust_files::laid_down(&trust.operators, &trust.policy) {
        Ok(Some(texts)) => texts,
        Ok(None) => {
            tracing::info!("no operators file is laid down");
            return None;
        }
        Err(error) => return refused(&error),
    };
    match parts.store.lay_down(texts, parts.clock.now()).await {
        Ok(LaidDown::Taken) => tracing::info!("operators and policy are in use as root laid them down"),
        Ok(LaidDown::Same) => {}
        Ok(LaidDown::Older(version)) => {
            tracing::info!(version, "the operators and policy on disk are older than the signed ones in use")
        }
        Err(error) => return refused(&error),
    }
    None
}

/// Where guests call, and where scratch guests do.
struct BoundListeners {
    guests: Listeners,
    tests: Listeners,
    /// Where a scraper gets the metrics.
    metrics: Option<TcpListener>,
}

impl BoundListeners {
    async fn bind(settings: &Settings) -> Result<Self, RunError> {
        let speech = settings.scratch.as_ref().and_then(|scratch| scratch.speech.as_ref());
        let tests = speech.map(|speech| speech.listener);
        Ok(Self {
            guests: Listeners::bind(&settings.local_api.listen).await?,
            // The bridge of tests may be made later, or again: without it nothing is tried, and guests are served all
            // the same.
            tests: Listeners::bind_ahead(tests.as_slice())?,
            metrics: match &settings.metrics {
                Some(metrics) => bind_metrics(metrics.listen).await,
                None => None,
            },
        })
    }
}

/// Without the port the agent does its work all the same.
async fn bind_metrics(address: SocketAddr) -> Option<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::error!(%address, %error, "the metrics cannot be served: does another program listen there?");
            None
        }
    }
}

type Tasks = JoinSet<&'static str>;

fn part_name(ended: Option<Result<&'static str, tokio::task::JoinError>>) -> &'static str {
    match ended {
        Some(Ok(name)) => name,
        Some(Err(error)) => {
            tracing::error!(%error, "a loop broke");
            "unknown"
        }
        None => "all",
    }
}

async fn shut_down(stopper: &Stopper, mut tasks: Tasks) {
    stopper.stop();
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_MAX, ended).await.is_err() {
        tracing::warn!("a loop did not end in time and was cut off");
    }
}

/// The two signals that stop a daemon.
struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, RunError> {
        let kernel = |source| RunError::Kernel { what: "signals", source };
        Ok(Self {
            term: signal(SignalKind::terminate()).map_err(kernel)?,
            interrupt: signal(SignalKind::interrupt()).map_err(kernel)?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
