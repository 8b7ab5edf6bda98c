//! dpkg's frontend lock, which apt holds from before its first hook until all is done, whichever frontend it is. A lock of the
//! kernel: it goes with its holder.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::Errno;

use crate::place::Place;

/// The lock, as long as it is kept. In one process it is taken once at a time.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

/// What became of asking for it.
#[derive(Debug)]
pub enum Asked {
    /// Nobody else changes packages.
    Ours(Lock),
    /// Somebody does.
    Taken,
    /// It cannot be told, in words.
    Unknown(String),
}

/// Tries for it.
pub fn take(place: &Place) -> Asked {
    let path = place.inside(Path::new("/var/lib/dpkg/lock-frontend"));
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        // Nobody ever took it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Asked::Ours(Lock { _file: None }),
        Err(error) => return Asked::Unknown(format!("cannot open {}: {error}", path.display())),
    };
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Asked::Ours(Lock { _file: Some(file) }),
        Err(Errno::AGAIN | Errno::ACCESS) => Asked::Taken,
        Err(errno) => Asked::Unknown(format!("cannot lock {}: {errno}", path.display())),
    }
}
