//! Limits on what documents request of backups without a signature.
//!
//! The table `[backups]` of the policy. A request beyond the limits is held for a signature. The time for which
//! programs are stopped for backups is bounded whatever is signed. A policy without the table, or with a part of it,
//! has the usual limits for the rest. Deliberately absent: applying the limits (the agent's `gate::protection`).

use holdfast_protocol::protection::Consistency;
use serde::Deserialize;

/// The limits of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackupLimits {
    /// Points of a backup schedule in a day, at most.
    pub per_day: u32,
    /// Points of a snapshot schedule in a day, at most.
    pub snapshots_per_day: u32,
    /// Backups that a retention keeps, all its rules together. `keep_all` is above every number.
    pub kept: u32,
    /// The longest window, in minutes: a missed backup is reported no later.
    pub window_min: u32,
    /// Up to which consistency a document may raise a tier that is in force.
    pub consistency: Consistency,
    /// Minutes in any 24 hours for which a guest's programs may be stopped for backups.
    pub still_min_per_day: u32,
}

impl Default for BackupLimits {
    fn default() -> Self {
        Self::FIRST
    }
}

/// Why limits are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// No schedule could ever be followed.
    #[error("backups.{0} is 0: nothing could be promised without a signature; at least 1 is needed")]
    Zero(&'static str),
    /// More than a day has.
    #[error("backups.{name} is {minutes} minutes, and a day has 1440")]
    Day { name: &'static str, minutes: u32 },
}

impl BackupLimits {
    /// Hourly backups, kept for years by the usual rules. The programs of a guest are stopped for an hour a day at
    /// most.
    pub const FIRST: Self = Self {
        per_day: 24,
        snapshots_per_day: 288,
        kept: 400,
        window_min: 720,
        consistency: Consistency::Crash,
        still_min_per_day: 60,
    };

    const DAY_MIN: u32 = 1_440;

    pub(crate) fn check(&self) -> Result<(), LimitsError> {
        let numbers = [
            ("per_day", self.per_day),
            ("snapshots_per_day", self.snapshots_per_day),
            ("kept", self.kept),
            ("window_min", self.window_min),
        ];
        if let Some((name, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return Err(LimitsError::Zero(name));
        }
        let minutes = [("window_min", self.window_min), ("still_min_per_day", self.still_min_per_day)];
        match minutes.into_iter().find(|(_, minutes)| *minutes > Self::DAY_MIN) {
            Some((name, minutes)) => Err(LimitsError::Day { name, minutes }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::operators::Operators;
    use crate::policy::{Policy, PolicyError};

    use super::*;

    fn policy(text: &str) -> Result<Policy, PolicyError> {
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIFhmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZm";
        let operators = Operators::parse(&format!("alice ssh-ed25519 {key}")).unwrap();
        Policy::parse(text, &operators)
    }

    #[test]
    fn a_policy_from_before_has_the_usual_limits() {
        let old = policy("version = 3\n[verbs.destroy_guest]\nsignatures = 1\n").unwrap();
        assert_eq!(old.backups, BackupLimits::default());
        let part = policy("version = 3\n[backups]\nper_day = 96\nconsistency = \"application\"\n").unwrap();
        let wanted =
            BackupLimits { per_day: 96, consistency: Consistency::Application, ..BackupLimits::default() };
        assert_eq!(part.backups, wanted);
        assert_eq!(Policy::backups_of("version = 3\n[backups]\nper_day = 96\n").unwrap().per_day, 96);
        assert_eq!(Policy::backups_of("").unwrap(), BackupLimits::default());
    }

    #[test]
    fn a_window_and_a_standstill_may_be_as_long_as_a_day() {
        let day = policy("version = 1\n[backups]\nwindow_min = 1440\nstill_min_per_day = 1440\n").unwrap();
        assert_eq!((day.backups.window_min, day.backups.still_min_per_day), (1_440, 1_440));
    }

    #[test]
    fn limits_that_mean_nothing_are_refused() {
        for (text, why) in [
            ("per_day = 0", "backups.per_day is 0"),
            ("kept = 0", "backups.kept is 0"),
            ("window_min = 1441", "backups.window_min is 1441 minutes"),
            ("still_min_per_day = 1441", "backups.still_min_per_day is 1441 minutes"),
        ] {
            let refused = policy(&format!("version = 1\n[backups]\n{text}\n")).unwrap_err();
            assert!(refused.to_string().contains(why), "{text}: {refused}");
        }
        assert!(policy("version = 1\n[backups]\nper_hour = 1\n").is_err(), "an unknown field");
    }
}
