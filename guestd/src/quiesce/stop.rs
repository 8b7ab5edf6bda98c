//! Stopping: marker and timer first, then hooks and stacks in reverse.

use std::time::Duration;

use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;

use super::lock;
use super::marker::{Bound, Marker, MarkerError, Stopped};
use super::mounts::{self, Mounts, NoVolume};
use super::stack::{self, StackError, StackState};
use super::timer::{self, TimerError};
use crate::clock;
use crate::driver::{Part, PartState, groups};
use crate::failpoint::{Point, reached};
use crate::file::FileError;
use crate::paths::Paths;
use crate::program::{ProgramError, run_well};
use crate::stacks::{Stack, Stacks};

/// Less than this before the bound, nothing more is stopped.
const RESERVE: Duration = Duration::from_secs(5);

/// Why stacks were not stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// It is unknown which parts run.
    #[error("the running parts of stack {stack} are unknown: nothing was stopped")]
    Look {
        stack: String,
        #[source]
        source: StackError,
    },
    /// Some of its parts are being stopped by hand.
    #[error(
        "{parts} of stack {stack} are being stopped by hand: nothing was stopped; try again when they are"
    )]
    Busy { stack: String, parts: String },
    /// A volume that it names.
    #[error("nothing was stopped")]
    Volume(#[source] NoVolume),
    /// What it starts with is not there now.
    #[error(
        "{mount} is not mounted, and stack {stack} would not start without it: nothing was stopped; mount the volume"
    )]
    NotMounted { stack: String, mount: String },
    /// The mounts are unknown.
    #[error("the mounts are unknown: nothing was stopped")]
    Mounts(#[source] FileError),
    #[error("the marker cannot be written: nothing was stopped")]
    Marker(#[source] MarkerError),
    #[error("no timer could be armed: nothing was stopped")]
    Timer(#[source] TimerError),
    /// Its hook says no.
    #[error("the hook pre_quiesce of stack {stack} failed")]
    Hook {
        stack: String,
        #[source]
        source: ProgramError,
    },
    /// It does not stop.
    #[error("stack {stack} does not stop")]
    Stop {
        stack: String,
        #[source]
        source: StackError,
    },
    /// Something ended it before it had ended by itself: its data are as after a power cut.
    #[error(
        "{names} of stack {stack} did not stop in time and were killed, so the backup would not be consistent: have them end on their stop signal, or raise `stop_timeout_s`"
    )]
    Killed { stack: String, names: String },
    /// No time is left to stop it and to start it again.
    #[error("no time left to stop stack {stack}")]
    NoTime { stack: String },
    /// A person wants the stacks back.
    #[error("`guestd resume` was requested")]
    ResumeRequested,
}

/// A stack that runs, and what of it.
#[derive(Clone, Debug)]
pub struct Running {
    pub stack: Stack,
    pub stopped: Stopped,
}

/// What runs now, in the order in which it starts. `volumes` are this guest's.
pub async fn look(paths: &Paths, stacks: &Stacks, volumes: &[MountView]) -> Result<Vec<Running>, StopError> {
    let mut running = Vec::new();
    for stack in &stacks.stacks {
        let volumes = mounts::volumes(stack, volumes).map_err(StopError::Volume)?;
        let StackState { engine, parts, home } = stack::inspect(paths, stack, &volumes)
            .await
            .map_err(|source| StopError::Look { stack: stack.name.to_string(), source })?;
        let busy = stack::names(&parts, |part| part.state == PartState::Stopping);
        if !busy.is_empty() {
            return Err(StopError::Busy { stack: stack.name.to_string(), parts: busy });
        }
        let mine = |part: &Part| stacks.is_of(stack, &part.id);
        let groups = groups(parts.iter().filter(|part| part.state.is_wanted() && mine(part)));
        let flapping = parts.iter().filter(|part| part.state == PartState::Restarting);
        let flapping = flapping.map(|part| part.id.clone()).collect();
        if groups.is_empty() {
            continue;
        }
        let stopped = Stopped {
            name: stack.name.clone(),
            engine,
            groups,
            flapping,
            home,
            stop_limit_s: stack.limits.stop.as_secs(),
            start_limit_s: stack.limits.start.as_secs(),
            hook_limit_s: stack.limits.hook.as_secs(),
            post_resume: stack.hooks.post_resume.clone(),
            env: volumes.env,
            mounts: volumes.mounts,
        };
        running.push(Running { stack: stack.clone(), stopped });
    }
    Ok(running)
}

