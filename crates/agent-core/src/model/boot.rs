//! Times of one boot, on the clock that includes suspend.
//!
//! Bounds are counted on it that must neither stop while the host sleeps nor move when somebody sets the time. Readings
//! of two boots cannot be compared: whatever was counted is over then. Pure; the clock port reads them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which boot of the host: the kernel's id, or one of this run alone where the kernel's is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(String);

impl BootId {
    /// As the kernel writes it; none when that is not a single word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (plain && (1..=64).contains(&text.len())).then(|| Self(text.to_owned()))
    }

    /// One that no other run has: with it an agent that is started again takes every bound for passed.
    #[must_use]
    pub fn of_this_run(id: uuid::Uuid) -> Self {
        Self(format!("run-{id}"))
    }
}

/// A moment of one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootMoment {
    pub boot: BootId,
    /// Milliseconds of it, suspend included.
    pub ms: u64,
}

impl BootMoment {
    /// How much time passed since an earlier moment; none when that was in another boot.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Duration> {
        if self.boot != earlier.boot {
            return None;
        }
        self.ms.checked_sub(earlier.ms).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_boots_have_no_time_between_them() {
        let moment = |boot: &str, ms| BootMoment { boot: BootId::parse(boot).unwrap(), ms };
        assert_eq!(moment("a", 5).since(&moment("a", 2)), Some(Duration::from_millis(3)));
        assert_eq!(moment("b", 5).since(&moment("a", 2)), None);
        assert_eq!(moment("a", 1).since(&moment("a", 2)), None, "such a clock is none");
        for bad in ["", " ", "a b", "a\nb", &"x".repeat(65)] {
            assert_eq!(BootId::parse(bad), None, "{bad:?}");
        }
        assert_eq!(BootId::parse("0f-1\n"), BootId::parse("0f-1"));
    }
}
