//! Clocks: time of day, and time since boot for all bounds.
//!
//! Time since boot includes suspend, and cannot be set.

use std::time::Duration;

use jiff::Timestamp;

use crate::file::{self, Eyes};
use crate::paths::Paths;

const UPTIME_BYTES_MAX: usize = 128;

/// The current time, to the second: what is shown to people needs no more.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// The time since boot, including suspend. In a container this is the host's boot or the container's start, so only
/// spans and moments of one boot are compared. None when `/proc` does not show it.
pub fn since_boot(paths: &Paths) -> Option<Duration> {
    let bytes = file::read(&paths.uptime(), UPTIME_BYTES_MAX, Eyes::All).ok().flatten()?;
    parse(std::str::from_utf8(&bytes).ok()?)
}

/// Seconds with two places, then the same for idle time.
fn parse(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_ascii_whitespace().next()?.split_once('.')?;
    let hundredths: u64 = if part.len() == 2 { part.parse().ok()? } else { return None };
    Some(Duration::from_secs(whole.parse().ok()?) + Duration::from_millis(hundredths * 10))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_time_since_boot_is_read_to_the_hundredth() {
        assert_eq!(parse("12345.67 99.00\n"), Some(Duration::from_millis(12_345_670)));
        for bad in ["", "x.10", "1", "1.5 2", "-1.00 2", "99999999999999999999.00"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert!(since_boot(&Paths::new(Path::new("/"))).is_some());
    }
}
