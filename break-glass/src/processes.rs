//! The processes of a session.
//!
//! In: what a session noted of itself when it began, and the kernel's table of processes. Out: those that belong to it:
//! the noted ones, if they still are the same, everything that descends from them, and what is in their login session's
//! group. A process that left all of that is not found; a person who is root can do so, and the recording shows it.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper};
use serde::{Deserialize, Serialize};

/// More processes than a host has.
const PROCESSES_MAX: usize = 100_000;

/// Looks for what is left of a session, at most.
const PASSES: u32 = 8;

/// One process, by what no later one shares with it in the same boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessId {
    pub pid: i32,
    /// When it started, in ticks since the boot.
    pub start: u64,
}

/// A process of the kernel's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: ProcessId,
    pub parent: i32,
    pub is_dead: bool,
}

/// Reads `/proc/PID/stat`. The name in it may hold spaces and brackets.
#[must_use]
pub fn stat(text: &str) -> Option<Process> {
    let (head, tail) = text.rsplit_once(')')?;
    let pid = head.split(' ').next()?.parse().ok()?;
    let mut fields = tail.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    // The 22nd field, and the 4th was the last one read.
    let start = fields.nth(17)?.parse().ok()?;
    Some(Process { id: ProcessId { pid, start }, parent, is_dead })
}

/// The noted processes and everything that descends from them, without the dead.
#[must_use]
pub fn family(all: &[Process], noted: &[ProcessId], grouped: &BTreeSet<i32>) -> BTreeSet<ProcessId> {
    let is_noted = |one: &Process| noted.contains(&one.id) || grouped.contains(&one.id.pid);
    let mut found: BTreeSet<ProcessId> = all.iter().filter(|one| is_noted(one)).map(|one| one.id).collect();
    loop {
        let pids: BTreeSet<i32> = found.iter().map(|id| id.pid).collect();
        let before = found.len();
        found.extend(all.iter().filter(|one| pids.contains(&one.parent)).map(|one| one.id));
        if found.len() == before {
            let dead = |id: &ProcessId| all.iter().any(|one| one.id == *id && one.is_dead);
            return found.into_iter().filter(|id| !dead(id)).collect();
        }
    }
}

/// The group of a login session, from `/proc/PID/cgroup`: none where the process shares a group with others.
#[must_use]
pub fn login_group(text: &str) -> Option<String> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (_, last) = path.rsplit_once('/')?;
    let number = last.strip_prefix("session-")?.strip_suffix(".scope")?;
    let is_plain = path.starts_with('/') && !path.contains("..");
    (is_plain && !number.is_empty() && number.bytes().all(|b| b.is_ascii_alphanumeric()))
        .then(|| path.to_owned())
}

/// The kernel's table, as far as it can be read.
#[must_use]
pub fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().take(PROCESSES_MAX);
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(of).collect()
}

/// One process of it.
#[must_use]
pub fn of(pid: i32) -> Option<Process> {
    stat(&text(Path::new(&format!("/proc/{pid}/stat")))?)
}

/// The login session's group of this process.
#[must_use]
pub fn own_group() -> Option<String> {
    login_group(&text(Path::new("/proc/self/cgroup"))?)
}

fn members(group: Option<&str>) -> BTreeSet<i32> {
    let Some(group) = group else { return BTreeSet::new() };
    let listed = text(Path::new(&format!("/sys/fs/cgroup{group}/cgroup.procs"))).unwrap_or_default();
    listed.lines().filter_map(|line| line.parse().ok()).collect()
}

