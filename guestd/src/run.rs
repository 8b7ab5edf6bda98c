//! `guestd run`: one controller per guest, until it is told to stop.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;
use tracing_subscriber::EnvFilter;

use crate::args::{EXIT_DONE, EXIT_FAILED, EXIT_LOCKED, EXIT_NO_PERMISSION, RunArgs};
use crate::control::Control;
use crate::file::{self, Eyes, FileError};
use crate::place::Place;

/// A kernel's boot id is 36 characters.
const BOOT_ID_BYTES_MAX: usize = 64;

/// The line the kernel writes is some hundred bytes.
const STAT_BYTES_MAX: usize = 4 * 1024;

/// Half a second in all.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

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
    let boot_id = boot_id(&place)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signal)?;
    info!(version = env!("CARGO_PKG_VERSION"), boot_id, "guestd starts");
    let mut control = Control::new(place, args.place.source_address, boot_id);
    loop {
        // A step that is cut off leaves what a kill would leave: its record says that the claim may have been sent.
        let wait = tokio::select! {
            wait = control.step() => wait,
            name = stopped(&mut terminate, &mut interrupt) => return Ok(stop(name)),
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            name = stopped(&mut terminate, &mut interrupt) => return Ok(stop(name)),
        }
    }
}

async fn stopped(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

fn stop(signal: &str) -> u8 {
    info!(signal, "guestd stops");
    EXIT_DONE
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

/// Which boot of the guest this is. A container shows its host's boot id, so when PID 1 was started is added to it:
/// otherwise a restart of the container would not be seen.
fn boot_id(place: &Place) -> Result<String, RunError> {
    let mut kernel = None;
    for path in place.boot_ids() {
        if let Some(bytes) = file::read(&path, BOOT_ID_BYTES_MAX, Eyes::All)? {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            kernel = kernel.or((!text.is_empty()).then_some(text));
        }
    }
    let kernel = kernel.ok_or(RunError::NoBootId)?;
    let about = file::read(&place.first_process(), STAT_BYTES_MAX, Eyes::All)?;
    let started = about.and_then(|about| started(&String::from_utf8_lossy(&about)).map(str::to_owned));
    Ok(started.map_or(kernel.clone(), |started| format!("{kernel}-{started}")))
}

/// The twenty-second field of `stat`, clock ticks since the host booted. The second, the program's name in brackets, may
/// hold anything, so it is counted from its end.
fn started(stat: &str) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).filter(|field| field.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_the_first_process_is_found_behind_an_odd_name() {
        let rest = "S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 22 33";
        assert_eq!(started(&format!("1 (init) {rest}")), Some("987654"));
        assert_eq!(started(&format!("1 (a ) b) {rest}")), Some("987654"));
        for bad in ["", "1 (init)", "1 (init) S 0 1", "no brackets"] {
            assert_eq!(started(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_restart_of_the_container_is_another_boot() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::new(root.path());
        let kernel = boot_id(&place).unwrap();
        std::fs::create_dir_all(root.path().join("proc/1")).unwrap();
        let stat =
            |ticks: u32| format!("1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {ticks} 22 33");
        std::fs::write(place.first_process(), stat(11)).unwrap();
        let first = boot_id(&place).unwrap();
        std::fs::write(place.first_process(), stat(12)).unwrap();
        assert_ne!(first, boot_id(&place).unwrap());
        assert_eq!(first, format!("{kernel}-11"));
    }
}
