//! Tasks: following one, and finding a lost one.
//!
//! Input: task names and Proxmox's answers about them. Output: one of four outcomes. *Unknown* is never mapped to done
//! or failed: the caller reads the actual state. Even `Ok` is no proof: the caller reads back what the task should have
//! made. Deliberately absent: stopping a task because a caller waited too long.

use std::time::Duration;

use holdfast_protocol::id::Vmid;

use super::error::PveError;
use super::retry::Pace;
pub use super::task_result::{TaskEnd, TaskLog, TaskStatus};
use super::upid::Upid;
use super::{Pve, Role};

/// Why it is unknown how a task ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// The worker was killed.
    #[error("its worker died without a word")]
    WorkerDied,
    /// It stopped, and no exit status is recorded anywhere.
    #[error("it stopped without an exit status")]
    Silent,
    /// Proxmox does not know it (any more), as after a reboot of the node.
    #[error("Proxmox does not know it")]
    Vanished,
    /// It still ran when our patience ended.
    #[error("it still ran after {after_s} s")]
    StillRunning {
        /// How long we waited.
        after_s: u64,
    },
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// Proxmox says OK.
    Ok,
    /// Proxmox says OK, with this number of warnings in the log.
    Warnings(u32),
    /// Proxmox says it failed, and why.
    Failed(String),
    /// Unknown: the actual state must be read.
    Unknown(Unclear),
}

impl From<TaskEnd> for TaskOutcome {
    fn from(end: TaskEnd) -> Self {
        match end {
            TaskEnd::Ok => Self::Ok,
            TaskEnd::Warnings(count) => Self::Warnings(count),
            TaskEnd::Failed(text) => Self::Failed(text),
            TaskEnd::Unexpected => Self::Unknown(Unclear::WorkerDied),
        }
    }
}

/// Which lines of a log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogWindow {
    /// The first, from 0.
    pub start: u64,
    /// How many at most.
    pub limit: u64,
}

/// The kinds of task we start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    Restore,
    Start,
    Stop,
    Shutdown,
    Resize,
    Destroy,
    Backup,
    /// The making of a snapshot.
    Snapshot,
    /// The removal of a snapshot.
    RemoveSnapshot,
    RollBack,
    /// The removal of a backup. Its task is named after guest and storage.
    RemoveBackup,
    /// The handing over of a volume. Its task is named after both guests, the one that gives first.
    MoveVolume,
}

impl TaskKind {
    /// As Proxmox names it in a task's name.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Restore => "vzrestore",
            Self::Start => "vzstart",
            Self::Stop => "vzstop",
            Self::Shutdown => "vzshutdown",
            Self::Resize => "resize",
            Self::Destroy => "vzdestroy",
            Self::Backup => "vzdump",
            Self::Snapshot => "vzsnapshot",
            Self::RemoveSnapshot => "vzdelsnapshot",
            Self::RollBack => "vzrollback",
            Self::RemoveBackup => "imgdel",
            Self::MoveVolume => "move_volume",
        }
    }
}

/// Which tasks to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskQuery {
    /// For this guest.
    pub vmid: Vmid,
    /// Of this kind.
    pub kind: TaskKind,
    /// Started with this role's token, and no other.
    pub role: Role,
    /// Started at or after, by the node's clock: the moment of the intent.
    pub since_epoch_s: u64,
}

impl TaskQuery {
    /// One guest's tasks of one kind since one moment are few; more than this many is a fault somewhere.
    pub(super) const ROWS_MAX: u32 = 500;
}

/// How patiently a task is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The first pause between two reads; it grows to [`Patience::pause_max`].
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// A task just started may not be listed yet: so long that is no reason to worry.
    pub appear_max: Duration,
    /// After this the outcome is unknown and the task runs on. Without it the task is followed to its end.
    pub total_max: Option<Duration>,
    /// The number of reads in a row that may fail before the error is passed on.
    pub failures_max: u32,
}

impl Patience {
    /// Reads five times a second at first, every two seconds later.
    #[must_use]
    pub const fn up_to(total_max: Duration) -> Self {
        Self { total_max: Some(total_max), ..Self::to_its_end() }
    }

    /// Patience for as long as Proxmox says that the task runs.
    #[must_use]
    pub const fn to_its_end() -> Self {
        Self {
            pause_min: Duration::from_millis(200),
            pause_max: Duration::from_secs(2),
            appear_max: Duration::from_secs(30),
            total_max: None,
            failures_max: 10,
        }
    }
}

/// The most log lines in one read; the rest comes with the next.
const LINES_MAX: u64 = 500;

/// Follows a task to its end with the token that started it, passing on each new line of its log.
///
/// # Errors
/// When more than [`Patience::failures_max`] reads in a row fail. The task itself goes on.
pub async fn follow_task(
    pve: &dyn Pve,
    pace: &dyn Pace,
    upid: &Upid,
    patience: Patience,
    on_line: &mut (dyn FnMut(&str) + Send),
) -> Result<TaskOutcome, PveError> {
    let began = pace.now();
    let mut pause = patience.pause_min;
    let mut failures = 0;
    let mut line = 0;
    let mut appeared = false;
    loop {
        // The status is read first and the log after it, so that the log of an ended task is complete.
        let status = pve.task_status(upid).await;
        let waited = pace.now().saturating_sub(began);
        appeared |= status.is_ok();
        let end = match status {
            Ok(TaskStatus::Running) => None,
            Ok(TaskStatus::Ended(end)) => Some(TaskOutcome::from(end)),
            Ok(TaskStatus::StoppedSilently) => Some(TaskOutcome::Unknown(Unclear::Silent)),
            Err(PveError::NoSuchTask) if !appeared && waited < patience.appear_max => None,
            Err(PveError::NoSuchTask) => return Ok(TaskOutcome::Unknown(Unclear::Vanished)),
            Err(error) => {
                failures += 1;
                if failures >= patience.failures_max || !is_passing(&error) {
                    return Err(error);
                }
                sleep(pace, &mut pause, patience).await;
                continue;
            }
        };
        failures = 0;
        if appeared {
            // A log that cannot be read now costs lines on a screen, never the outcome.
            line = read_lines(pve, upid, line, on_line).await.unwrap_or(line);
        }
        match end {
            Some(outcome) => return Ok(outcome),
            None if patience.total_max.is_some_and(|most| waited >= most) => {
                return Ok(TaskOutcome::Unknown(Unclear::StillRunning { after_s: waited.as_secs() }));
            }
            None => sleep(pace, &mut pause, patience).await,
        }
    }
}

/// Reading is harmless, so every error but a refusal is worth another try.
fn is_passing(error: &PveError) -> bool {
    error.may_have_happened() || matches!(error, PveError::Unreachable { .. } | PveError::NotReady { .. })
}

/// Each pause by the one before. An end is noticed late by a fifth of the task's time at most, and backups wait for each
/// other: by half as much again each, a hundred small backups took a minute longer.
const GROWTH: f32 = 1.2;

async fn sleep(pace: &dyn Pace, pause: &mut Duration, patience: Patience) {
    pace.sleep(*pause).await;
    *pause = pause.mul_f32(GROWTH).min(patience.pause_max);
}

async fn read_lines(
    pve: &dyn Pve,
    upid: &Upid,
    mut line: u64,
    on_line: &mut (dyn FnMut(&str) + Send),
) -> Result<u64, PveError> {
    let log = pve.task_log(upid, LogWindow { start: line, limit: LINES_MAX }).await?;
    for text in &log.lines {
        on_line(text);
        line += 1;
    }
    Ok(line)
}
