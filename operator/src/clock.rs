//! System clock, read here only.

use jiff::Timestamp;

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
