//! The limits of unsigned growth in the operators' policy.
//!
//! The table `[growth]` of the policy. A policy without the table, or with a part of it, has the usual limits for the
//! rest. Growth beyond them is held for a signature. How much of a storage and of the memory may be promised is bounded
//! as well, and no signature for one guest changes that. Deliberately absent: applying the limits (the agent's
//! `gate::growth`).

use serde::Deserialize;

/// The limits of a host. Each day is the last 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GrowthLimits {
    /// GiB by which the disks of all guests become larger, those of new guests whole.
    pub disk_gib_per_day: u32,
    /// And of one guest.
    pub guest_disk_gib_per_day: u32,
    /// MiB by which memory and swap of all guests become more.
    pub memory_mib_per_day: u32,
    /// And of one guest.
    pub guest_memory_mib_per_day: u32,
    /// Cores that all guests get more.
    pub cores_per_day: u32,
    /// And one guest.
    pub guest_cores_per_day: u32,
    pub guests_per_day: u32,
    /// New volumes of all guests.
    pub volumes_per_day: u32,
    /// And of one guest.
    pub guest_volumes_per_day: u32,
    /// How much of a storage may be promised to the disks on it, all together, in per cent of its size. More than 100 lets
    /// thin disks be promised more than there is.
    pub disk_percent: u32,
    /// How much of the node's memory may be promised to guests, all together, in per cent.
    pub memory_percent: u32,
    /// MiB of it that are left to the node itself.
    pub memory_reserve_mib: u32,
}

impl Default for GrowthLimits {
    fn default() -> Self {
        Self::FIRST
    }
}

/// Why limits are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrowthLimitsError {
    /// No guest could ever be made on any storage, even with signatures.
    #[error("growth.{0} is 0: no guest could be made or grow, even with a signature; at least 1 is needed")]
    Zero(&'static str),
    /// More than anybody means.
    #[error("growth.{name} is {percent} %, and at most {max} % are possible", max = GrowthLimits::PERCENT_MAX)]
    Percent { name: &'static str, percent: u32 },
}

impl GrowthLimits {
    /// A first day with a hundred guests of usual size, and a large guest that doubles.
    pub const FIRST: Self = Self {
        disk_gib_per_day: 4_096,
        guest_disk_gib_per_day: 1_024,
        memory_mib_per_day: 262_144,
        guest_memory_mib_per_day: 65_536,
        cores_per_day: 512,
        guest_cores_per_day: 64,
        guests_per_day: 100,
        volumes_per_day: 400,
        guest_volumes_per_day: 16,
        disk_percent: 200,
        memory_percent: 100,
        memory_reserve_mib: 1_024,
    };

    /// A storage that is promised a hundred times over is none that anybody watches.
    pub const PERCENT_MAX: u32 = 10_000;

    pub(crate) fn check(&self) -> Result<(), GrowthLimitsError> {
        for (name, percent) in [("disk_percent", self.disk_percent), ("memory_percent", self.memory_percent)]
        {
            match percent {
                0 => return Err(GrowthLimitsError::Zero(name)),
                1..=Self::PERCENT_MAX => {}
                _ => return Err(GrowthLimitsError::Percent { name, percent }),
            }
        }
        Ok(())
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
        let old = policy("version = 3\n[backups]\nper_day = 96\n").unwrap();
        assert_eq!(old.growth, GrowthLimits::default());
        let part = policy("version = 3\n[growth]\ndisk_gib_per_day = 10\nguests_per_day = 0\n").unwrap();
        let wanted = GrowthLimits { disk_gib_per_day: 10, guests_per_day: 0, ..GrowthLimits::default() };
        assert_eq!(part.growth, wanted);
        assert_eq!(Policy::growth_of("version = 3\n[growth]\ncores_per_day = 7\n").unwrap().cores_per_day, 7);
        assert_eq!(Policy::growth_of("").unwrap(), GrowthLimits::default());
    }

    #[test]
    fn limits_that_mean_nothing_are_refused() {
        for (text, why) in [
            ("disk_percent = 0", "growth.disk_percent is 0: no guest could"),
            ("memory_percent = 0", "growth.memory_percent is 0: no guest could"),
            ("memory_percent = 10001", "growth.memory_percent is 10001 %"),
        ] {
            let refused = policy(&format!("version = 1\n[growth]\n{text}\n")).unwrap_err();
            let source = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
            assert!(format!("{refused} {source}").contains(why), "{text}: {refused}");
        }
        assert!(policy("version = 1\n[growth]\ndisk_tib_per_day = 1\n").is_err(), "an unknown field");
    }
}
