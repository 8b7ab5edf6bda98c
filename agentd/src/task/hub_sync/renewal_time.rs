//! When the certificate is renewed: pure.
//!
//! In: the certificate's life, the clock, what the hub says of its CA. Out: whether it is time. Renewal is due at two thirds
//! of the life, and up to a twelfth later, so that agents that were enrolled together do not come together. A clock that
//! is behind cannot delay it: the time since this certificate was taken up counts as well. A clock that is ahead cannot
//! make a renewal of every check-in.

use std::time::Duration;

use holdfast_protocol::enrol::Enrolled;
use holdfast_protocol::pin::Pin;
use jiff::Timestamp;

/// A renewal that failed is tried again after this, while hours are left.
const AGAIN: Duration = Duration::from_secs(600);

/// When the certificate in use is renewed.
#[derive(Debug)]
pub(super) struct RenewalTime {
    /// By the wall clock.
    due_at: Timestamp,
    /// By the time since the agent started.
    due_after: Duration,
    /// Nothing is asked for before.
    not_before: Duration,
    /// The same for the hub's new CA: it was asked for in vain.
    new_ca_from: Duration,
}

impl RenewalTime {
    /// For the certificate that is held when the agent starts. `spread` is a random number.
    pub(super) fn new(held: &Enrolled, monotonic: Duration, spread: u32) -> Self {
        let life = life(held);
        let jitter = (life / 12).mul_f64(f64::from(spread) / f64::from(u32::MAX));
        Self {
            due_at: held.renew_at().checked_add(jitter).unwrap_or(Timestamp::MAX),
            due_after: monotonic.saturating_add(life / 3 * 2).saturating_add(jitter),
            not_before: Duration::ZERO,
            new_ca_from: Duration::ZERO,
        }
    }

    /// Whether it is time. `new_ca` is a CA of the hub that is not known here.
    pub(super) fn is_due(&self, now: Timestamp, monotonic: Duration, new_ca: Option<Pin>) -> bool {
        let by_time = (now >= self.due_at || monotonic >= self.due_after) && monotonic >= self.not_before;
        by_time || (new_ca.is_some() && monotonic >= self.new_ca_from)
    }

    /// Another certificate is in use.
    pub(super) fn renewed(&mut self, held: &Enrolled, monotonic: Duration, spread: u32) {
        let pause = (life(held) / 24).max(AGAIN);
        *self = Self {
            not_before: monotonic.saturating_add(pause),
            new_ca_from: monotonic.saturating_add(AGAIN),
            ..Self::new(held, monotonic, spread)
        };
    }

    /// There is none yet.
    pub(super) fn failed(&mut self, monotonic: Duration) {
        self.not_before = monotonic.saturating_add(AGAIN);
        self.new_ca_from = self.not_before;
    }
}

/// Zero for one that ends before it begins.
fn life(held: &Enrolled) -> Duration {
    held.not_after.duration_since(held.not_before).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::pin::PinKind;

    use super::*;

    fn day() -> Enrolled {
        Enrolled {
            host_id: "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02".parse().unwrap(),
            host_name: "box1".parse().unwrap(),
            certificate_pem: String::new(),
            ca_pem: String::new(),
            ca_cross_pem: None,
            certificate_generation: 3,
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2026-11-02T00:00:00Z".parse().unwrap(),
        }
    }

    fn hours(count: u64) -> Duration {
        Duration::from_secs(count * 3600)
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-11-{text}Z").parse().unwrap()
    }

    #[test]
    fn it_is_due_at_two_thirds_and_at_most_a_twelfth_later() {
        let (first, last) =
            (RenewalTime::new(&day(), hours(0), 0), RenewalTime::new(&day(), hours(0), u32::MAX));
        assert!(
            !first.is_due(at("01T15:59:59"), hours(0), None)
                && first.is_due(at("01T16:00:00"), hours(0), None)
        );
        assert!(
            !last.is_due(at("01T17:59:59"), hours(0), None) && last.is_due(at("01T18:00:00"), hours(0), None)
        );
    }

    #[test]
    fn a_clock_that_is_behind_does_not_delay_it() {
        let time = RenewalTime::new(&day(), hours(5), 0);
        assert!(!time.is_due(at("01T00:00:00"), hours(20), None));
        assert!(time.is_due(at("01T00:00:00"), hours(21), None));
    }

    #[test]
    fn a_clock_that_is_ahead_does_not_renew_with_every_check_in() {
        let mut time = RenewalTime::new(&day(), hours(0), 0);
        assert!(time.is_due(at("20T00:00:00"), hours(0), None));
        time.renewed(&day(), hours(0), 0);
        assert!(!time.is_due(at("20T00:00:00"), Duration::from_secs(3599), None));
        assert!(time.is_due(at("20T00:00:00"), hours(1), None));
        // One that ends before it begins.
        let over = Enrolled { not_after: Timestamp::UNIX_EPOCH, ..day() };
        time.renewed(&over, hours(1), 7);
        assert!(!time.is_due(at("20T00:00:00"), hours(1) + Duration::from_secs(599), None));
    }

    #[test]
    fn a_new_ca_of_the_hub_is_asked_for_at_once_and_then_each_ten_minutes() {
        let pin = Some(Pin::of(PinKind::Leaf, b"ca"));
        let mut time = RenewalTime::new(&day(), hours(0), 0);
        assert!(time.is_due(at("01T00:00:00"), hours(0), pin));
        time.failed(hours(0));
        assert!(!time.is_due(at("01T00:00:00"), Duration::from_secs(599), pin));
        assert!(time.is_due(at("01T00:00:00"), Duration::from_secs(600), pin));
    }
}
