//! A record of a started process, for later cleanup.
//!
//! By then a process number alone may belong to another process; together with the start time it cannot.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// SIGKILL acts at once; longer than this means that the process hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Which process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessMark {
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessMark {
    /// The mark of a process that was not reaped yet.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).map_err(|_large| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (_, start_ticks) = state_and_start(pid)?;
        Ok(Self { pid, start_ticks })
    }

    /// Whether the very process still runs. A zombie does not.
    pub(super) fn is_alive(self) -> bool {
        state_and_start(self.pid)
            .is_ok_and(|(state, start_ticks)| start_ticks == self.start_ticks && !matches!(state, 'Z' | 'X'))
    }

    /// Kills the process and its group, and waits until it is gone.
    pub(super) fn kill(self) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::SRCH) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        // Checked after the descriptor is open: from here on the number cannot pass to another process unnoticed.
        if !self.is_alive() {
            return Ok(());
        }
        match kill_process_group(pid, Signal::KILL)
            .or_else(|_no_group| pidfd_send_signal(&descriptor, Signal::KILL))
        {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
        let patience =
            Timespec::try_from(KILL_PATIENCE).map_err(|_range| io::Error::from(io::ErrorKind::Other))?;
        let ready = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&patience))?;
        if ready == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Writes the record.
    pub(super) fn write(self, path: &Path) -> io::Result<()> {
        std::fs::write(path, serde_json::to_vec(&self)?)
    }

    /// Reads a record; nothing when there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Writes the record of a child that was just started. If that fails, the child is ended at once: no later run could
/// find and end a child without a record.
pub(super) fn recorded(mut child: Child, record: &Path) -> io::Result<Child> {
    if let Err(error) = ProcessMark::of(child.id()).and_then(|mark| mark.write(record)) {
        child.kill()?;
        child.wait()?;
        return Err(error);
    }
    Ok(child)
}

/// Ends every process that is on record in a directory, and forgets it.
pub(super) fn end_all_on_record(directory: &Path) -> io::Result<()> {
    for record in records(directory)? {
        if let Some(mark) = ProcessMark::read(&record)? {
            mark.kill()?;
        }
        forget(&record)?;
    }
    Ok(())
}

/// The guests that have a record in a directory: `VMID.pid`.
pub(super) fn guests_on_record(directory: &Path) -> io::Result<Vec<u32>> {
    let vmid =
        |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
    Ok(records(directory)?.iter().filter_map(vmid).collect())
}

/// Removes a record; none is fine.
pub(super) fn forget(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The records in a directory.
fn records(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "pid") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Fields 3 and 22 of `/proc/PID/stat`; the name in field 2 may hold anything, so counting starts after its closing
/// bracket.
fn state_and_start(pid: i32) -> io::Result<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let odd = || io::Error::from(io::ErrorKind::InvalidData);
    let (_, after_name) = text.rsplit_once(')').ok_or_else(odd)?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next().and_then(|field| field.chars().next()).ok_or_else(odd)?;
    let start = fields.nth(18).and_then(|field| field.parse().ok()).ok_or_else(odd)?;
    Ok((state, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_fits_one_process_only() {
        let own = ProcessMark::of(std::process::id()).expect("this process");
        assert!(own.is_alive());
        let reused = ProcessMark { start_ticks: own.start_ticks + 1, ..own };
        assert!(!reused.is_alive());
        // Without the check of the start time, this would end the test itself.
        reused.kill().expect("nothing to do");
    }

    #[test]
    fn a_record_is_read_back_and_forgotten() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("7.pid");
        let own = ProcessMark::of(std::process::id()).expect("this process");
        own.write(&path).expect("written");
        assert_eq!(records(folder.path()).expect("listed"), std::slice::from_ref(&path));
        assert_eq!(ProcessMark::read(&path).expect("read"), Some(own));
        forget(&path).expect("forgotten");
        forget(&path).expect("forgotten twice");
        assert_eq!(ProcessMark::read(&path).expect("read"), None);
    }
}
