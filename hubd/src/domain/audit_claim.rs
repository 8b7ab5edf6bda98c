//! The bound on the audit number that a host may claim.
//!
//! In: the stored number, the number that the host claims, and the time since the host last reported. Out: the number
//! to store. The hub sends this number back to the host permanently. With a number that no audit can have reached, the
//! host would take its own records for an older copy. A real older copy would then never be noticed again. So the
//! number grows no faster than an agent writes.

use jiff::SignedDuration;

/// Lines that are believed in one report, whatever the time: an agent that enrolls again brings its audit with it, and
/// reports all of it within some reports.
const AT_ONCE: u64 = 10_000;

/// Lines per second. Each line is synced to a disk before its effect; no host writes so many for long.
const PER_SECOND: u64 = 100;

/// The highest number that is believed.
#[must_use]
pub fn believed(kept: u64, claimed: u64, since_heard: Option<SignedDuration>) -> u64 {
    let seconds = since_heard.map_or(0, |since| u64::try_from(since.as_secs()).unwrap_or(0));
    let most = kept.saturating_add(AT_ONCE).saturating_add(seconds.saturating_mul(PER_SECOND));
    kept.max(claimed.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_grows_no_faster_than_it_is_written() {
        let hour = Some(SignedDuration::from_hours(1));
        assert_eq!(believed(0, 7, None), 7);
        assert_eq!(believed(7, 3, hour), 7, "it never falls");
        assert_eq!(believed(7, 300_000, hour), 300_000);
        assert_eq!(believed(7, u64::MAX, None), 10_007);
        assert_eq!(believed(7, u64::MAX, hour), 370_007);
        let back = Some(SignedDuration::from_hours(-1));
        assert_eq!(believed(7, u64::MAX, back), 10_007, "a clock that was set back gives nothing");
        assert_eq!(believed(u64::MAX, u64::MAX, hour), u64::MAX);
    }
}
