//! The agent's own folder: copied, put back, torn, full.
//!
//! In: a folder, and what happens to it. Out: the same folder as a machine would leave it. A disk that fails needs the agent's feature
//! `failpoints`; without it nothing fails.

use std::io::Write as _;
use std::path::Path;

use tempfile::TempDir;

use super::script::Disk;
use crate::world::folder;

/// A copy of a folder, as a backup program takes it.
pub(super) fn copy(from: &Path) -> TempDir {
    let to = folder();
    crate::world::copy(from, to.path());
    to
}

/// Puts a folder back.
pub(super) fn replace(folder: &Path, from: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
    crate::world::copy(from, folder);
}

/// Half a frame at the end of the write-ahead log, as a write leaves it that the machine did not finish.
pub(super) fn tear(folder: &Path, bytes: usize) {
    let path = folder.join("agent.db-wal");
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    let torn: Vec<u8> = (0..bytes).map(|n| (n * 31 % 251) as u8).collect();
    log.write_all(&torn).unwrap();
}

/// Makes the disk of the agent on this thread fail. Returns how many writes may be on disk without an acknowledgement.
pub(super) fn fail(disk: Disk) -> u32 {
    use agentd::port::store::fault::{StoreFault, arm};
    match disk {
        Disk::Full(times) => {
            arm(Some(StoreFault::Full { times }));
            0
        }
        Disk::SyncFails => {
            arm(Some(StoreFault::SyncFails));
            1
        }
    }
}

/// The disk is well again.
pub(super) fn heal() {
    agentd::port::store::fault::arm(None);
}
