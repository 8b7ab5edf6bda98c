//! Waiting for a state of the world that another process brings about.
//!
//! There is nothing to be woken by across process borders, so the state is asked for again and again, up to a bound that
//! is generous: it ends a hang, it measures nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Between the first two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest pause. Most looks start a program, and many tests look at a time.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Looks until there is something to see.
///
/// # Errors
/// What `look` fails with, or that `what` did not come to be within `bound`.
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
