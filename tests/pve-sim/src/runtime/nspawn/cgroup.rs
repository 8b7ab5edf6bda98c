//! The control group of a guest.
//!
//! The guest's init outlives an nspawn that was killed; its control group is the one thing that holds all of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::runtime::error::RuntimeError;

/// The processes are killed at once; the kernel only has to reap them.
const BURIAL_PATIENCE: Duration = Duration::from_secs(10);
/// The kernel reports when a group becomes empty. The group is also checked at this interval, in case a report is missed.
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

/// Freezes every process in a group; returns whether all of them were frozen within `patience`. A group that does not
/// exist has no processes.
pub(super) fn freeze(name: &str, patience: Duration) -> Result<bool, RuntimeError> {
    let Some(root) = unified_root()? else { return Ok(true) };
    let group = root.join(name);
    let failed = || RuntimeError::system("freezing the control group", &group);
    if !write_if_there(&group.join("cgroup.freeze"), "1").map_err(failed())? {
        return Ok(true);
    }
    let deadline = Instant::now() + patience;
    loop {
        let events = std::fs::read_to_string(group.join("cgroup.events")).map_err(failed())?;
        if events.lines().any(|line| line == "frozen 1") {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        wait_for_change(&group).map_err(failed())?;
    }
}

/// Lets every process in a group continue.
pub(super) fn thaw(name: &str) -> Result<(), RuntimeError> {
    let Some(root) = unified_root()? else { return Ok(()) };
    let group = root.join(name);
    let failed = RuntimeError::system("thawing the control group", &group);
    write_if_there(&group.join("cgroup.freeze"), "0").map(drop).map_err(failed)
}

/// Returns whether the file was there.
fn write_if_there(path: &Path, text: &str) -> io::Result<bool> {
    match std::fs::write(path, text) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until the group becomes empty, frozen or the reverse, for a moment at most.
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
pub(super) fn unified_root() -> Result<Option<PathBuf>, RuntimeError> {
    const TABLE: &str = "/proc/self/mountinfo";
    let table = std::fs::read_to_string(TABLE).map_err(RuntimeError::system("reading", TABLE))?;
    Ok(table.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?;
        (after.split(' ').next()? == "cgroup2").then(|| PathBuf::from(point))
    }))
}
