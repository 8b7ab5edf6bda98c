//! Steps of a quiesce window.
//!
//! ```text
//! grant ─▶ wait for `quiesced` ─▶ say that the backup begins ─▶ backup, its log read ─▶ wait for `released`
//!              └─ bound passed, or released: the backup is taken all the same, and its label says why it is a crash's
//!              └─ given up: nothing is taken
//! ```
//! Proxmox runs one backup job at a time on a node. Our own jobs wait for each other before their grants (`heavy`).
//! While a job of another owner runs, no window is granted. If our job meets one all the same, the window ends at once
//! and its task is stopped before it has begun. So no guest's programs are stopped for another guest's copy.
//!
//! In: the window's row, woken by the store. Out: what the agent observed, written before it is reported. The bound is
//! the window's own, on the clock that runs through suspend. Waits are short enough that a suspend costs at most one of
//! them. Deliberately absent: which phase may follow which (`operation::window`), and taking the backup
//! (`step_backup`).

use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::local::window::WindowPhase;
use tokio::sync::watch;

use super::context::{Context, Started, StepOutput};
use super::identity::{free_config, vmid};
use super::trouble::{StepError, StepRecovery};
use crate::operation::Operation;
use crate::operation::log::Finding;
use crate::operation::window::{Window, WindowEvent};
use crate::port::clock::{ClockPace, Pause};
use crate::port::pve::read::Power;
use crate::port::pve::task::{Patience, TaskOutcome};
use crate::port::pve::{LogWindow, Pace, PveError, Snapshot, Upid, follow_task};
use crate::port::store::window::{Moment, SayError};

/// The longest time between two checks: a timer does not count while the host sleeps, the bound does.
const LOOK: Duration = Duration::from_secs(20);

/// While programs are stopped, the log of their backup is read at least this often.
const LOG_LOOK: Duration = Duration::from_millis(500);

/// And the guest itself, by its snapshots and its lock, so often.
const LOCK_LOOK: Duration = Duration::from_secs(5);

/// A log that waits has one line.
const LINES: u64 = 50;

/// What was seen and could not be written is written again after this.
const WRITE_AGAIN: Duration = Duration::from_secs(2);

/// What a window does not wait for.
const OTHER_JOB: &str = "another backup job holds this node's one lock for backups";

/// Grants it when the guest runs without a lock and no other backup job runs. A stopped guest is copied while stopped,
/// or is down for the whole copy: there is no moment at which its programs could continue.
pub(super) async fn grant(context: &Context<'_>) -> Result<Started, StepError> {
    free_config(context).await?;
    let vmid = vmid(context)?;
    if context.ports.pve.guest_status(vmid).await?.power != Power::Running {
        let text = format!(
            "guest {vmid} does not run: its backup is taken without a window; ask for a backup, or start the guest first"
        );
        return Err(StepError::give_up(ErrorCode::Unsupported, text));
    }
    // Our own are done: this operation has the one place for backups.
    if let Some(other) = context.ports.pve.running_backups().await?.first() {
        let text = format!(
            "{OTHER_JOB} ({}): no window is granted before that has ended, since its programs would stand still for it",
            other.upid
        );
        return Err(StepError { problem: ErrorBody::new(ErrorCode::Busy, text), next: StepRecovery::Busy });
    }
    let granted = context.ports.clock.boot_moment();
    Ok(Started::Learnt(StepOutput::fact(Finding::WindowGranted(granted))))
}

/// Waits until the programs are stopped, or until it is clear that they will not be.
pub(super) async fn await_quiesced(context: &Context<'_>) -> Result<Started, StepError> {
    context.say("waiting for the controller to say that everything stands still");
    let window = wait(context, |phase, _| phase != WindowPhase::Granted).await?;
    let note = match window.reported(&context.ports.clock.boot_moment()) {
        WindowPhase::Cancelled if window.is_given_up() => return Err(given_up()),
        WindowPhase::Quiesced | WindowPhase::Capturing | WindowPhase::Captured => {
            let names: Vec<&str> = window
                .quiesced_stacks()
                .iter()
                .flat_map(|said| &said.stacks)
                .map(|stack| stack.as_str())
                .collect();
            if names.is_empty() {
                "nothing ran".to_owned()
            } else {
                format!("stands still: {}", names.join(", "))
            }
        }
        WindowPhase::Released => "its controller let go of the window".to_owned(),
        _ => "its controller did not say that everything stands still".to_owned(),
    };
    Ok(Started::Learnt(StepOutput::note(note)))
}

