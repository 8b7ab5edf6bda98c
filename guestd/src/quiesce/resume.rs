//! Resuming: starts all of the marker, in order, until it runs.
//!
//! It is the same for the process that stopped the stacks, for the timer, for the next start and for a person, and may
//! run twice. The marker is removed when all parts were seen running twice, without a failure in between. A program
//! that ends right after its start does not run, and a stop that was under way when its caller was killed may end after
//! our first check. Only the end needs a write: the removal of the marker. The start is recorded for the agent where
//! that is possible.

use std::time::Duration;

use holdfast_protocol::json::chain;
use holdfast_protocol::local::window::DownStack;
use tracing::{info, warn};

use super::lock::{self, Lock, LockResult};
use super::marker::{Marker, MarkerError};
use super::stack::{self, StartHistory};
use super::{release_outbox, timer};
use crate::backoff::Backoff;
use crate::failpoint::{Point, reached};
use crate::file;
use crate::paths::Paths;
use crate::program::{run_well, words};
use crate::watchdog;

/// A part that runs at two checks this far apart, without a failure in between, counts as running.
const SETTLE: Duration = Duration::from_secs(5);

/// How far apart two checks are when we stopped the parts ourselves, and cleanly. Release builds do not read the
/// variable.
pub fn settle() -> Duration {
    let shorter = std::env::var("GUESTD_SETTLE_MS").ok().filter(|_| cfg!(debug_assertions));
    shorter.and_then(|text| text.parse().ok()).map_or(SETTLE, Duration::from_millis)
}

/// How long the sentence for the agent may be.
const WHY_CHARS_MAX: usize = 500;

/// How often it is tried here; after that the next check, the timer or the next start continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries(pub u32);

/// The result of a resume.
#[derive(Debug, Default)]
pub struct ResumeReport {
    /// What does not run.
    pub down: Vec<DownStack>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Whether marker and timer are gone.
    pub cleared: Cleared,
}

/// Whether the marker is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleared {
    #[default]
    No,
    Yes,
}

/// Resumes. `heard` is called with what is down after each try.
pub async fn resume(
    paths: &Paths,
    marker: &Marker,
    held: Option<&Lock>,
    (settle, tries): (Duration, Tries),
    mut heard: impl FnMut(&[DownStack]),
) -> ResumeReport {
    release_outbox::note_start(paths, marker.window);
    let (mut starts, mut backoff, mut done) = (StartHistory::of_stopped(), Backoff::default(), 0_u32);
    let mut resumed = ResumeReport::default();
    loop {
        resumed.down = pass(paths, marker, &mut starts).await;
        heard(&resumed.down);
        done = done.saturating_add(1);
        if resumed.down.is_empty() {
            watchdog::within(settle);
            tokio::time::sleep(settle).await;
            resumed.down = pass(paths, marker, &mut starts).await;
            if resumed.down.is_empty() {
                break;
            }
        }
        if done >= tries.0 {
            return resumed;
        }
        tokio::time::sleep(backoff.next(u64::from(std::process::id()) * u64::from(done))).await;
    }
    reached(Point::AllStarted);
    heard(&[]);
    let Some(lock) = held else {
        resumed.notes.push("another process holds the lock: the marker stays".to_owned());
        return resumed;
    };
    resumed.notes.extend(hooks(marker).await);
    match clear(paths, marker, lock).await {
        Ok(notes) => {
            resumed.notes.extend(notes);
            resumed.cleared = Cleared::Yes;
        }
        Err(error) => resumed.notes.push(chain(&error)),
    }
    resumed
}

/// Starts everything once.
async fn pass(paths: &Paths, marker: &Marker, starts: &mut StartHistory) -> Vec<DownStack> {
    let mut down = Vec::new();
    for stack in &marker.stacks {
        if let Err(error) = stack::start(paths, stack, starts).await {
            let why: String = words(&chain(&error)).chars().take(WHY_CHARS_MAX).collect();
            warn!(stack = %stack.name, why, "stopped for a backup and not running");
            down.push(DownStack { stack: stack.name.clone(), why });
        }
        reached(Point::OneStarted);
    }
    down
}

