//! Our records of backups, their tiers and their tests.

use std::time::Duration;

use super::{
    Consistency, Deserialize, Disks, DownStack, GuestUid, HardwareAddress, KeyFingerprint, Label,
    OperationId, Schedule, Serialize, SignedDuration, StorageName, TestVerdict, Tier, Timestamp, Took, Vmid,
    VolumeId,
};

/// A backup that one of our operations took and found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupRecord {
    pub archive: VolumeId,
    /// Of which guest.
    pub guest: GuestUid,
    /// The guest's number then.
    pub vmid: Vmid,
    /// Where it is stored.
    pub storage: StorageName,
    pub bytes: u64,
    /// When, by Proxmox's clock.
    pub taken_at: Timestamp,
    /// The operation that took it.
    pub taken_by: OperationId,
    /// Why it was taken.
    pub why: BackupWhy,
    /// Which tier it was taken for; none, where it was taken for no policy.
    pub tier: Option<Tier>,
    /// The point of the schedule that it covers, where the agent took it by itself.
    pub point: Option<Timestamp>,
    /// The key it is encrypted with, as the storage that lists it reports.
    pub sealed: Option<KeyFingerprint>,
    /// Since when its storage answers without listing it. Such a backup protects no guest.
    pub missing_since: Option<Timestamp>,
    /// What it holds, and why it is so; none for those that were taken before labels were.
    pub label: Option<Label>,
    /// Which of its guest's mounts it holds; none for those that were taken before that was written down.
    pub mounts: Option<HeldMounts>,
    /// The hardware address that its guest's first network had then; none for those that were taken before that was written
    /// down.
    pub hardware: Option<HardwareAddress>,
    /// The disks of its guest then; none for those that were taken before that was written down, and where one of them could
    /// not be written out again.
    pub disks: Option<Disks>,
    /// How long its operation took; none for those that were taken beside other work or before that was written down.
    pub took: Option<Duration>,
}

/// Which of its guest's mounts a backup holds, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldMounts {
    pub holds: Vec<String>,
    /// Not these: their data is for another target.
    pub left_out: Vec<String>,
}

impl BackupRecord {
    /// Whether it is one of a tier with the target `target`. A backup that was taken for no policy counts where it is
    /// stored.
    #[must_use]
    pub fn is_of(&self, tier: Tier, target: &StorageName) -> bool {
        self.tier.map_or_else(|| self.storage == *target, |own| own == tier)
    }
}

/// What was tried for a guest's tier, and since when the tier is promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierRecord {
    /// Of which guest.
    pub guest: GuestUid,
    pub tier: Tier,
    /// Since when it is promised. Points of the calendar before that are not owed.
    pub since: Timestamp,
    /// What was begun for the last point for which anything was.
    pub tried: Option<PointAttempt>,
    /// How long the last backup of it took that came to something.
    pub took: Option<SignedDuration>,
    /// What was promised before it was raised. It stays due until what is promised now has produced a backup.
    pub earlier: Option<Box<EarlierSchedule>>,
}

impl TierRecord {
    /// Of a tier that is promised since then, and for which nothing was begun.
    #[must_use]
    pub const fn new(guest: GuestUid, tier: Tier, since: Timestamp) -> Self {
        Self { guest, tier, since, tried: None, took: None, earlier: None }
    }
}

/// When backups of a tier were due, and what they had to hold, before a document raised that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierSchedule {
    pub schedule: Schedule,
    /// What they had to hold.
    pub consistency: Consistency,
    /// When it was raised.
    pub until: Timestamp,
}

/// What was begun for one point of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointAttempt {
    pub point: Timestamp,
    pub times: u32,
    /// So often of these after its window.
    pub late: u32,
    pub last: Timestamp,
}

/// Stacks that were stopped for a backup and would not start again, as their controller said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StacksDown {
    /// In which guest.
    pub guest: GuestUid,
    pub down: Vec<DownStack>,
    /// When that was said.
    pub at: Timestamp,
}

/// What became of a backup that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRecord {
    pub operation: OperationId,
    /// Whose backup it was.
    pub guest: GuestUid,
    pub archive: VolumeId,
    /// The operation that took the backup.
    pub backup: OperationId,
    /// When the backup was taken.
    pub taken_at: Timestamp,
    /// What was seen.
    pub verdict: TestVerdict,
    /// Why, in words.
    pub why: String,
    /// When the test began.
    pub began_at: Timestamp,
    /// When it was seen.
    pub at: Timestamp,
    /// How large the backup was when it was tried.
    pub bytes: Option<u64>,
    /// How long its two parts took.
    pub took: Took,
}

/// Why a backup is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupWhy {
    /// The guest was just made.
    First,
    /// Its policy says so.
    Schedule,
    Asked,
}
