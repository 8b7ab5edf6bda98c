//! The one place that reads the clock.

use jiff::Timestamp;

/// Now, to the second: what is shown to people needs no more.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
