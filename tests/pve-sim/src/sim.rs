//! A running instance, for programs and for tests in the same process.
//!
//! ```no_run
//! # async fn example() -> Result<(), pve_sim::StartError> {
//! let sim = pve_sim::Sim::builder().start().await?;
//! println!("{} {}", sim.url, sim.spki_sha256);
//! sim.shutdown().await;
//! # Ok(()) }
//! ```
//! In: a state folder (a temporary one by default), a seed (the built-in lab by default), a runtime. Out: a [`Handle`] with everything a
//! client needs. The instance ends with [`Handle::shutdown`] or when the handle is dropped.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::access::credential::hex;
use crate::clock::{Clock, SystemClock};
use crate::fault::control;
use crate::guard::Watch;
use crate::http::listen;
use crate::http::tls::{Identity, IdentityError};
use crate::node::{Figures, HotMounts, Node, OpenError, Settings};
use crate::power::Power;
use crate::runtime::{Inert, Runtime};
use crate::state::Paths;
use crate::state::seed::seed;
use crate::state::seed_error::SeedError;

/// Entry to the builder.
#[derive(Debug, Clone, Copy)]
pub struct Sim;

/// What an instance shall be.
pub struct Builder {
    state: Option<PathBuf>,
    seed: Option<PathBuf>,
    listen: SocketAddr,
    runtime: Option<Box<dyn Runtime>>,
    clock: Option<Arc<dyn Clock>>,
    pace: Duration,
    login_delay: Duration,
    hot_mounts: HotMounts,
    watch: Watch,
    figures: Figures,
}