/// Runs each hook once, when all of the stacks run; a kill between hook and marker makes it run twice. A hook that
/// fails is reported and blocks nothing.
async fn hooks(marker: &Marker) -> Vec<String> {
    let mut notes = Vec::new();
    for stack in &marker.stacks {
        let Some(argv) = &stack.post_resume else { continue };
        let call =
            stack::hook(argv, stack.name.as_str(), &stack.env, Duration::from_secs(stack.hook_limit_s));
        if let Err(error) = run_well(&call).await {
            notes.push(format!("the hook post_resume of stack {} failed: {}", stack.name, chain(&error)));
        }
    }
    notes
}

/// Removes marker, timer and program, in this order. The caller must hold the lock: another holder of the lock may
/// still stop something.
async fn clear(paths: &Paths, marker: &Marker, _turn: &Lock) -> Result<Vec<String>, MarkerError> {
    Marker::remove(paths)?;
    reached(Point::MarkerGone);
    lock::clear_resume_request(paths);
    info!(window = %marker.window, "all stopped stacks are running again");
    if let Err(error) = timer::disarm(&marker.timer).await {
        // It finds no marker, and its program is needed for that.
        return Ok(vec![format!("the timer could not be removed: {}", chain(&error))]);
    }
    reached(Point::TimerGone);
    let left = file::remove_durably(&timer::program_path(paths)).err();
    Ok(left.map(|error| chain(&error)).into_iter().collect())
}

/// How long to watch after a resume in place of another process: a stop that it began may end this late. After a reboot
/// none can.
pub fn settle_for_another(marker: &Marker, boot_id: Option<&str>) -> Duration {
    if boot_id != Some(marker.boot_id.as_str()) {
        return settle();
    }
    let longest = marker.stacks.iter().map(|stack| stack.stop_limit_s).max().unwrap_or(0);
    settle().max(Duration::from_secs(longest))
}

/// How a resume in place of another process ended.
#[derive(Debug)]
pub enum Recovery {
    /// There is no marker.
    Nothing,
    /// Another process resumes, and has time left.
    Others(Duration),
    /// It was done, as far as possible.
    Done(ResumeReport),
}

/// Why a resume in place of another process could not even begin.
pub type RecoverError = MarkerError;

/// The caller of the resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeCaller {
    /// Only once the bound passed.
    Timer,
    Now,
}

/// Resumes from a marker that another process wrote.
pub async fn recover(
    paths: &Paths,
    (asker, patience, tries): (ResumeCaller, Duration, Tries),
    heard: impl FnMut(&[DownStack]),
) -> Result<Recovery, RecoverError> {
    let Some(marker) = Marker::load(paths)? else { return Ok(Recovery::Nothing) };
    if let (ResumeCaller::Timer, super::marker::Bound::Left(left)) =
        (asker, super::stop::left(paths, &marker))
    {
        return Ok(Recovery::Others(left));
    }
    let lock = match lock::take_within(paths, patience).await {
        LockResult::Acquired(lock) => Some(lock),
        LockResult::Taken => None,
        LockResult::Unknown(why) => {
            warn!(why, "state of the quiesce lock is unknown");
            None
        }
    };
    // The process that held the lock may have resumed meanwhile.
    let Some(marker) = Marker::load(paths)? else { return Ok(Recovery::Nothing) };
    warn!(window = %marker.window, "resuming stacks that were left stopped");
    let boot_id = super::boot::id(paths).ok().flatten();
    let settle = settle_for_another(&marker, boot_id.as_deref());
    Ok(Recovery::Done(resume(paths, &marker, lock.as_ref(), (settle, tries), heard).await))
}