/// Sees that all of it could start again now.
pub fn could_start(paths: &Paths, running: &[Running]) -> Result<(), StopError> {
    if running.iter().all(|running| running.stopped.mounts.is_empty()) {
        return Ok(());
    }
    let mounts = Mounts::read(paths).map_err(StopError::Mounts)?;
    for Running { stack, stopped } in running {
        if let Some(mount) = stopped.mounts.iter().find(|mount| !mounts.has(mount)) {
            return Err(StopError::NotMounted { stack: stack.name.to_string(), mount: mount.to_string() });
        }
    }
    Ok(())
}

/// The marker of a window in which these stay stopped until `deadline`.
pub fn marker(window: OperationId, boot_id: &str, deadline: Duration, running: &[Running]) -> Marker {
    let stacks = running.iter().map(|running| running.stopped.clone()).collect();
    Marker::new(window, boot_id.to_owned(), deadline, stacks)
}

/// Makes sure that all of it will run again: the program, the marker, the timer. When one of them cannot be made, a
/// later resume removes those before it, and nothing was stopped.
pub async fn secure(paths: &Paths, marker: &Marker) -> Result<(), StopError> {
    timer::copy_program(paths).map_err(StopError::Timer)?;
    reached(Point::ProgramLaid);
    marker.store(paths).map_err(StopError::Marker)?;
    reached(Point::MarkerWritten);
    let Bound::Left(left) = left(paths, marker) else {
        return Err(StopError::NoTime { stack: "at all".to_owned() });
    };
    timer::arm(paths, &marker.timer, left).await.map_err(StopError::Timer)?;
    reached(Point::TimerArmed);
    Ok(())
}

/// Stops all of it, the last first.
pub async fn stop(paths: &Paths, marker: &Marker, running: &[Running]) -> Result<(), StopError> {
    for Running { stack, stopped } in running.iter().rev() {
        let name = || stack.name.to_string();
        let time = |wanted: Duration| match left(paths, marker) {
            Bound::Left(left) if left > RESERVE => Ok(wanted.min(left.saturating_sub(RESERVE))),
            _ => Err(StopError::NoTime { stack: name() }),
        };
        if lock::resume_requested(paths) {
            return Err(StopError::ResumeRequested);
        }
        if let Some(argv) = &stack.hooks.pre_quiesce {
            let call = stack::hook(argv, stack.name.as_str(), &stopped.env, time(stack.limits.hook)?);
            run_well(&call).await.map_err(|source| StopError::Hook { stack: name(), source })?;
            reached(Point::HookRun);
        }
        let killed = stack::stop(stopped.engine, &stopped.groups, time(stack.limits.stop)?)
            .await
            .map_err(|source| StopError::Stop { stack: name(), source })?;
        if !killed.is_empty() {
            return Err(StopError::Killed { stack: name(), names: killed });
        }
        tracing::info!(stack = %stack.name, "stands still");
        reached(Point::OneStopped);
    }
    reached(Point::AllStopped);
    Ok(())
}

/// How long they may still stay stopped.
pub fn left(paths: &Paths, marker: &Marker) -> Bound {
    let boot_id = super::boot::id(paths).unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "boot id is unknown");
        None
    });
    marker.bound(boot_id.as_deref(), clock::since_boot(paths))
}
