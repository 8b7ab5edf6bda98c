//! The end of an unused order to restore a host.
//!
//! The old machine hears of such an order from the hub alone, and may have been off for years. So the order has no end
//! of its own there. But a host that a hub went on serving after the order's end was not replaced by it, and no machine
//! can follow it any more. From then on, and after some hours for clocks that are off, the order stops no host.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

/// More than any clock is off by, and any operator waits for.
pub const UNUSED_ENDS_MAX_H: u16 = 24 * 365;

/// The rule of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RestoreRule {
    /// Hours after an order's end. A host that its hub served after that continues.
    pub unused_ends_h: u16,
}

impl RestoreRule {
    /// For a host without a policy: a day.
    pub const FIRST: Self = Self { unused_ends_h: 24 };

    /// Whether a host was last served after the end of an order that ended at `until`.
    #[must_use]
    pub fn is_over(self, until: Timestamp, served: Option<Timestamp>) -> bool {
        let grace = SignedDuration::from_hours(i64::from(self.unused_ends_h));
        let over = until.checked_add(grace).unwrap_or(Timestamp::MAX);
        served.is_some_and(|served| served > over)
    }
}

impl Default for RestoreRule {
    fn default() -> Self {
        Self::FIRST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_ends_for_a_host_that_the_hub_went_on_serving() {
        let at = |hours: i64| Timestamp::from_second(1_800_000_000 + hours * 3_600).unwrap();
        let rule = RestoreRule::FIRST;
        assert!(!rule.is_over(at(0), None), "never served since");
        assert!(!rule.is_over(at(0), Some(at(-1))), "a box that sleeps since before");
        assert!(!rule.is_over(at(0), Some(at(24))));
        assert!(rule.is_over(at(0), Some(at(25))));
        assert!(RestoreRule { unused_ends_h: 0 }.is_over(at(0), Some(at(1))));
        assert!(!RestoreRule { unused_ends_h: 48 }.is_over(at(0), Some(at(48))));
    }
}