/// Waits until the programs run again, or until the bound passed: from then on their controller starts them by itself.
pub(super) async fn await_released(context: &Context<'_>) -> Result<Started, StepError> {
    context.say("waiting for the controller to say that everything runs again");
    let over = |window: &Window| window.is_released() || window.quiesced_stacks().is_none();
    let window = wait(context, |_, window| over(window)).await?;
    if over(&window) {
        return Ok(Started::Learnt(StepOutput::nothing()));
    }
    let text = format!(
        "the controller did not say within {} s that the guest's programs run again: look whether they do",
        window.bound.seconds()
    );
    let condition = Finding::Condition(ErrorBody::new(ErrorCode::WindowOver, text));
    Ok(Started::Learnt(StepOutput::fact(condition)))
}

/// The window, as soon as this holds or its bound passed.
async fn wait(
    context: &Context<'_>,
    enough: impl Fn(WindowPhase, &Window) -> bool,
) -> Result<Window, StepError> {
    let mut changes = context.ports.store.changes();
    loop {
        changes.mark_unchanged();
        let window = own(context).await?;
        let now = context.ports.clock.boot_moment();
        let left = window.patience(&now);
        if left.is_zero() || enough(window.reported(&now), &window) {
            return Ok(window);
        }
        tokio::select! {
            biased;
            woken = changes.changed() => woken.map_err(|_| StepError::fault("the store is closed"))?,
            () = context.ports.clock.sleep(left.min(LOOK)) => {}
        }
    }
}

async fn own(context: &Context<'_>) -> Result<Window, StepError> {
    let window = context.ports.store.window(context.progress.id).await?;
    window.ok_or_else(|| StepError::fault("this operation was granted no window"))
}

fn given_up() -> StepError {
    StepError::give_up(ErrorCode::Cancelled, "its guest gave the window up before its backup began")
}

/// Whether this backup is taken within a window.
fn has_window(context: &Context<'_>) -> bool {
    matches!(context.progress.operation, Operation::QuiescedBackup(_))
}

/// Recorded right before the backup is requested. From then on the window can only be released.
pub(super) async fn begin(context: &Context<'_>) -> Result<(), StepError> {
    if !has_window(context) {
        return Ok(());
    }
    let window = say(context, WindowEvent::Began).await?;
    if window.is_given_up() { Err(given_up()) } else { Ok(()) }
}

/// The backup was found: whatever its log said, its content is fixed by now.
pub(super) async fn found(context: &Context<'_>) -> Result<(), StepError> {
    if has_window(context) {
        say(context, WindowEvent::Captured).await?;
    }
    Ok(())
}

async fn say(context: &Context<'_>, said: WindowEvent) -> Result<Window, StepError> {
    let clock = &context.ports.clock;
    let moment = Moment { boot: clock.boot_moment(), at: clock.now() };
    match context.ports.store.say_of_window(context.progress.id, said, moment).await {
        Ok(window) => Ok(window),
        Err(SayError::Store(error)) => Err(error.into()),
        Err(error @ (SayError::Unknown | SayError::Refused(_))) => Err(StepError::fault(error.to_string())),
    }
}

/// Follows the task of a backup. Within a window its log is read closely, and the moment that fixes the copy is
/// recorded as soon as it is seen. A task that waits for another job while programs are stopped is aborted.
pub(super) async fn follow(
    context: &Context<'_>,
    upid: &Upid,
    patience: Patience,
    on_line: &mut (dyn FnMut(&str) + Send),
) -> Result<TaskOutcome, PveError> {
    let pve = context.ports.pve.as_ref();
    let pace = ClockPace(context.ports.clock.as_ref());
    if !has_window(context) {
        return follow_task(pve, &pace, upid, patience, on_line).await;
    }
    let (seen, mut watched) = watch::channel(Fixed::NotYet);
    let mut log = Log::default();
    let followed = async {
        let mut each = |line: &str| {
            on_line(line);
            let fixed = log.fixes(line);
            if fixed != Fixed::NotYet || *seen.borrow() == Fixed::Waits {
                seen.send_replace(fixed);
            }
        };
        let outcome = follow_task(pve, &Closely { pace, seen: &seen }, upid, patience, &mut each).await;
        drop(seen);
        outcome
    };
    let (outcome, course) = tokio::join!(biased; followed, write_down(context, upid, &mut watched));
    Ok(match (outcome?, course) {
        // Its own last message is about the stop; a task that still waited has none, and ends with `unexpected status`.
        (TaskOutcome::Failed(_) | TaskOutcome::Unknown(_), Course::Stopped) => {
            TaskOutcome::Failed(OTHER_JOB.to_owned())
        }
        (outcome, _) => outcome,
    })
}

