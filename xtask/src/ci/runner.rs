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

use super::cpu;
use super::part::{Part, Priority};
use super::pick::{Entry, State, give_up, next};
use crate::workspace::{program, target};

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often it is said what is under way.
    heartbeat: Duration,
    /// The time between the signal to end and the one to die.
    grace: Duration,
    /// The whole run ends after this time and lists the parts that were not reached, rather than being cut off by its
    /// caller.
    whole: Duration,
}

impl Limits {
    /// Those of CI.
    pub const CI: Self = Self {
        heartbeat: Duration::from_secs(60),
        grace: Duration::from_secs(15),
        whole: Duration::from_secs(80 * 60),
    };
}

/// How many of the last lines are shown of an endless log.
const LAST_LINES: usize = 60;

/// How a part ended.
pub struct Ended {
    pub part: &'static Part,
    /// Passed, failed or not reached.
    pub state: State,
    /// How long it ran.
    pub took: Duration,
    /// How long cores worked for it: its own time and that of every process that it waited for.
    pub cpu: Duration,
    /// What was wrong, in a sentence.
    pub why: Option<String>,
}

/// A part under way.
struct Running {
    place: usize,
    group: Pid,
    since: Instant,
    log: PathBuf,
    /// Set once the end signal was sent: the reason, and when it is killed.
    ending: Option<(String, Instant)>,
}

/// One child has ended.
struct PartResult {
    place: usize,
    status: std::io::Result<ExitStatus>,
}

/// The log of a part.
pub fn log_of(part: &Part) -> PathBuf {
    target().join("ci").join(format!("{}.log", part.name))
}

/// Runs them all, each by this very program.
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
    run_by(me, parts, began, Limits::CI)
}

