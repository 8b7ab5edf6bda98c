//! Age of a token for Proxmox, and when its renewal is late.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// When a token was made, and how often it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenAge {
    /// Its role, such as `observe`.
    pub role: String,
    pub made_at: Timestamp,
    /// Its renewal is due after so many days.
    pub renewed_after_days: u16,
}

impl TokenAge {
    /// Where the settings say nothing.
    pub const RENEWED_AFTER_DAYS: u16 = 30;

    /// Root's timer tries several times a day. A host that was away, or a backup of hours, is over by then.
    const LATE_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);

    /// Whether it is to be made anew.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        now.duration_since(self.made_at) >= self.interval()
    }

    /// Since when its renewal is late.
    #[must_use]
    pub fn late_since(&self, now: Timestamp) -> Option<Timestamp> {
        let since = self.made_at.checked_add(self.interval().checked_add(Self::LATE_AFTER)?).ok()?;
        (now >= since).then_some(since)
    }

    /// Whole days since it was made.
    #[must_use]
    pub fn days(&self, now: Timestamp) -> i64 {
        now.duration_since(self.made_at).as_hours() / 24
    }

    fn interval(&self) -> SignedDuration {
        SignedDuration::from_hours(24 * i64::from(self.renewed_after_days))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_due_after_its_interval_and_late_a_week_after_that() {
        let made_at = Timestamp::from_second(1_800_000_000).unwrap();
        let age = TokenAge { role: "observe".to_owned(), made_at, renewed_after_days: 30 };
        let after = |days: i64| made_at + SignedDuration::from_hours(24 * days);
        assert!(!age.is_due(after(29)) && age.is_due(after(30)));
        assert_eq!((age.late_since(after(36)), age.late_since(after(40))), (None, Some(after(37))));
        assert_eq!(age.days(after(12)), 12);
        assert!(!age.is_due(after(-3)), "a clock that is behind makes nothing due");
    }
}