/// Why an instance does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No temporary folder.
    #[error("no temporary state folder could be made")]
    Temporary(#[source] std::io::Error),
    #[error("{address} cannot be listened on; choose another address")]
    Bind {
        address: SocketAddr,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    #[error("the state folder could not be seeded")]
    Seed(#[source] SeedError),
    /// The state folder.
    #[error("the state folder could not be opened")]
    Open(#[source] OpenError),
    #[error("the instance has no certificate")]
    Identity(#[source] IdentityError),
    #[error("guests that ran before could not be taken up again")]
    Runtime(#[source] crate::runtime::RuntimeError),
    /// A part of the state.
    #[error("{what} could not be read; check the state folder")]
    State {
        what: &'static str,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
}

/// A running instance.
#[derive(Debug)]
pub struct Handle {
    /// `https://127.0.0.1:PORT`
    pub url: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of the subject public key info, in hexadecimal.
    pub spki_sha256: String,
    /// SHA-256 of the leaf certificate, in hexadecimal.
    pub leaf_sha256: String,
    /// The leaf as PEM.
    pub certificate_pem: String,
    /// Secrets by full token id.
    pub tokens: BTreeMap<String, String>,
    /// The password of `root@pam`.
    pub root_password: String,
    /// The node itself, for hand edits and faults in the same process.
    pub node: Arc<Node>,
    tls: Arc<rustls::ServerConfig>,
    end: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    _temporary: Option<tempfile::TempDir>,
}

impl Sim {
    /// Starts building an instance.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            state: None,
            seed: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            runtime: None,
            clock: None,
            pace: Duration::from_millis(20),
            login_delay: Duration::from_secs(3),
            hot_mounts: HotMounts::Work,
            watch: Watch::Off,
            figures: Figures::Live,
        }
    }
}

impl Builder {
    /// Keeps the state here instead of in a temporary folder.
    #[must_use]
    pub fn state_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.state = Some(dir.as_ref().to_owned());
        self
    }

    /// Seeds a fresh state from here instead of from the built-in lab.
    #[must_use]
    pub fn seed(mut self, dir: impl AsRef<Path>) -> Self {
        self.seed = Some(dir.as_ref().to_owned());
        self
    }

    /// Listens here instead of on a free port of loopback.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Runs guests with this runtime instead of not at all.
    #[must_use]
    pub fn runtime(mut self, runtime: Box<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Takes time from here.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Lets workers rest this long between steps.
    #[must_use]
    pub const fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Holds failed logins back this long.
    #[must_use]
    pub const fn login_delay(mut self, delay: Duration) -> Self {
        self.login_delay = delay;
        self
    }

    /// Plays a node whose running guests do or do not take new mount points.
    #[must_use]
    pub const fn hot_mounts(mut self, hot_mounts: HotMounts) -> Self {
        self.hot_mounts = hot_mounts;
        self
    }

    /// Lists the cluster's resources with figures of this age.
    #[must_use]
    pub const fn figures(mut self, figures: Figures) -> Self {
        self.figures = figures;
        self
    }

    /// Watches for what our own agent must never send: such a call is refused loudly, and `node.guard` keeps it.
    #[must_use]
    pub const fn guard(mut self) -> Self {
        self.watch = Watch::On;
        self
    }

    /// Opens the node without a listener; for replays in the same process.
    ///
    /// # Errors
    /// When the state cannot be seeded or opened.
    pub fn open(self) -> Result<Opened, StartError> {
        let temporary = if self.state.is_none() {
            Some(tempfile::tempdir().map_err(StartError::Temporary)?)
        } else {
            None
        };
        let fallback = temporary.as_ref().map(|dir| dir.path().to_owned()).unwrap_or_default();
        let state = self.state.unwrap_or(fallback);
        let paths = Paths::new(&state);
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::starting_at(first_number(&paths))));
        paths.make().map_err(|source| StartError::State { what: "the state folder", source })?;
        let root_password = root_password(&paths, clock.as_ref())?;
        seed(&paths, self.seed.as_deref(), clock.as_ref(), &root_password).map_err(StartError::Seed)?;
        let identity = Identity::open(&paths).map_err(StartError::Identity)?;
        let marks = paths.run().join("guests");
        let runtime = self.runtime.unwrap_or_else(|| Box::new(Inert::new(&paths.run())));
        let power = Power::open(runtime, &marks)
            .map_err(|source| StartError::State { what: "the marks of running guests", source })?;
        let settings = Settings {
            pace: self.pace,
            login_delay: self.login_delay,
            hot_mounts: self.hot_mounts,
            fingerprint: identity.fingerprint.clone(),
            watch: self.watch,
            figures: self.figures,
        };
        let node = Node::open(&state, clock, settings, power).map_err(StartError::Open)?;
        resume(&node)?;
        Ok(Opened { node, identity, root_password, temporary })
    }

    /// Starts the instance.
    ///
    /// # Errors
    /// When the state or the address cannot be had.
    pub async fn start(self) -> Result<Handle, StartError> {
        let address = self.listen;
        let opened = self.open()?;
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .map_err(|source| StartError::Bind { address, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Bind { address, source })?;
        let (end, ended) = watch::channel(false);
        let tokens = opened.node.world().secrets.tokens.clone();
        let tls = opened.identity.config;
        let task = listening(&opened.node, listener, &tls, ended);
        let mut tasks = vec![task];
        let socket = opened.node.paths.control();
        match control::bind(&socket) {
            Ok(listener) => tasks.push(controlled(&opened.node, listener, end.subscribe())),
            // A folder whose name is too long for a socket still serves; only scripts cannot reach it.
            Err(error) => tracing::warn!(socket = %socket.display(), %error, "no control socket"),
        }
        Ok(Handle {
            tls,
            url: format!("https://{address}"),
            address,
            spki_sha256: opened.identity.spki_sha256,
            leaf_sha256: opened.identity.leaf_sha256,
            certificate_pem: opened.identity.pem,
            tokens,
            root_password: opened.root_password,
            node: opened.node,
            end,
            tasks,
            _temporary: opened.temporary,
        })
    }
}

/// Guests that ran when the state was last used run again.
fn resume(node: &Node) -> Result<(), StartError> {
    let marked = node
        .power
        .marked()
        .map_err(|source| StartError::State { what: "the marks of running guests", source })?;
    let world = node.world();
    let specs: Vec<_> = marked
        .keys()
        .filter_map(|vmid| {
            world.guests.get(*vmid).ok().and_then(|config| {
                crate::guest::spec::spec(&node.table, world.store(), *vmid, &config.main).ok()
            })
        })
        .collect();
    drop(world);
    node.power.resume(&specs).map_err(StartError::Runtime)
}

/// An open node without a listener.
#[derive(Debug)]
pub struct Opened {
    pub node: Arc<Node>,
    pub identity: Identity,
    /// The password of `root@pam`.
    pub root_password: String,
    /// The folder that is removed at the end, when it is a temporary one.
    pub temporary: Option<tempfile::TempDir>,
}

/// Process numbers go on where the last run on this state stopped.
fn first_number(paths: &Paths) -> u64 {
    let entries = std::fs::read_dir(paths.tasks()).into_iter().flatten().flatten();
    let numbers = entries
        .filter_map(|entry| crate::task::upid::Upid::parse(entry.file_name().to_str()?))
        .map(|upid| upid.pid);
    numbers.max().map_or(1_000, |last| last + 1)
}

fn root_password(paths: &Paths, clock: &dyn Clock) -> Result<String, StartError> {
    let state = |source| StartError::State { what: "the password of root@pam", source };
    let path = paths.etc("root.password");
    if path.exists() {
        return std::fs::read_to_string(path).map_err(state);
    }
    let mut bytes = [0_u8; 12];
    clock.random(&mut bytes);
    let password = hex(&bytes);
    std::fs::write(path, &password).map_err(state)?;
    Ok(password)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the listener's task is held by the handle, which ends and awaits it"
)]
fn listening(
    node: &Arc<Node>,
    listener: tokio::net::TcpListener,
    tls: &Arc<rustls::ServerConfig>,
    ended: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(listen::serve(Arc::clone(node), listener, Arc::clone(tls), ended))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the control task is held by the handle, which ends and awaits it"
)]
fn controlled(
    node: &Arc<Node>,
    listener: tokio::net::UnixListener,
    ended: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(control::serve(Arc::clone(node), listener, ended))
}

impl Handle {
    /// Serves on a further socket, for instance one in the guests' network namespace.
    pub fn also(&mut self, listener: tokio::net::TcpListener) {
        self.tasks.push(listening(&self.node, listener, &self.tls, self.end.subscribe()));
    }

    /// Ends the instance and waits until it is gone.
    pub async fn shutdown(mut self) {
        let _ = self.end.send(true);
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
        let node = Arc::clone(&self.node);
        let _ = tokio::task::spawn_blocking(move || node.power.close()).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.end.send(true);
    }
}
