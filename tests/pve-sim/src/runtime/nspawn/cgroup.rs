//! Ends and removes the control group of a guest, which also waits until its last process is gone.
//!
//! The guest's init outlives an nspawn that was killed; its control group is the one thing that holds all of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::runtime::error::RuntimeError;

/// The processes are killed at once; the kernel only has to bury them.
const BURIAL_PATIENCE: Duration = Duration::from_secs(10);
/// The kernel tells when a group empties; looking again now and then guards against a missed word.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Ends every process in a group below the root of the unified hierarchy and removes it; none is fine.
pub(super) fn end_and_remove(name: &str) -> Result<(), RuntimeError> {
    // Without a visible unified hierarchy nothing can be removed, and nothing of ours is in the way.
    let Some(root) = unified_root()? else { return Ok(()) };
    let group = root.join(name);
    let failed = || RuntimeError::system("removing the control group", &group);
    match std::fs::write(group.join("cgroup.kill"), "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed()(error)),
        _ => {}
    }
    let deadline = Instant::now() + BURIAL_PATIENCE;
    loop {
        match remove_tree(&group) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                wait_for_change(&group).map_err(failed())?;
            }
            Err(error) => return Err(failed()(error)),
        }
    }
}

/// Waits until the group's population changes, for a moment at most.
fn wait_for_change(group: &Path) -> io::Result<()> {
    let events = match File::open(group.join("cgroup.events")) {
        Ok(events) => events,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&LOOK_AGAIN))?;
    Ok(())
}

fn remove_tree(group: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    match std::fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Where the unified hierarchy is mounted on this machine.
fn unified_root() -> Result<Option<PathBuf>, RuntimeError> {
    const TABLE: &str = "/proc/self/mountinfo";
    let table = std::fs::read_to_string(TABLE).map_err(RuntimeError::system("reading", TABLE))?;
    Ok(table.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?;
        (after.split(' ').next()? == "cgroup2").then(|| PathBuf::from(point))
    }))
}
