//! Whether somebody tries something now: as long as `guestd try` runs, its snapshot and its judgement stand for all that is
//! done meanwhile, by apt for one. A lock that dies with its holder.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FlockOperation, flock};

use crate::file::{self, Eyes};
use crate::place::Place;

fn open(place: &Place) -> Option<File> {
    file::make_folder(&place.run_dir(), Eyes::All).ok()?;
    let path = place.run_dir().join("try.lock");
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()
}

/// Says so, as long as it is kept. Several may try at once. Where it cannot be said, apt takes a snapshot of its own.
pub fn begin(place: &Place) -> Option<File> {
    let file = open(place)?;
    flock(&file, FlockOperation::NonBlockingLockShared).ok().map(|()| file)
}

/// Whether somebody does.
pub fn goes_on(place: &Place) -> bool {
    let Some(file) = open(place) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_until_the_last_one_ends() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::new(root.path());
        assert!(!goes_on(&place));
        let (one, other) = (begin(&place).unwrap(), begin(&place).unwrap());
        drop(one);
        assert!(goes_on(&place));
        drop(other);
        assert!(!goes_on(&place));
    }
}
