//! Lock of a running `guestd try`.
//!
//! While it is held, its snapshot and check cover all that is done meanwhile, such as by apt. It ends with its holder.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FlockOperation, flock};

use crate::file::{self, Eyes};
use crate::paths::Paths;

fn open(paths: &Paths) -> Option<File> {
    file::make_folder(&paths.run_dir(), Eyes::All).ok()?;
    let path = paths.run_dir().join("try.lock");
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()
}

/// Says so, as long as it is kept. Several may try at once. Where it cannot be said, apt takes a snapshot of its own.
pub fn begin(paths: &Paths) -> Option<File> {
    let file = open(paths)?;
    flock(&file, FlockOperation::NonBlockingLockShared).ok().map(|()| file)
}

/// Whether another process runs `guestd try`.
pub fn goes_on(paths: &Paths) -> bool {
    let Some(file) = open(paths) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_held_until_the_last_holder_ends() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path());
        assert!(!goes_on(&paths));
        let (one, other) = (begin(&paths).unwrap(), begin(&paths).unwrap());
        drop(one);
        assert!(goes_on(&paths));
        drop(other);
        assert!(!goes_on(&paths));
    }
}