/// What became of a task that a window was watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It went its way.
    Own,
    /// It waited for another job, and was stopped before it began.
    Stopped,
}

/// Ends the window and stops its task, which has not begun to do anything. A task that waits for a person's or another
/// job while no programs are stopped may wait.
async fn stop_waiting(context: &Context<'_>, upid: &Upid) -> Result<Course, StepError> {
    let window = own(context).await?;
    let now = context.ports.clock.boot_moment();
    // By this same code, perhaps before a kill. A window that was parked meanwhile has another code, and no programs
    // are stopped for it.
    let ended_by_us = window.reported(&now) == WindowPhase::Cancelled
        && window.problem(&now).is_some_and(|problem| problem.code == ErrorCode::Busy);
    if window.reported(&now) != WindowPhase::Capturing && !ended_by_us {
        return Ok(Course::Own);
    }
    let text = format!("{OTHER_JOB}: the backup is tried again when that has ended");
    // First the programs, whatever Proxmox says to the stop.
    say(context, WindowEvent::CameToNothing(ErrorBody::new(ErrorCode::Busy, text))).await?;
    // A backup that got the lock meanwhile is not aborted: a stop within a storage snapshot may leave half of one
    // behind.
    let pve = &context.ports.pve;
    let log = pve.task_log(upid, LogWindow { start: 0, limit: LINES }).await?;
    let last = log.lines.last().map(|line| Log::default().fixes(line));
    if last != Some(Fixed::Waits) {
        return Ok(Course::Own);
    }
    pve.task_stop(upid).await?;
    Ok(Course::Stopped)
}

/// The pace of task polls: close while programs are stopped for it, and as usual for the hours of copying after that.
struct Closely<'a> {
    pace: ClockPace<'a>,
    seen: &'a watch::Sender<Fixed>,
}

impl Pace for Closely<'_> {
    fn now(&self) -> Duration {
        self.pace.now()
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        let fixed = *self.seen.borrow() == Fixed::Now;
        self.pace.sleep(if fixed { pause } else { pause.min(LOG_LOOK) })
    }

    fn chance_percent(&self) -> u32 {
        self.pace.chance_percent()
    }
}

/// Records the moment as soon as it was seen, by the log or by the guest itself. Without a moment this ends with the
/// task, whose probe decides.
async fn write_down(context: &Context<'_>, upid: &Upid, watched: &mut watch::Receiver<Fixed>) -> Course {
    loop {
        let reported = async { watched.wait_for(|fixed| *fixed != Fixed::NotYet).await.map(|fixed| *fixed) };
        let reported = tokio::select! {
            biased;
            reported = reported => Some(reported),
            () = context.ports.clock.sleep(LOCK_LOOK) => None,
        };
        match reported {
            Some(Ok(Fixed::Waits)) => match stop_waiting(context, upid).await {
                Ok(Course::Stopped) => return Course::Stopped,
                // Nothing is stopped for it, or that is not known now: checked again while it waits.
                Ok(Course::Own) | Err(_) => {
                    context.ports.clock.sleep(LOG_LOOK).await;
                    if watched.has_changed().is_err() {
                        return Course::Own;
                    }
                }
            },
            Some(Ok(_)) => break,
            Some(Err(_)) => return Course::Own,
            // Proxmox may not say so now: it is looked at again.
            None => match is_fixed(context).await {
                Ok(Fixed::Now) => break,
                Ok(Fixed::NotYet | Fixed::Waits) | Err(_) => {}
            },
        }
    }
    while let Err(trouble) = say(context, WindowEvent::Captured).await {
        tracing::warn!(operation = %context.progress.id, problem = %trouble.problem, "a capture could not be written down");
        context.ports.clock.sleep(WRITE_AGAIN).await;
        if watched.has_changed().is_err() {
            break;
        }
    }
    Course::Own
}

