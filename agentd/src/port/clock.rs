//! Time, as an argument. The one lawful place that reads the clocks.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::model::timekeeper::Synchrony;
use crate::port::pve::Pace;
use crate::port::synchrony;

/// A pause that is on its way.
pub type Pause<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A question that is on its way.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Synchrony> + Send + 'a>>;

/// What time it is, and how to wait.
pub trait Clock: Send + Sync {
    /// The wall clock. It may jump.
    fn now(&self) -> Timestamp;
    /// A clock that only runs forward, from some moment.
    fn monotonic(&self) -> Duration;
    /// Waits.
    fn sleep(&self, pause: Duration) -> Pause<'_>;
    /// Whether somebody keeps the wall clock right.
    fn synchrony(&self) -> Asked<'_>;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// Starts the forward clock.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "the clock port is the one lawful site")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn synchrony(&self) -> Asked<'_> {
        Box::pin(synchrony::ask())
    }
}

/// A clock seen as the pace of the Proxmox client.
pub struct ClockPace<'a>(pub &'a dyn Clock);

impl Pace for ClockPace<'_> {
    fn now(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, pause: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.sleep(pause)
    }

    fn chance_percent(&self) -> u32 {
        // Following a task needs no jitter: each task has one follower.
        50
    }
}