/// Runs them all by this program, which is called with `part NAME`.
fn run_by(me: PathBuf, parts: &[&'static Part], began: Instant, limits: Limits) -> Result<Vec<Ended>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut shop = Shop {
        me,
        entries: parts.iter().map(|part| Entry { part, state: State::Waiting }).collect(),
        running: Vec::new(),
        ended: Vec::new(),
        cpu: cpu::of_children(),
        capacity: u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(2).saturating_add(1),
        began,
        limits,
    };
    // The channel has room for one message per part, so no sender blocks.
    let (done, ends) = sync_channel(parts.len().max(1));
    shop.work(&done, &ends)?;
    for entry in shop.entries.iter().filter(|entry| matches!(entry.state, State::Waiting | State::NotReached))
    {
        let why = Some("not reached".to_owned());
        let (took, cpu) = (Duration::ZERO, Duration::ZERO);
        shop.ended.push(Ended { part: entry.part, state: State::NotReached, took, cpu, why });
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
    /// What all parts that have ended used.
    cpu: Duration,
    capacity: u32,
    began: Instant,
    limits: Limits,
}

impl Shop {
    fn work(&mut self, done: &SyncSender<PartResult>, ends: &Receiver<PartResult>) -> Result<()> {
        let mut beat = Instant::now() + self.limits.heartbeat;
        loop {
            let late = self.began.elapsed() >= self.limits.whole;
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
                self.report_beat();
                beat = now + self.limits.heartbeat;
            }
            self.end_the_late(now, late);
            match ends.recv_timeout(self.until_next(now, beat)) {
                Ok(done) => self.ended(done),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn start(&mut self, place: usize, done: SyncSender<PartResult>) -> Result<()> {
        let Some(entry) = self.entries.get_mut(place) else { return Ok(()) };
        let part = entry.part;
        println!("{} {} begins: {}", clock(self.began), part.name, part.shows);
        let log = log_of(part);
        let mut child = child(&self.me, part, &log)?;
        entry.state = State::Running;
        let group = Pid::from_child(&child);
        self.running.push(Running { place, group, since: Instant::now(), log, ending: None });
        // The channel has room for every part, and outlives them.
        std::thread::spawn(move || drop(done.send(PartResult { place, status: child.wait() })));
        Ok(())
    }

    /// Prints what is under way, so that a long silence does not look like a hang.
    fn report_beat(&self) {
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
        let Limits { whole, grace, .. } = self.limits;
        for one in &mut self.running {
            let Some(entry) = self.entries.get(one.place) else { continue };
            let limit = entry.part.limit;
            match &one.ending {
                None if late || one.since.elapsed() >= limit => {
                    let minutes = if late { whole } else { limit }.as_secs() / 60;
                    let of = if late { "the whole run" } else { "this part" };
                    let why = format!("stopped: {of} has a limit of {minutes} minutes");
                    signal(one.group, Signal::TERM);
                    one.ending = Some((why, now + grace));
                }
                Some((_, kill)) if now >= *kill => signal(one.group, Signal::KILL),
                _ => {}
            }
        }
    }

    /// How long nothing has to be done.
    fn until_next(&self, now: Instant, beat: Instant) -> Duration {
        let mut next = beat.min(self.began + self.limits.whole);
        for one in &self.running {
            let limit = self.entries.get(one.place).map_or(self.limits.whole, |entry| entry.part.limit);
            let at = one.ending.as_ref().map_or(one.since + limit, |(_, kill)| *kill);
            next = next.min(at);
        }
        // After a moment that has passed, it is checked once a second.
        next.saturating_duration_since(now).max(Duration::from_secs(1))
    }

    fn ended(&mut self, done: PartResult) {
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
        let all = cpu::of_children();
        let cpu = all.saturating_sub(std::mem::replace(&mut self.cpu, all));
        show(entry.part, &one.log, why.as_deref(), took, self.began);
        self.ended.push(Ended { part: entry.part, state: entry.state, took, cpu, why });
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
        Priority::Idle => {
            let mut idle = program("chrt");
            idle.args(["--idle", "0"]).arg(me);
            idle
        }
    };
    if part.after.contains(&"programs") || part.after.contains(&"package") {
        command.env(super::built::BUILT, "1");
    }
    command.args(["part", part.name]).process_group(0).stdin(Stdio::null());
    command.stdout(file.try_clone()?).stderr(file);
    command.spawn().with_context(|| format!("cannot start {}", part.name))
}

/// Sends the signal. An error means that the group has already ended.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::part::{Root, Suite};

    /// A part that never ends by itself, nor on a signal to end.
    const STUBBORN: Part = Part {
        name: "runner-test-stubborn",
        suite: Suite::Check,
        shows: "nothing",
        root: Root::NotNeeded,
        after: &[],
        load: 1,
        uses: None,
        priority: Priority::Usual,
        limit: Duration::from_secs(3_600),
        run: || Ok(()),
    };
    static NEVER_ENDS: Part = STUBBORN;
    static HAS_NO_TIME: Part = Part { name: "runner-test-no-time", limit: Duration::ZERO, ..STUBBORN };
    static COMES_AFTER: Part = Part {
        name: "runner-test-after",
        after: &["runner-test-stubborn", "runner-test-no-time"],
        ..STUBBORN
    };

    const AT_ONCE: Limits = Limits { grace: Duration::ZERO, ..Limits::CI };

    /// A program that starts another and ignores the signal to end; it says its group in `group`.
    fn stubborn(folder: &Path) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join("stubborn");
        let group = folder.join("group");
        let text = format!(
            "#!/bin/sh\ntrap '' TERM\necho $$ > {0}.new && mv {0}.new {0}\nsleep 3600 &\nwait\nwait\n",
            group.display()
        );
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn run(parts: &[&'static Part], began: Instant, limits: Limits) -> (Vec<Ended>, Option<Pid>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(target().join("ci")).unwrap();
        let ended = run_by(stubborn(folder.path()), parts, began, limits).unwrap();
        let group = std::fs::read_to_string(folder.path().join("group")).ok();
        (ended, group.and_then(|text| Pid::from_raw(text.trim().parse().unwrap())))
    }

    /// The processes of a group that live: state and group follow the name in `/proc/PID/stat`.
    fn living(group: Pid) -> Vec<String> {
        let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        let is_of = |line: &String| {
            let mut fields = line.rsplit(')').next().unwrap().split_whitespace();
            let (state, of) = (fields.next(), fields.nth(1));
            state != Some("Z") && of == Some(&group.as_raw_nonzero().to_string())
        };
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| stat(entry.unwrap())).filter(is_of).collect()
    }

    fn nothing_is_left_of(group: Option<Pid>) {
        // It may have been ended before it could print its group; then there is nothing to check.
        let Some(group) = group else { return };
        let deadline = Instant::now() + Duration::from_secs(30);
        // Who was killed needs a moment to be gone.
        while !living(group).is_empty() {
            assert!(Instant::now() < deadline, "{:?} live on", living(group));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_part_past_its_limit_is_ended_with_all_that_it_started_and_what_needs_it_is_not_reached() {
        let (ended, group) = run(&[&HAS_NO_TIME, &COMES_AFTER], Instant::now(), AT_ONCE);
        let said: Vec<_> =
            ended.iter().map(|one| (one.part.name, one.state, one.why.clone().unwrap())).collect();
        assert_eq!(said[0].1, State::Failed);
        assert!(said[0].2.contains("this part has a limit of 0 minutes"), "{said:?}");
        assert_eq!((said[1].0, said[1].1), ("runner-test-after", State::NotReached));
        nothing_is_left_of(group);
    }

    #[test]
    fn the_whole_run_past_its_limit_is_red_and_names_what_was_not_reached() {
        let limits = Limits { whole: Duration::from_secs(1), ..AT_ONCE };
        let (ended, group) = run(&[&NEVER_ENDS, &COMES_AFTER], Instant::now(), limits);
        assert_eq!(ended.iter().map(|one| one.state).collect::<Vec<_>>(), [State::Failed, State::NotReached]);
        assert!(ended[0].why.as_ref().unwrap().contains("the whole run has a limit"), "{:?}", ended[0].why);
        nothing_is_left_of(group);
    }

    #[test]
    fn nothing_is_started_once_the_whole_run_is_over() {
        let limits = Limits { whole: Duration::ZERO, ..AT_ONCE };
        let (ended, group) = run(&[&NEVER_ENDS], Instant::now(), limits);
        assert_eq!(ended.iter().map(|one| one.state).collect::<Vec<_>>(), [State::NotReached]);
        assert!(group.is_none());
    }
}
