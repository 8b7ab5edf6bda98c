//! One virtual clock for agent and simulator.
//!
//! Time is the paused time of the current thread's runtime. It stops while anything can run, and jumps to the next
//! moment that a task waits for. So waits cost nothing, and one seed gives one story. In: the moment at which a story
//! begins. Out: the clock ports of both sides. A task of the simulator has a thread, as its code is synchronous, but
//! runs only in its slot (`turns`); so one thing happens at a time. Deliberately absent: the machine's clocks.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentd::model::boot::{BootId, BootMoment};
use agentd::model::clock_trust::Synchrony;
use agentd::port::clock::{Clock, Pause, SyncQuery};
use agentd::port::pve::Pace;
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::log::{Log, TaskSpan};
use crate::turns;

/// The virtual time of one world.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    began: Instant,
    at: Timestamp,
}

impl Timeline {
    /// Starts at the current virtual moment, which is called `at`. Must be called within a runtime whose time is
    /// paused.
    #[must_use]
    pub fn starting_at(at: Timestamp) -> Self {
        Self { began: Instant::now(), at }
    }

    /// What time it was at the beginning.
    #[must_use]
    pub const fn began(&self) -> Timestamp {
        self.at
    }

    /// How much time passed since the beginning.
    #[must_use]
    pub fn passed(&self) -> Duration {
        self.began.elapsed()
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.passed()).unwrap_or(SignedDuration::MAX);
        self.at.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

impl Clock for Timeline {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn monotonic(&self) -> Duration {
        self.passed()
    }

    fn boot_moment(&self) -> BootMoment {
        boot_moment(self.passed())
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(async { Synchrony::Kept })
    }
}

/// The worlds' hosts boot once, at their beginning.
fn boot_moment(passed: Duration) -> BootMoment {
    BootMoment { boot: BootId::parse("boot-1").unwrap(), ms: u64::try_from(passed.as_millis()).unwrap() }
}

/// The clock of the agent's host: the world's time plus an offset. The offset changes only the time of day, never the
/// length of waits.
#[derive(Clone, Debug)]
pub struct BoxClock {
    timeline: Timeline,
    ahead_s: Arc<AtomicI64>,
}

impl BoxClock {
    /// One that is right.
    #[must_use]
    pub fn right(timeline: Timeline) -> Self {
        Self { timeline, ahead_s: Arc::default() }
    }

    /// Sets it this many seconds ahead of the right time; behind, when negative.
    pub fn set_ahead_s(&self, seconds: i64) {
        self.ahead_s.store(seconds, Ordering::SeqCst);
    }
}

impl Clock for BoxClock {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.ahead_s.load(Ordering::SeqCst));
        self.timeline.now().checked_add(ahead).unwrap()
    }

    fn monotonic(&self) -> Duration {
        self.timeline.passed()
    }

    fn boot_moment(&self) -> BootMoment {
        boot_moment(self.timeline.passed())
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(async { Synchrony::Kept })
    }
}

impl Pace for Timeline {
    fn now(&self) -> Duration {
        self.passed()
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn chance_percent(&self) -> u32 {
        50
    }
}

/// Virtual time, numbers and randomness for the simulator.
pub struct SimClock {
    timeline: Timeline,
    runtime: Handle,
    numbers: AtomicU64,
    random: Mutex<u64>,
    log: Arc<Log>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimClock").field("timeline", &self.timeline).finish_non_exhaustive()
    }
}

impl SimClock {
    /// With a seed for random values and the first process number.
    #[must_use]
    pub fn new(timeline: Timeline, first_number: u64, seed: u64, log: Arc<Log>) -> Self {
        Self {
            timeline,
            runtime: Handle::current(),
            numbers: AtomicU64::new(first_number),
            // The generator below never leaves zero, so the seed must not be zero.
            random: Mutex::new(seed | 1),
            log,
            running: Mutex::default(),
        }
    }

    /// The next process number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.numbers.load(Ordering::SeqCst)
    }

    /// Waits until no task runs any more.
    pub async fn settle(&self) {
        loop {
            let running = std::mem::take(&mut *self.running.lock().unwrap());
            if running.is_empty() {
                return;
            }
            for task in running {
                task.await.unwrap();
            }
        }
    }
}

impl pve_sim::clock::Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.timeline.now().as_millisecond()
    }

    fn pause(&self, length: Duration) {
        turns::pause(length);
    }

    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    fn random(&self, bytes: &mut [u8]) {
        let mut state = self.random.lock().unwrap();
        for byte in bytes {
            // xorshift64: even enough for addresses and ids, and the same for the same seed.
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            *byte = (*state >> 32) as u8;
        }
    }

    fn run_task(&self, name: &str, work: pve_sim::clock::TaskWork) -> std::io::Result<()> {
        let worker = turns::Worker::start(self.runtime.clone(), work)?;
        let (log, timeline) = (Arc::clone(&self.log), self.timeline);
        let begun = log.begin_task(TaskSpan::new(name, timeline.passed()));
        let driven = self.runtime.spawn(async move {
            while let turns::Reported::Paused(length) = worker.turn() {
                tokio::time::sleep(length).await;
            }
            log.end_task(begun, timeline.passed());
        });
        self.running.lock().unwrap().push(driven);
        Ok(())
    }
}
