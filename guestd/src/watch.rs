//! Health of stacks between windows.
//!
//! ```text
//! pause ─ is it quiet? ─ each stack: parts, its check ─ judge ─ course ─┬─ as before
//!                                                                       ├─ once more, soon
//!                                                                       ├─ reported
//!                                                                       └─ lock, check again, start what fell, reported
//! ```
//! In: the stacks that should run by `stacks.toml`. Out: the state of each, for `guestd status` and the hello; and a
//! start of what ended by itself, where the file requests it. A check costs as much as the stacks' own programs cost,
//! so the pause grows with it: at most a twentieth of the time is spent on checks. Deliberately absent: any check while
//! stacks are stopped for a backup, while packages change, during `guestd try`, and in a scratch guest; other code
//! checks there.

pub mod assessment;
mod history;
mod poll;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use holdfast_protocol::id::{OperationId, StackName};
use holdfast_protocol::json::chain;
use holdfast_protocol::local::MountView;
use tracing::{info, warn};

use crate::bootstrap_env;
use crate::clock;
use crate::commands::apt::dpkg_lock;
use crate::commands::{try_command, try_lock};
use crate::paths::Paths;
use crate::quiesce::lock::{self, Lock, LockResult};
use crate::quiesce::marker::{Marker, Stopped};
use crate::quiesce::mounts;
use crate::quiesce::stack::{self, StartHistory};
use crate::stacks::{self, DefaultState, Stack, Stacks};
use crate::status_file::{self, StackStatus};
use crate::watchdog;
use history::{StackHistory, Step};

pub use assessment::State;

/// Between two rounds of checks.
const EACH: Duration = Duration::from_secs(60);

/// How soon to check again after the first failed check.
const AGAIN: Duration = Duration::from_secs(10);

/// The pause is this many times as long as the last round.
const COST: u32 = 20;

/// However long a round takes, the next one comes within this.
const LONGEST: Duration = Duration::from_secs(900);

/// The pause after a round that took this long.
fn pause(usual: Duration, took: Duration) -> Duration {
    usual.max(took.saturating_mul(COST)).min(LONGEST)
}

/// A test's own pause. Release builds do not read the variable.
fn shorter() -> Option<Duration> {
    let text = std::env::var("GUESTD_WATCH_MS").ok().filter(|_| cfg!(debug_assertions))?;
    text.parse().ok().map(Duration::from_millis)
}

pub struct Watch {
    paths: Paths,
    histories: BTreeMap<StackName, StackHistory>,
}

impl Watch {
    pub fn new(paths: Paths) -> Self {
        Self { paths, histories: BTreeMap::new() }
    }

    pub async fn run(mut self) -> Infallible {
        let mut wait = EACH;
        loop {
            wait = shorter().unwrap_or(wait);
            watchdog::within(wait);
            tokio::time::sleep(wait).await;
            let begin = Instant::now();
            let usual = self.round().await;
            wait = pause(usual, begin.elapsed());
        }
    }

    /// Checks each stack. Returns how soon the next round should come.
    async fn round(&mut self) -> Duration {
        let Some(before) = quiet(&self.paths) else { return EACH };
        // The loop that runs windows reports what is wrong with the file.
        let Ok(stacks) = stacks::load(&self.paths) else { return EACH };
        let volumes = mounts::remembered(&self.paths);
        let wanted: Vec<&Stack> =
            stacks.stacks.iter().filter(|stack| stack.wanted == DefaultState::Running).collect();
        self.histories.retain(|name, _| wanted.iter().any(|stack| stack.name == *name));
        let mut soon = EACH;
        for stack in wanted {
            let seen = poll::poll(&self.paths, &stacks, stack, &volumes).await;
            // A state that was seen while another process stopped or started stacks says nothing of how they run.
            if quiet(&self.paths) != Some(before) {
                return soon;
            }
            let Some(now) = clock::since_boot(&self.paths) else { return EACH };
            let course = self.histories.entry(stack.name.clone()).or_default();
            match course.next(&seen, stack.on_failure, now, clock::now()) {
                Step::AsBefore => {}
                Step::LookAgain => soon = AGAIN,
                Step::Report(why) => warn!(stack = %stack.name, why, "is unhealthy"),
                Step::Well => info!(stack = %stack.name, "is well again"),
                Step::Start => {
                    soon = AGAIN;
                    self.start(&stacks, stack, &volumes).await;
                }
            }
        }
        self.write();
        soon
    }

    /// Starts a failed stack, when the lock is free and the stack is still failed then.
    async fn start(&mut self, stacks: &Stacks, stack: &Stack, volumes: &[MountView]) {
        let LockResult::Acquired(lock) = lock::take(&self.paths) else { return };
        if Marker::is_there(&self.paths) {
            return;
        }
        let seen = poll::poll(&self.paths, stacks, stack, volumes).await;
        let Some(fallen) = seen.fallen() else { return };
        warn!(stack = %stack.name, why = fallen.why, "ended by itself, and is started");
        let started = self.start_fallen(stack, volumes, fallen, &lock).await;
        drop(lock);
        let said = match &started {
            Ok(()) => None,
            Err(why) => {
                warn!(stack = %stack.name, why, "could not be started");
                Some(why.as_str())
            }
        };
        let now = clock::since_boot(&self.paths).unwrap_or_default();
        if let Some(course) = self.histories.get_mut(&stack.name) {
            course.started(now, said);
        }
        self.write();
    }

    async fn start_fallen(
        &self,
        stack: &Stack,
        volumes: &[MountView],
        fallen: &assessment::FallenStack,
        _turn: &Lock,
    ) -> Result<(), String> {
        let volumes = mounts::volumes(stack, volumes).map_err(|error| chain(&error))?;
        let stopped = Stopped {
            name: stack.name.clone(),
            engine: fallen.engine,
            groups: fallen.groups.clone(),
            flapping: Vec::new(),
            home: None,
            stop_limit_s: stack.limits.stop.as_secs(),
            start_limit_s: stack.limits.start.as_secs(),
            hook_limit_s: stack.limits.hook.as_secs(),
            post_resume: None,
            env: volumes.env,
            mounts: volumes.mounts,
        };
        let started = stack::start(&self.paths, &stopped, &mut StartHistory::of_stopped()).await;
        started.map_err(|error| chain(&error))
    }

    /// For `guestd status` and the hello.
    fn write(&self) {
        let stack_status: Vec<StackStatus> =
            self.histories.iter().filter_map(|(name, course)| course.shown(name)).collect();
        status_file::update(&self.paths, |status| status.stack_status = stack_status);
    }
}

/// The window that ended last, while no process stops or starts stacks. None where one does, or where this guest is a
/// scratch copy.
fn quiet(paths: &Paths) -> Option<Option<OperationId>> {
    let free = bootstrap_env::is_own_guest(paths)
        && !Marker::is_there(paths)
        && matches!(lock::take(paths), LockResult::Acquired(_))
        && !try_lock::goes_on(paths)
        && !try_command::is_open(paths)
        && !dpkg_lock::goes_on(paths);
    free.then(|| status_file::load(paths).last.map(|last| last.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_take_a_twentieth_of_the_time_at_most_and_come_within_a_quarter_of_an_hour() {
        let seconds = Duration::from_secs;
        for (usual, took, wait) in
            [(EACH, 1, 60), (AGAIN, 0, 10), (AGAIN, 2, 40), (EACH, 30, 600), (EACH, 4_000, 900)]
        {
            assert_eq!(pause(usual, seconds(took)), seconds(wait), "{usual:?} {took}");
        }
    }
}
