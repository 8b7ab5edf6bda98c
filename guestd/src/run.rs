//! `guestd run`: one controller per guest, until it is told to stop.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::strict::chain;
use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_LOCKED, EXIT_NO_PERMISSION, RunArgs};
use crate::beat::{self, Beat};
use crate::control::Control;
use crate::file::{self, Eyes, FileError};
use crate::keeper::Keeper;
use crate::place::Place;
use crate::quiesce::boot;
use crate::quiesce::resume::{self, Asker, Recovered, Tries};
use crate::watch::Watch;

/// Half a second in all.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Whoever has the turn when we are told to stop is waited for so long.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Why the controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A folder or file is not ours.
    #[error("guestd cannot keep its files")]
    File(#[from] FileError),
    /// Two would trade one claim and both be frozen.
    #[error("another guestd runs on this guest (it holds {}): stop it first", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The lock itself.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The lock.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No kernel tells which boot this is.
    #[error("no boot id is found: mount /proc")]
    NoBootId,
    /// No signals.
    #[error("signals cannot be waited for")]
    Signal(#[source] io::Error),
}

impl RunError {
    /// For the caller of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Locked { .. } => EXIT_LOCKED,
            Self::File(error) if error.is_permission() => EXIT_NO_PERMISSION,
            Self::Lock { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                EXIT_NO_PERMISSION
            }
            _ => EXIT_FAILED,
        }
    }
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: &RunArgs) -> Result<u8, RunError> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_env("GUESTD_LOG").unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(io::stderr)
        .with_ansi(false)
        .init();
    let place = Place::new(&args.place.root);
    file::make_folder(&place.state_dir(), Eyes::Owner)?;
    file::make_folder(&place.run_dir(), Eyes::All)?;
    let _lock = lock_patiently(&place).await?;
    let boot_id = boot::id(&place)?.ok_or(RunError::NoBootId)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signal)?;
    info!(version = env!("CARGO_PKG_VERSION"), boot_id, "guestd starts");
    let (serving, told) = watch::channel(None);
    let source_address = args.place.source_address;
    let keeper = Keeper::new(place.clone(), source_address, boot_id.clone(), told);
    let mut control = Control::new(place.clone(), source_address, boot_id, serving);
    let watch = Watch::new(place.clone());
    let beats = ["hello", "backups", "stacks"].map(Beat::new);
    let [of_hello, of_backups, of_stacks] = &beats;
    // What is cut off leaves what a kill would leave: the claim's record, and the marker of what was stopped.
    let name = tokio::select! {
        never = of_hello.of(say_hello(&mut control)) => match never {},
        never = Box::pin(of_backups.of(keeper.run())) => match never {},
        never = Box::pin(of_stacks.of(watch.run())) => match never {},
        never = beat::watch(&beats, beat::pace(), beat::tell_systemd) => match never {},
        name = stopped(&mut terminate, &mut interrupt) => name,
    };
    info!(signal = name, "guestd stops");
    bring_back(&place).await;
    Ok(EXIT_DONE)
}

async fn say_hello(control: &mut Control) -> Infallible {
    loop {
        let wait = control.step().await;
        beat::within(wait);
        tokio::time::sleep(wait).await;
    }
}

/// Whoever stops us must not keep stacks stopped. What does not come up now is left to the timer and the next start.
async fn bring_back(place: &Place) {
    match resume::recover(place, (Asker::Now, LAST_PATIENCE, Tries(2)), |_| {}).await {
        Ok(Recovered::Nothing | Recovered::Others(_)) => {}
        Ok(Recovered::Done(resumed)) => {
            for down in &resumed.down {
                warn!(stack = %down.stack, why = down.why, "is left stopped");
            }
        }
        Err(error) => warn!(error = chain(&error), "the marker cannot be read"),
    }
}

async fn stopped(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

/// Whether the lock could be had.
pub enum Lock {
    /// Ours, as long as the file is open.
    Held(File),
    /// Another's.
    Taken,
}

fn lock_path(place: &Place) -> PathBuf {
    place.run_dir().join("guestd.lock")
}

/// Tries for the lock that a running controller holds.
pub fn lock(place: &Place) -> Result<Lock, RunError> {
    let path = lock_path(place);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|source| RunError::Lock { path: path.clone(), source })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock::Held(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Lock::Taken),
        Err(errno) => Err(RunError::Lock { path, source: errno.into() }),
    }
}

/// `guestd status` holds the lock for a moment to see whether it is free; that is no reason to give up.
async fn lock_patiently(place: &Place) -> Result<File, RunError> {
    for _ in 0..LOCK_TRIES {
        if let Lock::Held(file) = lock(place)? {
            return Ok(file);
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Err(RunError::Locked { path: lock_path(place) })
}
