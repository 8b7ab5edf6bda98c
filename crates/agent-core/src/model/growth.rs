//! Growth of guests: amounts, daily ledger, signed permits.
//!
//! Growth is counted when its operation is opened and given back only where the making of a guest was taken back whole. Nothing gives it back
//! that happens later: neither a smaller size nor the end of the guest. Deliberately absent: limits and judgements
//! (`gate/growth`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use holdfast_protocol::id::{GuestName, GuestUid, IdError, JobId, VolumeName};
use holdfast_protocol::measure::GuestMeasure;
use holdfast_trust::growth::GrowthLimits;
use jiff::Timestamp;

/// What one or more operations add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub cores: u64,
    pub memory_mib: u64,
    pub swap_mib: u64,
    pub disk_gib: u64,
    pub guests: u64,
    pub volumes: u64,
}

impl Amount {
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            cores: self.cores.saturating_add(more.cores),
            memory_mib: self.memory_mib.saturating_add(more.memory_mib),
            swap_mib: self.swap_mib.saturating_add(more.swap_mib),
            disk_gib: self.disk_gib.saturating_add(more.disk_gib),
            guests: self.guests.saturating_add(more.guests),
            volumes: self.volumes.saturating_add(more.volumes),
        }
    }
}

/// Which part of a guest grows. A signature serves for each part once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The guest is made.
    Guest,
    /// Cores, memory and swap.
    Sizes,
    /// The root disk.
    Rootfs,
    /// A volume, made or enlarged.
    Volume(VolumeName),
}

const VOLUME: &str = "volume:";

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guest => f.write_str("guest"),
            Self::Sizes => f.write_str("sizes"),
            Self::Rootfs => f.write_str("rootfs"),
            Self::Volume(name) => write!(f, "{VOLUME}{name}"),
        }
    }
}

impl FromStr for Part {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match text {
            "guest" => Ok(Self::Guest),
            "sizes" => Ok(Self::Sizes),
            "rootfs" => Ok(Self::Rootfs),
            other => other.strip_prefix(VOLUME).unwrap_or(other).parse().map(Self::Volume),
        }
    }
}

/// By what growth passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// There was enough left of the day.
    Budget,
    /// Operators signed for it.
    Signed(JobId),
    /// A lost guest comes back.
    Recovery,
}

/// The growth of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Which part grows.
    pub part: Part,
    /// By how much.
    pub amount: Amount,
    /// Why it may.
    pub passed: Passed,
    /// When it is counted, by the time that schedules go by: a wall clock that jumps gives no second day.
    pub at: Timestamp,
    /// On which storages, in GiB. Only the plan asks for it.
    pub disks: Vec<(String, u64)>,
}

/// Whether an operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderWay {
    /// It has not.
    Yes,
    No,
}

/// Growth that was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    pub guest: GuestUid,
    /// When its operation was opened.
    pub at: Timestamp,
    /// By how much.
    pub amount: Amount,
    /// Why it could.
    pub passed: Passed,
    /// Whether its operation is under way.
    pub under_way: UnderWay,
}

/// What operators signed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    pub job: JobId,
    pub guest: GuestUid,
    pub name: GuestName,
    /// How large it was when they signed; nothing, for one that was to be made.
    pub from: Option<GuestMeasure>,
    /// How large it may become.
    pub to: GuestMeasure,
    /// The parts for which it was used.
    pub used: BTreeSet<Part>,
}

/// All that is written down about growth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growths {
    /// What documents may let guests grow by without a signature.
    pub limits: GrowthLimits,
    /// What was counted within the last 24 hours, and some of what is older, without guests whose making was taken back whole.
    pub ledger: Vec<Grown>,
    /// What operators signed for and is not over.
    pub permits: Vec<Permit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_read_back() {
        for text in ["guest", "sizes", "rootfs", "volume:db", "volume:guest"] {
            assert_eq!(text.parse::<Part>().unwrap().to_string(), text);
        }
        assert!("volume:../x".parse::<Part>().is_err());
    }
}
