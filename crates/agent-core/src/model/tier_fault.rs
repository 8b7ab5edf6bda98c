//! Faults of one tier of a guest's protection.
//!
//! The same facts stand in the guest's report as sentences. Here they are values, each with the time since when it is so.

use holdfast_protocol::protection::Tier;
use jiff::Timestamp;

/// A fault of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierFault {
    /// Of which tier.
    pub tier: Tier,
    pub kind: TierFaultKind,
}

/// What is wrong with a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierFaultKind {
    /// The newest backup was taken of running programs, where they should have stood still.
    CrashConsistent {
        /// When it was taken.
        taken_at: Timestamp,
        /// Why the programs ran.
        why: String,
    },
    /// The last try came to nothing.
    Failed {
        /// For which point of the schedule.
        point: Timestamp,
        /// When it began.
        last: Timestamp,
        /// How often that point was tried.
        times: u32,
    },
    /// No backup came of a point, and a later point has come since.
    Late {
        /// The oldest point without a backup.
        since: Timestamp,
        /// When the newest backup was taken, where there is one.
        newest: Option<Timestamp>,
    },
    /// None began within its window.
    Missed {
        /// For which point of the schedule.
        point: Timestamp,
        /// When the window ended.
        ended: Timestamp,
    },
    /// Backups on record are not listed by their storage any more.
    Missing {
        /// When the first of them was not listed.
        since: Timestamp,
        /// How many.
        count: usize,
        /// The archive of the newest.
        newest: String,
    },
    /// The newest backup is not encrypted with the promised key.
    Unsealed {
        /// When it was taken.
        taken_at: Timestamp,
        archive: String,
    },
    /// The last restore test failed.
    TestFailed {
        /// When.
        at: Timestamp,
        /// What failed, in words.
        why: String,
    },
    /// No backup was proved within the time of the promise.
    TestOverdue {
        /// Since when.
        since: Timestamp,
        /// What was proved last, in words.
        why: String,
    },
}
