//! Lock for stopping and starting stacks, released with its holder.
//!
//! Who runs a window holds it from before the first stop until all run again. Who resumes in another's place asks first, and
//! waits a moment; then it starts what it must without the turn, but leaves the marker: whoever holds the turn may yet
//! stop something, and then the next look starts that, too.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::paths::Paths;

const PAUSE: Duration = Duration::from_millis(100);

/// The turn, as long as it is kept.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// What became of asking for it.
#[derive(Debug)]
pub enum LockResult {
    Acquired(Lock),
    Taken,
    /// It cannot be told: no folder for it, no descriptors. In words.
    Unknown(String),
}

/// Tries for the turn.
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

/// Waits for the turn for a while.
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

/// A person wants the stacks back: whoever holds the turn looks for this each second. It lies in memory, and is no more
/// than a hint.
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
