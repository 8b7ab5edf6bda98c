//! `guestd run`: the guest agent, one instance per guest.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_protocol::json::chain;
use logging::{Form, Service};
use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_LOCKED, EXIT_NO_PERMISSION, RunArgs};
use crate::backup_loop::BackupLoop;
use crate::control::Control;
use crate::file::{self, Eyes, FileError};
use crate::paths::Paths;
use crate::quiesce::boot;
use crate::quiesce::resume::{self, Recovery, ResumeCaller, Tries};
use crate::watch::Watch;
use crate::watchdog::{self, Heartbeat};

/// Half a second in all.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// How long to wait for the process that holds the lock when we are signalled to stop.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Why the controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A folder or file is not ours.
    #[error("guestd cannot write its files")]
    File(#[from] FileError),
    /// Two would trade one claim and both be frozen.
    #[error("another guestd runs on this guest (it holds {}): stop it first", path.display())]
    Locked { path: PathBuf },
    /// The lock itself.
    #[error("cannot lock {}", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The kernel does not show the boot id.
    #[error("no boot id: mount /proc")]
    NoBootId,
    #[error("cannot install signal handlers")]
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
    logging::start(Service::Guestd, logging::filter_of("GUESTD_LOG"), Form::ByPlace);
    let paths = Paths::new(&args.paths.root);
    file::make_folder(&paths.state_dir(), Eyes::Owner)?;
    file::make_folder(&paths.run_dir(), Eyes::All)?;
    let _lock = lock_within(&paths).await?;
    let boot_id = boot::id(&paths)?.ok_or(RunError::NoBootId)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signal)?;
    info!(version = env!("CARGO_PKG_VERSION"), boot_id, "guestd starts");
    let (serving, status) = watch::channel(None);
    let source_address = args.paths.source_address;
    let keeper = BackupLoop::new(paths.clone(), source_address, boot_id.clone(), status);
    let mut control = Control::new(paths.clone(), source_address, boot_id, serving);
    let watch = Watch::new(paths.clone());
    let beats = ["hello", "backups", "stacks"].map(Heartbeat::new);
    let [of_hello, of_backups, of_stacks] = &beats;
    // What is cut off leaves what a kill would leave: the claim's record, and the marker of what was stopped.
    let name = tokio::select! {
        never = of_hello.of(say_hello(&mut control)) => match never {},
        never = Box::pin(of_backups.of(keeper.run())) => match never {},
        never = Box::pin(of_stacks.of(watch.run())) => match never {},
        never = watchdog::watch(&beats, watchdog::pace(), watchdog::notify_systemd) => match never {},
        name = stopped(&mut terminate, &mut interrupt) => name,
    };
    info!(signal = name, "guestd stops");
    resume_stopped(&paths).await;
    Ok(EXIT_DONE)
}

async fn say_hello(control: &mut Control) -> Infallible {
    loop {
        let wait = control.step().await;
        watchdog::within(wait);
        tokio::time::sleep(wait).await;
    }
}

/// A stop of this program must not keep stacks stopped. What does not come up now is left to the timer and the next
/// start.
async fn resume_stopped(paths: &Paths) {
    match resume::recover(paths, (ResumeCaller::Now, LAST_PATIENCE, Tries(2)), |_| {}).await {
        Ok(Recovery::Nothing | Recovery::Others(_)) => {}
        Ok(Recovery::Done(resumed)) => {
            for down in &resumed.down {
                warn!(stack = %down.stack, why = down.why, "left stopped");
            }
        }
        Err(error) => warn!(error = chain(&error), "quiesce marker cannot be read"),
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
    Taken,
}

fn lock_path(paths: &Paths) -> PathBuf {
    paths.run_dir().join("guestd.lock")
}

/// Tries for the lock that a running controller holds.
pub fn lock(paths: &Paths) -> Result<Lock, RunError> {
    let path = lock_path(paths);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|source| RunError::Lock { path: path.clone(), source })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock::Held(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Lock::Taken),
        Err(errno) => Err(RunError::Lock { path, source: errno.into() }),
    }
}

/// `guestd status` holds the lock for a moment to see whether it is free; that is no reason to give up.
async fn lock_within(paths: &Paths) -> Result<File, RunError> {
    for _ in 0..LOCK_TRIES {
        if let Lock::Held(file) = lock(paths)? {
            return Ok(file);
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Err(RunError::Locked { path: lock_path(paths) })
}
