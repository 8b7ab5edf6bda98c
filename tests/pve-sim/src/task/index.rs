//! The index of tasks: running, ended, and their logs.
//!
//! In: starts, log lines, ends. Out: lists and log pages. On disk: `index` (a line per ended task: name, end time, status; newest last,
//! the oldest dropped beyond a bound), `active` (names of running tasks) and one log file per task.
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::upid::Upid;

/// How many ended tasks are remembered; the real one rotates at about this many.
const REMEMBERED: usize = 5_000;

/// The request to a running task: to stop, or to die.
#[derive(Debug, Default)]
pub struct Goal(AtomicU8);

impl Goal {
    /// It shall stop and clean up.
    pub fn stop(&self) {
        let _ = self.0.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// It dies at once, without any cleanup.
    pub fn kill(&self) {
        self.0.store(2, Ordering::SeqCst);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 1
    }

    /// Whether it was killed.
    #[must_use]
    pub fn is_kill(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 2
    }
}

/// A task that ended.
#[derive(Debug, Clone)]
pub struct Ended {
    pub endtime: i64,
    /// `OK`, `WARNINGS: 1`, an error, `unexpected status`.
    pub status: String,
}

#[derive(Debug, Default)]
struct HeldTask {
    running: BTreeMap<String, Arc<Goal>>,
    ended: Vec<(String, Ended)>,
    /// What died in one moment, in the order in which it is remembered.
    died: Vec<String>,
}

#[derive(Debug)]
pub struct Tasks {
    dir: PathBuf,
    held: Mutex<HeldTask>,
}

impl Tasks {
    /// Opens the memory; what was running before is now ended with `unexpected status`.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn open(dir: &Path, now_s: i64) -> std::io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let text = |name: &str| match std::fs::read_to_string(dir.join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            other => other,
        };
        let mut ended: Vec<(String, Ended)> = text("index")?.lines().filter_map(read_line).collect();
        let lost: Vec<String> = text("active")?.lines().map(str::to_owned).collect();
        let tasks = Self { dir: dir.to_owned(), held: Mutex::default() };
        ended.extend(
            lost.into_iter()
                .map(|upid| (upid, Ended { endtime: now_s, status: "unexpected status".to_owned() })),
        );
        tasks.lock().ended = ended;
        tasks.save(&tasks.lock())?;
        Ok(tasks)
    }

    fn lock(&self) -> MutexGuard<'_, HeldTask> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self, held: &HeldTask) -> std::io::Result<()> {
        let first = held.ended.len().saturating_sub(REMEMBERED);
        let lines: String = held
            .ended
            .iter()
            .skip(first)
            .map(|(upid, ended)| format!("{upid} {:08X} {}\n", ended.endtime, ended.status))
            .collect();
        write_whole(&self.dir.join("index"), &lines)?;
        let active: String = held.running.keys().map(|upid| format!("{upid}\n")).collect();
        write_whole(&self.dir.join("active"), &active)
    }

    /// A task starts.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub fn start(&self, upid: &Upid) -> std::io::Result<Arc<Goal>> {
        let goal = Arc::new(Goal::default());
        let mut held = self.lock();
        std::fs::File::create(self.log_path(upid))?;
        held.running.insert(upid.to_string(), Arc::clone(&goal));
        self.save(&held)?;
        Ok(goal)
    }

    /// A task ends.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub fn end(&self, upid: &Upid, ended: Ended) -> std::io::Result<()> {
        let mut held = self.lock();
        let name = upid.to_string();
        held.running.remove(&name);
        let place = |name: &str| held.died.iter().position(|other| other == name);
        let own = place(&name);
        let before = |other: &str| own.is_some_and(|own| place(other).is_some_and(|other| other > own));
        let at = held.ended.iter().position(|(other, _)| before(other)).unwrap_or(held.ended.len());
        held.ended.insert(at, (name, ended));
        if held.ended.len() > REMEMBERED {
            held.ended.remove(0);
        }
        self.save(&held)
    }

    /// Puts a task that ended elsewhere into the memory, with its log.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub fn import(&self, upid: &Upid, ended: Ended, log: &[String]) -> std::io::Result<()> {
        write_whole(&self.log_path(upid), &log.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        let mut held = self.lock();
        let name = upid.to_string();
        // Among the others by its end, as if it had been there.
        let at =
            held.ended.iter().rposition(|(_, other)| other.endtime <= ended.endtime).map_or(0, |at| at + 1);
        held.ended.insert(at, (name, ended));
        self.save(&held)
    }

    /// Drops a task from the memory as if the index had been rotated away.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub fn forget(&self, upid: &Upid) -> std::io::Result<()> {
        let mut held = self.lock();
        let name = upid.to_string();
        held.ended.retain(|(known, _)| *known != name);
        let _ = std::fs::remove_file(self.log_path(upid));
        self.save(&held)
    }

    /// All that runs dies in this moment, as with the power. The oldest of them is remembered as the last.
    pub fn die(&self) {
        let mut held = self.lock();
        held.died = held.running.keys().rev().cloned().collect();
        held.running.values().for_each(|goal| goal.kill());
    }

    /// Ends a task without a trace.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub fn lose(&self, upid: &Upid) -> std::io::Result<()> {
        let mut held = self.lock();
        held.running.remove(&upid.to_string());
        let _ = std::fs::remove_file(self.log_path(upid));
        self.save(&held)
    }

    /// The request of a running task.
    #[must_use]
    pub fn running(&self, upid: &str) -> Option<Arc<Goal>> {
        self.lock().running.get(upid).cloned()
    }

    /// How a task ended.
    #[must_use]
    pub fn ended(&self, upid: &str) -> Option<Ended> {
        self.lock().ended.iter().rev().find(|(known, _)| known == upid).map(|(_, ended)| ended.clone())
    }

    /// Names of running tasks, then of ended ones, newest first.
    #[must_use]
    pub fn all(&self) -> (Vec<Upid>, Vec<(Upid, Ended)>) {
        let held = self.lock();
        let running = held.running.keys().rev().filter_map(|name| Upid::parse(name)).collect();
        let ended = held
            .ended
            .iter()
            .rev()
            .filter_map(|(name, ended)| Upid::parse(name).map(|upid| (upid, ended.clone())))
            .collect();
        (running, ended)
    }

    fn log_path(&self, upid: &Upid) -> PathBuf {
        // `>` and `@` are fine in a file name; a slash cannot be in a parsed name.
        self.dir.join(upid.to_string())
    }

    /// Adds a line to a log.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn append(&self, upid: &Upid, line: &str) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(self.log_path(upid))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// The whole log, or the system's reason why there is none.
    ///
    /// # Errors
    /// When there is no log.
    pub fn log(&self, upid: &Upid) -> std::io::Result<String> {
        std::fs::read_to_string(self.log_path(upid))
    }
}

