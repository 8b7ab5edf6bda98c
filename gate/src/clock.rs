//! The clocks of the gate.

use agent_slots::Moment;
use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Why the boot is not known.
#[derive(Debug, thiserror::Error)]
#[error("the kernel does not say which boot this is (/proc/sys/kernel/random/boot_id)")]
pub struct ClockError(#[from] std::io::Error);

/// Now, on the clock that runs through suspend.
///
/// # Errors
/// [`ClockError`].
pub fn moment() -> Result<Moment, ClockError> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
    let seconds = u64::try_from(clock_gettime(ClockId::Boottime).tv_sec).unwrap_or(0);
    Ok(Moment { boot, seconds })
}

/// Now, by the wall clock. It may be wrong.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where this program reads the wall clock")]
pub fn wall() -> Timestamp {
    Timestamp::now()
}
