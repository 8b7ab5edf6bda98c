//! The health of stacks while nothing is done to them.
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

mod course;
mod judge;
mod look;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use holdfast_protocol::id::{OperationId, StackName};
use holdfast_protocol::local::MountView;
use holdfast_protocol::strict::chain;
use tracing::{info, warn};

use crate::beat;
use crate::board::{self, Watched};
use crate::clock;
use crate::people::{apt, trial, tried};
use crate::place::Place;
use crate::quiesce::act::{self, Starts};
use crate::quiesce::marker::{Marker, Stopped};
use crate::quiesce::mounts;
use crate::quiesce::turn::{self, Asked, Turn};
use crate::stacks::{self, Stack, Stacks, Wanted};
use crate::ticket;
use course::{Course, Step};

pub use judge::State;

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

/// The loop.
pub struct Watch {
    place: Place,
    courses: BTreeMap<StackName, Course>,
}

impl Watch {
    pub fn new(place: Place) -> Self {
        Self { place, courses: BTreeMap::new() }
    }

    /// For ever.
    pub async fn run(mut self) -> Infallible {
        let mut wait = EACH;
        loop {
            wait = shorter().unwrap_or(wait);
            beat::within(wait);
            tokio::time::sleep(wait).await;
            let begin = Instant::now();
            let usual = self.round().await;
            wait = pause(usual, begin.elapsed());
        }
    }

    /// Looks at each stack. How soon the next round should come.
    async fn round(&mut self) -> Duration {
        let Some(before) = quiet(&self.place) else { return EACH };
        // What is wrong with the file is told by the loop that runs windows.
        let Ok(stacks) = stacks::load(&self.place) else { return EACH };
        let volumes = mounts::remembered(&self.place);
        let wanted: Vec<&Stack> =
            stacks.stacks.iter().filter(|stack| stack.wanted == Wanted::Running).collect();
        self.courses.retain(|name, _| wanted.iter().any(|stack| stack.name == *name));
        let mut soon = EACH;
        for stack in wanted {
            let seen = look::look(&self.place, &stacks, stack, &volumes).await;
            // What was seen while somebody stopped or started stacks says nothing of how they run.
            if quiet(&self.place) != Some(before) {
                return soon;
            }
            let Some(now) = clock::since_boot(&self.place) else { return EACH };
            let course = self.courses.entry(stack.name.clone()).or_default();
            match course.next(&seen, stack.on_failure, now, clock::now()) {
                Step::AsBefore => {}
                Step::LookAgain => soon = AGAIN,
                Step::Tell(why) => warn!(stack = %stack.name, why, "is not well"),
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
        let Asked::Ours(turn) = turn::take(&self.place) else { return };
        if Marker::is_there(&self.place) {
            return;
        }
        let seen = look::look(&self.place, stacks, stack, volumes).await;
        let Some(fallen) = seen.fallen() else { return };
        warn!(stack = %stack.name, why = fallen.why, "ended by itself, and is started");
        let started = self.start_fallen(stack, volumes, fallen, &turn).await;
        drop(turn);
        let said = match &started {
            Ok(()) => None,
            Err(why) => {
                warn!(stack = %stack.name, why, "could not be started");
                Some(why.as_str())
            }
        };
        let now = clock::since_boot(&self.place).unwrap_or_default();
        if let Some(course) = self.courses.get_mut(&stack.name) {
            course.started(now, said);
        }
        self.write();
    }

    async fn start_fallen(
        &self,
        stack: &Stack,
        volumes: &[MountView],
        fallen: &judge::Fallen,
        _turn: &Turn,
    ) -> Result<(), String> {
        let volumes = mounts::volumes(stack, volumes).map_err(|error| chain(&error))?;
        let stopped = Stopped {
            name: stack.name.clone(),
            engine: fallen.engine,
            groups: fallen.groups.clone(),
            restless: Vec::new(),
            home: None,
            stop_limit_s: stack.limits.stop.as_secs(),
            start_limit_s: stack.limits.start.as_secs(),
            hook_limit_s: stack.limits.hook.as_secs(),
            post_resume: None,
            env: volumes.env,
            mounts: volumes.mounts,
        };
        let started = act::start(&self.place, &stopped, &mut Starts::of_what_ran()).await;
        started.map_err(|error| chain(&error))
    }

    /// For `guestd status` and the hello.
    fn write(&self) {
        let watched: Vec<Watched> =
            self.courses.iter().filter_map(|(name, course)| course.shown(name)).collect();
        board::update(&self.place, |told| told.watched = watched);
    }
}

/// Which window ended last, where nobody does anything to stacks; none where somebody does, or this guest is not its own.
fn quiet(place: &Place) -> Option<Option<OperationId>> {
    let free = ticket::is_own_guest(place)
        && !Marker::is_there(place)
        && matches!(turn::take(place), Asked::Ours(_))
        && !tried::goes_on(place)
        && !trial::is_open(place)
        && !apt::goes_on(place);
    free.then(|| board::load(place).last.map(|last| last.id))
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