fn read_line(line: &str) -> Option<(String, Ended)> {
    let mut parts = line.splitn(3, ' ');
    let (upid, endtime, status) = (parts.next()?, parts.next()?, parts.next()?);
    Some((
        upid.to_owned(),
        Ended { endtime: i64::from_str_radix(endtime, 16).ok()?, status: status.to_owned() },
    ))
}

/// Writes a file so that a crash leaves the old or the new one.
///
/// # Errors
/// When it cannot be written.
pub fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dies_in_one_moment_is_remembered_with_the_oldest_last() {
        let folder = tempfile::tempdir().expect("folder");
        let tasks = Tasks::open(folder.path(), 1).expect("a memory");
        let [first, second, third] = [1, 2, 3].map(|n| {
            let name = format!("UPID:pve1:0000000{n}:00000001:6B000000:vzdump:10{n}:root@pam:");
            let upid = Upid::parse(&name).expect("a name");
            tasks.start(&upid).expect("a start");
            upid
        });
        tasks.die();
        for upid in [&first, &third, &second] {
            let ended = Ended { endtime: 2, status: "unexpected status".to_owned() };
            tasks.end(upid, ended).expect("an end");
        }
        let listed: Vec<String> = tasks.all().1.into_iter().map(|(upid, _)| upid.id).collect();
        assert_eq!(listed, ["101", "102", "103"]);
    }
}
