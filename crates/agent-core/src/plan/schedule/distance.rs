//! The least distance of two backups of one tier.
//!
//! A backup is not begun sooner than a fixed time after the one before it, nor before as much time has passed since
//! that one as it took. So copies take at most half of the time under any schedule. Another try for the same point has
//! waits of its own. Snapshots are bounded by their count.

use holdfast_protocol::protection::Tier;
use jiff::{SignedDuration, Timestamp};

use super::tier::{Facts, PointOf};
use crate::model::limits;

/// The least time from the beginning of one backup to that of the next.
fn least(facts: &Facts<'_>) -> Option<SignedDuration> {
    match facts.tier {
        Tier::Snapshot => None,
        Tier::Local | Tier::OffSite => {
            let took = facts.record.and_then(|record| record.took).unwrap_or_default();
            Some(took.saturating_mul(2).max(limits::BACKUP_DISTANCE))
        }
    }
}

/// The time before which nothing is begun for a point.
pub(super) fn not_before(facts: &Facts<'_>, (point, of): (Timestamp, PointOf)) -> Option<Timestamp> {
    let tried = facts.record.and_then(|record| record.tried)?;
    // A try with a time in the future was made by a clock that was wrong.
    let counts = of == PointOf::Schedule && tried.point != point && tried.last <= facts.time.at;
    let least = least(facts).filter(|_| counts)?;
    Some(tried.last.checked_add(least).unwrap_or(Timestamp::MAX))
}

/// The least time, where the points around now are closer than that, so that some are left out.
pub(super) fn left_out(facts: &Facts<'_>) -> Option<SignedDuration> {
    let (last, next) = (facts.around.last?, facts.around.next?);
    least(facts).filter(|least| next.duration_since(last) < *least)
}
