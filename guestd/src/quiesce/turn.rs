//! Whose turn it is to stop and start stacks: a lock that dies with its holder.
//!
//! Who runs a window holds it from before the first stop until all run again. Who resumes in another's place asks first, and
//! waits a moment; then it starts what it must without the turn, but leaves the marker: whoever holds the turn may yet
//! stop something, and then the next look starts that, too.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::place::Place;

const PAUSE: Duration = Duration::from_millis(100);

/// The turn, as long as it is kept.
#[derive(Debug)]
pub struct Turn {
    _file: File,
}

/// What became of asking for it.
#[derive(Debug)]
pub enum Asked {
    /// Ours.
    Ours(Turn),
    /// Somebody else's.
    Taken,
    /// It cannot be told: no folder for it, no descriptors. In words.
    Unknown(String),
}

/// Tries for the turn.
pub fn take(place: &Place) -> Asked {
    let path = place.run_dir().join("quiesce.lock");
    let file = match OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path) {
        Ok(file) => file,
        Err(error) => return Asked::Unknown(format!("cannot open {}: {error}", path.display())),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Asked::Ours(Turn { _file: file }),
        Err(rustix::io::Errno::WOULDBLOCK) => Asked::Taken,
        Err(errno) => Asked::Unknown(format!("cannot lock {}: {errno}", path.display())),
    }
}

/// Waits for the turn for a while.
pub async fn take_patiently(place: &Place, patience: Duration) -> Asked {
    let waiting = async {
        loop {
            match take(place) {
                Asked::Taken => tokio::time::sleep(PAUSE).await,
                other => return other,
            }
        }
    };
    tokio::time::timeout(patience, waiting).await.unwrap_or(Asked::Taken)
}

/// A person wants the stacks back: whoever holds the turn looks for this each second. It lies in memory, and is no more
/// than a hint.
fn wish_path(place: &Place) -> PathBuf {
    place.run_dir().join("resume-wished")
}

/// Leaves the hint.
pub fn wish(place: &Place) -> std::io::Result<()> {
    std::fs::write(wish_path(place), "")
}

/// Whether the hint is there.
pub fn is_wished(place: &Place) -> bool {
    wish_path(place).exists()
}

/// Takes the hint away; an old one would end the next window early, and no more.
pub fn forget_wish(place: &Place) {
    let _ = std::fs::remove_file(wish_path(place));
}
