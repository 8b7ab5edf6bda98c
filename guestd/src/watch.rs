//! Health of stacks between windows.
//!
//! ```text
//! pause ─ is it quiet? ─ each stack: parts, its check ─ judge ─ course ─┬─ as before
//!                                                                       ├─ once more, soon
//!                                                                       ├─ told
//!                                                                       └─ turn, look again, start what fell, told
//! ```
//! In: the stacks that should run by `stacks.toml`. Out: how each is, for `guestd status` and the hello; and a start of what
//! ended by itself, where the file wants it. A look costs what the stacks' own programs cost, so the pause grows with it: at
//! most a twentieth of the time is spent looking. Deliberately absent: anything while stacks stand still for a backup, while
//! packages change, while something is tried, and in a scratch guest; there others look.

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

/// Between two rounds of looks.
const EACH: Duration = Duration::from_secs(60);

/// Something was not well for the first time: it is looked at again so soon.
const AGAIN: Duration = Duration::from_secs(10);

/// The pause is so many times as long as the round before it took.
const COST: u32 = 20;

/// However long a round takes, the next one comes within this.
const LONGEST: Duration = Duration::from_secs(900);

/// The pause after a round that took so long.
fn pause(usual: Duration, took: Duration) -> Duration {
    usual.max(took.saturating_mul(COST)).min(LONGEST)
}

/// A test's own pause. A program that is built for use does not look at the variable.
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

    /// Looks at each stack. How soon the next round should come.
    async fn round(&mut self) -> Duration {
        let Some(before) = quiet(&self.paths) else { return EACH };
        // What is wrong with the file is told by the loop that runs windows.
        let Ok(stacks) = stacks::load(&self.paths) else { return EACH };
        let volumes = mounts::remembered(&self.paths);
        let wanted: Vec<&Stack> =
            stacks.stacks.iter().filter(|stack| stack.wanted == DefaultState::Running).collect();
        self.histories.retain(|name, _| wanted.iter().any(|stack| stack.name == *name));
        let mut soon = EACH;
        for stack in wanted {
            let seen = poll::poll(&self.paths, &stacks, stack, &volumes).await;
            // What was seen while somebody stopped or started stacks says nothing of how they run.
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

    /// Starts what fell over, when it is our turn, and it is still so then.
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

/// Which window ended last, where nobody does anything to stacks; none where somebody does, or this guest is not its own.
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
