//! The runner of CI's parts, with logs, limits and a heartbeat.
//!
//! In: the wanted parts. Out: how each ended. A part is this program again (`cargo xtask part NAME`) in a process group of
//! its own, so that one that takes too long can be ended with all that it started. Deliberately absent: what a part does.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::part::{Part, Priority};
use super::pick::{Entry, State, give_up, next};
use crate::workspace::{program, target};

/// How often it is said what is under way.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// The time between the signal to end and the one to die.
const GRACE: Duration = Duration::from_secs(15);

/// Everything ends after this time, with what was not reached, rather than being cut off by whoever called.
const WHOLE: Duration = Duration::from_secs(80 * 60);

/// Of a log without an end, so many last lines are shown.
const LAST_LINES: usize = 60;

/// How a part ended.
pub struct Ended {
    /// The part.
    pub part: &'static Part,
    /// Passed, failed or not reached.
    pub state: State,
    /// How long it ran.
    pub took: Duration,
    /// What was wrong, in a sentence.
    pub why: Option<String>,
}

/// A part under way.
struct Running {
    place: usize,
    group: Pid,
    since: Instant,
    log: PathBuf,
    /// Set once it was told to end: the reason, and when it is killed.
    ending: Option<(String, Instant)>,
}

/// One child has ended.
struct Done {
    place: usize,
    status: std::io::Result<ExitStatus>,
}

/// The log of a part.
pub fn log_of(part: &Part) -> PathBuf {
    target().join("ci").join(format!("{}.log", part.name))
}

