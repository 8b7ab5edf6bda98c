//! Waiting for a state of the world that another process brings about.
//!
//! A process cannot be woken by a state of another process. So the state is polled, up to a generous bound: the bound
//! ends a hang, it measures nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Between the first two polls.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause. Most polls start a program, and many tests poll at the same time.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Calls `look` until it returns a value.
///
/// # Errors
/// The error of `look`, or that `what` did not happen within `bound`.
pub fn until<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let (begun, mut pause) = (Instant::now(), PAUSE);
    loop {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        if begun.elapsed() > bound {
            bail!("{what}: not seen within {} s", bound.as_secs());
        }
        std::thread::sleep(pause);
        pause = pause.mul_f32(1.25).min(PAUSE_MAX);
    }
}
