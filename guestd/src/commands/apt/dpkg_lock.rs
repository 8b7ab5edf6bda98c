//! Frontend lock of dpkg, held by apt until it has ended.
//!
//! It is a kernel lock: it ends with its holder.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::paths::Paths;

/// The lock, as long as it is kept. In one process it is taken once at a time.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

/// The result of taking the lock.
#[derive(Debug)]
pub enum LockResult {
    /// No other process changes packages.
    Acquired(Lock),
    Taken,
    /// The state of the lock is unknown; the text is the reason.
    Unknown(String),
}

/// Whether another process changes packages. The lock is only tested and not taken, so another process can still take
/// it.
pub fn goes_on(paths: &Paths) -> bool {
    let Ok(Some(file)) = open(paths) else { return false };
    let ours = Flock::from(FlockType::WriteLock);
    matches!(fcntl_getlk(&file, &ours), Ok(Some(_)))
}

/// Opens the lock's file; none where no process ever took it.
fn open(paths: &Paths) -> io::Result<Option<File>> {
    let path = paths.inside(Path::new("/var/lib/dpkg/lock-frontend"));
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Tries for it.
pub fn take(paths: &Paths) -> LockResult {
    let file = match open(paths) {
        Ok(Some(file)) => file,
        Ok(None) => return LockResult::Acquired(Lock { _file: None }),
        Err(error) => return LockResult::Unknown(format!("dpkg's lock cannot be opened: {error}")),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => LockResult::Acquired(Lock { _file: Some(file) }),
        Err(Errno::AGAIN | Errno::ACCESS) => LockResult::Taken,
        Err(errno) => LockResult::Unknown(format!("dpkg's lock cannot be taken: {errno}")),
    }
}