/// The same by the guest itself, when the log cannot be read: the backup's own snapshot is complete, and the guest's
/// lock is the backup's again. A snapshot that a dead backup left behind is older than this try.
async fn is_fixed(context: &Context<'_>) -> Result<Fixed, StepError> {
    let vmid = vmid(context)?;
    let since = context.progress.intended_at(context.place).and_then(|at| u64::try_from(at.as_second()).ok());
    let since = since.unwrap_or(u64::MAX);
    let ours = |snapshot: &Snapshot| {
        snapshot.name == "vzdump"
            && snapshot.half.is_none()
            && snapshot.made_epoch_s.is_some_and(|made| made >= since)
    };
    let pve = &context.ports.pve;
    let listed = pve.snapshots(vmid).await?.iter().any(ours);
    let held = listed && pve.guest_config(vmid).await?.lock.as_deref() == Some("backup");
    Ok(if held { Fixed::Now } else { Fixed::NotYet })
}

/// Whether what a backup holds is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fixed {
    NotYet,
    /// It has not begun: another job has the node's lock.
    Waits,
    Now,
}

/// What the log of a backup has shown so far.
#[derive(Debug, Default)]
struct Log {
    mode: Option<Mode>,
}

/// How the guest is brought to rest, as Proxmox says after it has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Snapshot,
    Suspend,
    Stop,
}

impl Log {
    /// Only the beginning of a line counts: the rest may be a name from inside the guest.
    fn fixes(&mut self, line: &str) -> Fixed {
        let Some(said) = line.strip_prefix("INFO: ") else { return Fixed::NotYet };
        match said {
            "backup mode: snapshot" => self.mode = Some(Mode::Snapshot),
            "backup mode: suspend" => self.mode = Some(Mode::Suspend),
            "backup mode: stop" => self.mode = Some(Mode::Stop),
            "trying to get global lock - waiting..." => return Fixed::Waits,
            _ => {}
        }
        let archive = ["creating vzdump archive '", "creating Proxmox Backup Server archive '"];
        let begins = archive.iter().any(|moment| said.starts_with(moment));
        let fixed = match self.mode {
            Some(Mode::Snapshot) => begins,
            // The copy aside was brought up to date while the guest was frozen.
            Some(Mode::Suspend) => begins || said == "resuming guest",
            // The volumes themselves are read until the end.
            Some(Mode::Stop) | None => false,
        };
        if fixed { Fixed::Now } else { Fixed::NotYet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in `13-locks-concurrency.jsonl`: it waits until the next line.
    #[test]
    fn a_job_waits_for_the_lock_until_it_has_it() {
        let lines = [
            "INFO: trying to get global lock - waiting...",
            "INFO: got global lock",
            "INFO: starting new backup job: vzdump 180 --storage backup2 --node pve1 --mode stop",
        ];
        let mut log = Log::default();
        assert_eq!(lines.map(|line| log.fixes(line)), [Fixed::Waits, Fixed::NotYet, Fixed::NotYet]);
    }

    /// The lines of real backups, cut to what matters: `p-D-backup-phases.jsonl`.
    #[test]
    fn the_moment_is_the_one_of_the_mode() {
        const ARCHIVE: &str =
            "INFO: creating vzdump archive '/mnt/backup2/dump/vzdump-lxc-300-2026_11_21-04_02_15.tar.zst'";
        const PBS: &str = "INFO: creating Proxmox Backup Server archive 'ct/300/2026-11-21T04:36:17Z'";
        let cases: [(&[&str], Option<usize>); 7] = [
            (&["INFO: backup mode: snapshot", "INFO: create storage snapshot 'vzdump'", ARCHIVE], Some(2)),
            (&["INFO: backup mode: snapshot", "INFO: resume vm", PBS], Some(2)),
            (
                &["INFO: backup mode: suspend", "INFO: suspending guest", "INFO: resuming guest", ARCHIVE],
                Some(2),
            ),
            (
                &[
                    "INFO: mode failure - some volumes do not support snapshots",
                    "INFO: trying 'suspend' mode instead",
                    "INFO: backup mode: suspend",
                    "INFO: first sync finished - transferred 1 bytes in 1s",
                    "INFO: resuming guest",
                ],
                Some(4),
            ),
            (
                &["INFO: backup mode: stop", "INFO: stopping virtual guest", ARCHIVE, "INFO: restarting vm"],
                None,
            ),
            (&["INFO: backup mode: suspend", "INFO: rsync: file has vanished: INFO: resuming guest"], None),
            (&[ARCHIVE], None),
        ];
        for (lines, moment) in cases {
            let mut log = Log::default();
            assert_eq!(lines.iter().position(|line| log.fixes(line) == Fixed::Now), moment, "{lines:?}");
        }
    }
}