/// Runs them all.
pub fn run_all(parts: &[&'static Part], began: Instant) -> Result<Vec<Ended>> {
    let folder = target().join("ci");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // The build replaces this very program while it runs; parts are started from a copy that stays.
    let me = folder.join("cargo-ci");
    // A copy that is still running elsewhere could not be written to.
    if me.exists() {
        std::fs::remove_file(&me).with_context(|| format!("cannot replace {}", me.display()))?;
    }
    std::fs::copy("/proc/self/exe", &me).with_context(|| format!("cannot make {}", me.display()))?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut shop = Shop {
        me,
        entries: parts.iter().map(|part| Entry { part, state: State::Waiting }).collect(),
        running: Vec::new(),
        ended: Vec::new(),
        capacity: u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(2).saturating_add(1),
        began,
    };
    // As many messages as there are parts: nobody waits to send one.
    let (done, ends) = sync_channel(parts.len().max(1));
    shop.work(&done, &ends)?;
    for entry in shop.entries.iter().filter(|entry| matches!(entry.state, State::Waiting | State::NotReached))
    {
        let why = Some("not reached".to_owned());
        shop.ended.push(Ended { part: entry.part, state: State::NotReached, took: Duration::ZERO, why });
    }
    Ok(shop.ended)
}

/// The parts and what is under way.
struct Shop {
    /// The program that runs a part.
    me: PathBuf,
    entries: Vec<Entry>,
    running: Vec<Running>,
    ended: Vec<Ended>,
    capacity: u32,
    began: Instant,
}

impl Shop {
    fn work(&mut self, done: &SyncSender<Done>, ends: &Receiver<Done>) -> Result<()> {
        let mut beat = Instant::now() + HEARTBEAT;
        loop {
            let late = self.began.elapsed() >= WHOLE;
            give_up(&mut self.entries);
            if !late {
                for place in next(&self.entries, self.capacity) {
                    self.start(place, done.clone())?;
                }
            }
            if self.running.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            if now >= beat {
                self.tell_beat();
                beat = now + HEARTBEAT;
            }
            self.end_the_late(now, late);
            match ends.recv_timeout(self.until_next(now, beat)) {
                Ok(done) => self.ended(done),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn start(&mut self, place: usize, done: SyncSender<Done>) -> Result<()> {
        let Some(entry) = self.entries.get_mut(place) else { return Ok(()) };
        let part = entry.part;
        println!("{} {} begins: {}", clock(self.began), part.name, part.shows);
        let log = log_of(part);
        let mut child = child(&self.me, part, &log)?;
        entry.state = State::Running;
        let group = Pid::from_child(&child);
        self.running.push(Running { place, group, since: Instant::now(), log, ending: None });
        // The channel has room for every part, and outlives them.
        std::thread::spawn(move || drop(done.send(Done { place, status: child.wait() })));
        Ok(())
    }

    /// Says what is under way, so that a quiet hour looks different from a hang.
    fn tell_beat(&self) {
        let all: Vec<String> = self
            .running
            .iter()
            .filter_map(|one| Some((one, self.entries.get(one.place)?)))
            .map(|(one, entry)| {
                let last = last_lines(&one.log, 1).pop().unwrap_or_default();
                let last: String = last.chars().take(80).collect();
                format!("{} {} s ({last})", entry.part.name, one.since.elapsed().as_secs())
            })
            .collect();
        println!("{} under way: {}", clock(self.began), all.join("; "));
    }

    /// Ends what is past its limit, and everything when the whole is.
    fn end_the_late(&mut self, now: Instant, late: bool) {
        for one in &mut self.running {
            let Some(entry) = self.entries.get(one.place) else { continue };
            let limit = entry.part.limit;
            match &one.ending {
                None if late || one.since.elapsed() >= limit => {
                    let minutes = if late { WHOLE.as_secs() / 60 } else { limit.as_secs() / 60 };
                    let of = if late { "the whole run" } else { "this part" };
                    let why = format!("stopped: {of} has a limit of {minutes} minutes");
                    signal(one.group, Signal::TERM);
                    one.ending = Some((why, now + GRACE));
                }
                Some((_, kill)) if now >= *kill => signal(one.group, Signal::KILL),
                _ => {}
            }
        }
    }

    /// How long nothing has to be done.
    fn until_next(&self, now: Instant, beat: Instant) -> Duration {
        let mut next = beat.min(self.began + WHOLE);
        for one in &self.running {
            let limit = self.entries.get(one.place).map_or(WHOLE, |entry| entry.part.limit);
            let at = one.ending.as_ref().map_or(one.since + limit, |(_, kill)| *kill);
            next = next.min(at);
        }
        // Past a moment that was seen to, it is looked at once a second.
        next.saturating_duration_since(now).max(Duration::from_secs(1))
    }

    fn ended(&mut self, done: Done) {
        let Some(at) = self.running.iter().position(|one| one.place == done.place) else { return };
        let one = self.running.swap_remove(at);
        let Some(entry) = self.entries.get_mut(one.place) else { return };
        let passed = one.ending.is_none() && done.status.as_ref().is_ok_and(ExitStatus::success);
        entry.state = if passed { State::Passed } else { State::Failed };
        let why = match (one.ending, done.status) {
            (Some((why, _)), _) => Some(why),
            (None, Ok(status)) if status.success() => None,
            (None, Ok(status)) => Some(format!("ended with {status}")),
            (None, Err(error)) => Some(format!("cannot be waited for: {error}")),
        };
        let took = one.since.elapsed();
        show(entry.part, &one.log, why.as_deref(), took, self.began);
        self.ended.push(Ended { part: entry.part, state: entry.state, took, why });
    }
}

/// This program again, for one part.
fn child(me: &Path, part: &Part, log: &Path) -> Result<Child> {
    let file = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
    let mut command = match part.priority {
        Priority::Usual => program(me),
        Priority::Low => {
            let mut nice = program("nice");
            nice.args(["-n", "10"]).arg(me);
            nice
        }
    };
    if part.after.contains(&"programs") || part.after.contains(&"package") {
        command.env(super::built::BUILT, "1");
    }
    command.args(["part", part.name]).process_group(0).stdin(Stdio::null());
    command.stdout(file.try_clone()?).stderr(file);
    command.spawn().with_context(|| format!("cannot start {}", part.name))
}

/// A group that has ended has nobody to hear it.
fn signal(group: Pid, signal: Signal) {
    let _gone = kill_process_group(group, signal);
}

/// Prints a part's end: its whole log when it passed, its last lines first when it did not.
fn show(part: &Part, log: &Path, why: Option<&str>, took: Duration, began: Instant) {
    let seconds = took.as_secs_f32();
    let verdict = why.map_or_else(|| "passed".to_owned(), |why| format!("FAILED ({why})"));
    println!("\n=== {} — {verdict} after {seconds:.1} s, at {}", part.name, clock(began));
    let lines = last_lines(log, usize::MAX);
    for line in &lines {
        println!("{line}");
    }
    if why.is_some() {
        println!("--- the last lines of {}:", part.name);
        for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
            println!("{line}");
        }
    }
    println!("=== end of {}\n", part.name);
}

/// The last lines that say something.
fn last_lines(log: &Path, count: usize) -> Vec<String> {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(count)).map(|line| (*line).to_owned()).collect()
}

/// Minutes and seconds since the beginning.
fn clock(began: Instant) -> String {
    let seconds = began.elapsed().as_secs();
    format!("[{:02}:{:02}]", seconds / 60, seconds % 60)
}
