//! Time as an argument: the only place that reads the clocks.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::model::boot::{BootId, BootMoment};
use crate::model::clock_trust::Synchrony;
use crate::ntp;
use crate::pve::Pace;

/// A pause that is on its way.
pub type Pause<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A question that is on its way.
pub type SyncQuery<'a> = Pin<Box<dyn Future<Output = Synchrony> + Send + 'a>>;

/// The current time, and waiting.
pub trait Clock: Send + Sync {
    /// The wall clock. It may jump.
    fn now(&self) -> Timestamp;
    /// A clock that only runs forward, from some moment.
    fn monotonic(&self) -> Duration;
    /// A moment of this boot of the host, on the clock that runs through suspend. Another run of the agent reads the same
    /// clock.
    fn boot_moment(&self) -> BootMoment;
    fn sleep(&self, pause: Duration) -> Pause<'_>;
    /// Whether a time service keeps the wall clock right.
    fn synchrony(&self) -> SyncQuery<'_>;
}

/// The machine's clocks.
#[derive(Clone, Debug)]
pub struct RealClock {
    start: Instant,
    boot: BootId,
}

impl RealClock {
    /// Starts the forward clock.
    #[must_use]
    pub fn start() -> Self {
        Self { start: Instant::now(), boot: this_boot() }
    }
}

/// Which boot this is: from the kernel, or from systemd where the unit hides that file. Without either no bound outlives
/// this run.
fn this_boot() -> BootId {
    let reported = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let reported = reported.or_else(|| std::env::var("HOLDFAST_BOOT_ID").ok());
    reported.and_then(|text| BootId::parse(&text)).unwrap_or_else(|| {
        tracing::warn!("nobody tells which boot this is: a restart of the agent ends every quiesce window");
        BootId::of_this_run(uuid::Uuid::now_v7())
    })
}

impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "the clock port is the one allowed place")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn boot_moment(&self) -> BootMoment {
        let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let passed = Duration::try_from(read).unwrap_or_default();
        BootMoment { boot: self.boot.clone(), ms: u64::try_from(passed.as_millis()).unwrap_or(u64::MAX) }
    }

    fn sleep(&self, pause: Duration) -> Pause<'_> {
        Box::pin(tokio::time::sleep(pause))
    }

    fn synchrony(&self) -> SyncQuery<'_> {
        Box::pin(ntp::ask())
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
