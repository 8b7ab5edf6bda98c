//! Lock for stopping and starting stacks, released with its holder.
//!
//! A process that runs a window holds it from before the first stop until all run again. A process that resumes in
//! place of another first tries to take the lock, and waits a moment. Then it starts the parts without the lock, but
//! leaves the marker: the process that holds the lock may still stop something, and the next check then starts that,
//! too.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::paths::Paths;

const PAUSE: Duration = Duration::from_millis(100);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The result of taking the lock.
#[derive(Debug)]
pub enum LockResult {
    Acquired(Lock),
    Taken,
    /// The state of the lock is unknown: its folder or file cannot be opened. The text is the reason.
    Unknown(String),
}

/// Tries to take the lock.
pub fn take(paths: &Paths) -> LockResult {
    let path = paths.run_dir().join("quiesce.lock");
    let file = match OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path) {
        Ok(file) => file,
        Err(error) => return LockResult::Unknown(format!("cannot open {}: {error}", path.display())),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => LockResult::Acquired(Lock { _file: file }),
        Err(rustix::io::Errno::WOULDBLOCK) => LockResult::Taken,
        Err(errno) => LockResult::Unknown(format!("cannot lock {}: {errno}", path.display())),
    }
}

/// Tries to take the lock until the time is over.
pub async fn take_within(paths: &Paths, patience: Duration) -> LockResult {
    let waiting = async {
        loop {
            match take(paths) {
                LockResult::Taken => tokio::time::sleep(PAUSE).await,
                other => return other,
            }
        }
    };
    tokio::time::timeout(patience, waiting).await.unwrap_or(LockResult::Taken)
}

/// A person wants the stacks back: the process that holds the lock checks for this file each second. It is stored in
/// memory, and is only a hint.
fn resume_request_path(paths: &Paths) -> PathBuf {
    paths.run_dir().join("resume-requested")
}

/// Leaves the hint.
pub fn request_resume(paths: &Paths) -> std::io::Result<()> {
    std::fs::write(resume_request_path(paths), "")
}

/// Whether the hint is there.
pub fn resume_requested(paths: &Paths) -> bool {
    resume_request_path(paths).exists()
}

/// Takes the hint away; an old one would end the next window early, and no more.
pub fn clear_resume_request(paths: &Paths) {
    let _ = std::fs::remove_file(resume_request_path(paths));
}
