//! Backup policies: a schedule, retention and target per tier.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
use super::retention::Retention;
use super::zone::Zone;
use crate::id::{KeyFingerprint, PolicyName, StorageName};
use crate::size::{JitterMinutes, TestDays, WindowMinutes};

/// Policies per document.
pub const POLICIES_MAX: usize = 64;

/// Calendar expressions per schedule.
pub const CALENDARS_MAX: usize = 8;

/// How far back a point is looked for, in steps: an hour, a day and a bit, a week, a month, a year. The last one holds the
/// 29th of February, and on a given weekday at that.
const LOOK_BACK: [jiff::SignedDuration; 6] = [
    jiff::SignedDuration::from_hours(1),
    jiff::SignedDuration::from_hours(26),
    jiff::SignedDuration::from_hours(8 * 24),
    jiff::SignedDuration::from_hours(32 * 24),
    jiff::SignedDuration::from_hours(367 * 24),
    jiff::SignedDuration::from_hours(60 * 366 * 24),
];

/// A policy that guests can be under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupPolicy {
    /// What guests call it.
    pub name: PolicyName,
    /// Its tiers.
    pub tiers: Tiers,
}

/// Which of the tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// In the same pool, for mishaps of an hour.
    Snapshot,
    /// On another storage of the same host, or near it.
    Local,
    /// In another place, encrypted before it leaves.
    OffSite,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Snapshot => "snapshot",
            Self::Local => "local",
            Self::OffSite => "off-site",
        })
    }
}

/// A tier each, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    /// In the same pool: lost with it, so it is no backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotTier>,
    /// `vzdump` to a directory, NFS or CIFS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<BackupTier>,
    /// Proxmox Backup Server, encrypted with the host's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_site: Option<OffSiteTier>,
}

impl Tiers {
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.snapshot.is_none() && self.local.is_none() && self.off_site.is_none()
    }
}

/// Snapshots on a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotTier {
    /// When.
    pub schedule: Schedule,
    /// How many of them stay.
    pub retention: Retention,
}

/// Backups on a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupTier {
    /// The destination, by the name of a storage that was approved on the host.
    pub target: StorageName,
    /// When.
    pub schedule: Schedule,
    /// How many of them stay.
    pub retention: Retention,
    /// What they should hold.
    pub consistency: Consistency,
    /// A backup of it is restored for a test at least this often, where it is at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_test_days: Option<TestDays>,
}

/// Backups that leave the host, encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OffSiteTier {
    /// With which key: a backup that is not encrypted with it counts as none.
    pub key: KeyFingerprint,
    /// At least this often the server is requested to verify a backup of it, where it is at all. That shows whether the
    /// bytes are as they were sent; it proves nothing about the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_days: Option<TestDays>,
    /// The rest.
    pub backup: BackupTier,
}

/// What a backup holds of what the guest's programs were writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// As after a power cut.
    Crash,
    /// The programs were paused on request.
    Application,
}

impl Consistency {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Application => "application",
        }
    }
}

/// When backups are due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire")]
pub struct Schedule {
    /// At each point of each of these.
    pub at: Vec<Calendar>,
    /// In this zone.
    pub zone: Zone,
    /// Each is put off by a part of this, so that not all guests begin at once.
    pub jitter_min: JitterMinutes,
    /// A backup that could not begin within this time, from its point on, is missed, and reported.
    pub window_min: WindowMinutes,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Schedule")]
struct Wire {
    #[schemars(length(min = 1, max = 8))]
    at: Vec<Calendar>,
    zone: Zone,
    jitter_min: JitterMinutes,
    window_min: WindowMinutes,
}

impl TryFrom<Wire> for Schedule {
    type Error = &'static str;
    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let Wire { at, zone, jitter_min, window_min } = wire;
        if at.is_empty() || at.len() > CALENDARS_MAX {
            return Err("a schedule has 1 to 8 calendar expressions");
        }
        let twice = |(place, one): (usize, &Calendar)| {
            at.iter().take(place).any(|other| other.points() == one.points())
        };
        if at.iter().enumerate().any(twice) {
            return Err("two calendar expressions of the schedule are the same: leave one out");
        }
        if jitter_min.get() > window_min.get() {
            return Err("the jitter is longer than the window: what begins so late would be missed");
        }
        Ok(Self { at, zone, jitter_min, window_min })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: Vec<&str> = self.at.iter().map(Calendar::as_str).collect();
        write!(f, "{} ({})", at.join("; "), self.zone)
    }
}

impl Schedule {
    /// How many points a day has at most.
    #[must_use]
    pub fn points_per_day(&self) -> u32 {
        let of_day = |calendar: &Calendar| calendar.points().minutes_of_day().count();
        u32::try_from(self.at.iter().map(of_day).sum::<usize>()).unwrap_or(u32::MAX)
    }

    /// The first point after `after`; none only where the calendar itself ends.
    #[must_use]
    pub fn next(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        self.at.iter().filter_map(|calendar| calendar.next(&self.zone, after)).min()
    }

    /// The last point that is not after `at`; none, where none came within [`LOOK_BACK`].
    #[must_use]
    pub fn last(&self, at: jiff::Timestamp) -> Option<jiff::Timestamp> {
        // A point after a moment and not after `at` is between the two. The window is widened until it holds a point,
        // and then halved from the left for as long as it still holds one.
        let has = |from: jiff::Timestamp| self.next(from).filter(|point| *point <= at);
        let (mut left, mut found) = LOOK_BACK.iter().find_map(|back| {
            let left = at.checked_sub(*back).unwrap_or(jiff::Timestamp::MIN);
            Some((left, has(left)?))
        })?;
        let mut right = at;
        while right.duration_since(left) > jiff::SignedDuration::from_secs(1) {
            let middle = left.checked_add(right.duration_since(left) / 2).unwrap_or(right);
            match has(middle) {
                Some(later) => (left, found) = (middle, later),
                None => right = middle,
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests;