fn text(path: &Path) -> Option<String> {
    const BYTES_MAX: u64 = 1024 * 1024;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Ends a session: everything that belongs to it, again until nothing is left. Returns what is left.
#[must_use]
pub fn end(noted: &[ProcessId], group: Option<&str>) -> BTreeSet<ProcessId> {
    let mut left = BTreeSet::new();
    // A descendant of one that is gone has another parent: what was found once stays on the list.
    let mut known: Vec<ProcessId> = noted.to_vec();
    for _ in 0..PASSES {
        let table = all();
        // The group's name is used again only after a reboot; then no noted process is the same.
        let is_ours = known.iter().any(|id| table.iter().any(|one| one.id == *id));
        let grouped = if is_ours { members(group) } else { BTreeSet::new() };
        left = family(&table, &known, &grouped);
        if left.is_empty() {
            return left;
        }
        known.extend(&left);
        let killed: Vec<OwnedFd> = left.iter().filter_map(|id| kill(*id)).collect();
        killed.iter().for_each(wait);
    }
    left
}

/// Takes in what a session leaves behind: orphans become children of this process.
///
/// # Errors
/// The kernel's.
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Ends everything that descends from this process. Returns what is left.
#[must_use]
pub fn end_descendants(own: ProcessId) -> BTreeSet<ProcessId> {
    let mut left = BTreeSet::new();
    for _ in 0..PASSES {
        left = family(&all(), &[own], &BTreeSet::new());
        left.remove(&own);
        if left.is_empty() {
            return left;
        }
        let killed: Vec<OwnedFd> = left.iter().filter_map(|id| kill(*id)).collect();
        killed.iter().for_each(wait);
    }
    left
}

/// Kills a process, if it still is that one.
fn kill(id: ProcessId) -> Option<OwnedFd> {
    let held = pidfd_open(Pid::from_raw(id.pid)?, PidfdFlags::empty()).ok()?;
    // The descriptor holds on to one process; it is the noted one if that still has its start.
    if of(id.pid)?.id != id {
        return None;
    }
    pidfd_send_signal(&held, Signal::KILL).ok()?;
    Some(held)
}

/// Until it is dead, or for a second: one that hangs in the kernel is looked for again.
fn wait(held: &OwnedFd) {
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    // What is left is found by the next look at the table, whatever this says.
    let _looked = poll(&mut [PollFd::new(held, PollFlags::IN)], Some(&second));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, start: u64) -> Process {
        Process { id: ProcessId { pid, start }, parent, is_dead: false }
    }

    #[test]
    fn a_line_of_the_kernel_is_read_whatever_the_name_is() {
        let line = "812 (a) R 1 (b) S 700 812 812 34816 812 4194304 1 0 0 0 1 2 3 4 20 0 1 0 98765 1 2 3";
        assert_eq!(stat(line), Some(process(812, 700, 98_765)));
        assert!(stat(&line.replace(") S", ") Z")).unwrap().is_dead);
        for bad in ["", "812", "812 (a", "812 (a) S", "x (a) S 1 2 3"] {
            assert_eq!(stat(bad), None, "{bad}");
        }
        let own = of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(all().iter().any(|one| one.id == own.id) && !own.is_dead);
    }

    #[test]
    fn a_family_is_found_by_descent_and_by_start() {
        let all = [
            process(1, 0, 1),
            process(10, 1, 50),
            process(11, 10, 51),
            process(12, 11, 52),
            process(20, 1, 60),
        ];
        let ids = |list: &[i32]| list.iter().copied().collect::<BTreeSet<i32>>();
        let pids = |noted: &[ProcessId], grouped: &[i32]| {
            family(&all, noted, &ids(grouped)).into_iter().map(|id| id.pid).collect::<Vec<_>>()
        };
        assert_eq!(pids(&[ProcessId { pid: 10, start: 50 }], &[]), [10, 11, 12]);
        assert_eq!(pids(&[ProcessId { pid: 10, start: 49 }], &[]), [0_i32; 0], "another one with its number");
        assert_eq!(pids(&[ProcessId { pid: 10, start: 50 }], &[20]), [10, 11, 12, 20]);
    }

    #[test]
    fn only_the_group_of_a_login_is_ended() {
        let scope = "0::/user.slice/user-0.slice/session-5.scope\n";
        assert_eq!(login_group(scope).unwrap(), "/user.slice/user-0.slice/session-5.scope");
        for shared in [
            "0::/system.slice/ssh.service\n",
            "0::/\n",
            "0::/session-.scope\n",
            "1:x:/session-5.scope\n",
            "0::/../session-5.scope\n",
        ] {
            assert_eq!(login_group(shared), None, "{shared}");
        }
    }
}
