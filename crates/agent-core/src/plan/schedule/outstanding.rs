//! The outstanding point of a tier, by what exists of it.
//!
//! In: what is known of the guest, a tier of its promise, and the points around now. Out: what is owed. What exists of the
//! tier is looked through once, for the point up to which it settles what is owed ([`stands`]); the rest follows from that
//! and the time, so a plan that knows the first works out only the second. Deliberately absent: what is begun.

use holdfast_protocol::protection::{Consistency, Schedule, Tier};
use holdfast_protocol::report::Running;
use jiff::Timestamp;

use super::facts::{Promised, ScheduleFacts, is_good};
use super::points::Around;
use super::tier::{self, Controller, Facts, OutstandingPoint, State};
use crate::model::limits;
use crate::model::records::{BackupRecord, SnapshotRecord};

/// What is owed of one tier of a guest: what is promised, and what was promised before it was raised until that has produced
/// a backup. So no promise that is never carried out takes another one's place.
#[must_use]
pub fn outstanding(known: &ScheduleFacts<'_>, promised: &Promised<'_>, around: Around) -> OutstandingPoint {
    let points = |schedule: &Schedule| Around::of(schedule, known.time.at);
    standing(known, promised, (around, stands(known, promised)), points)
}

/// The same, where it is known up to which point the tier is settled. `points` gives those of an earlier schedule.
pub(super) fn standing<'a>(
    known: &ScheduleFacts<'a>,
    promised: &Promised<'_>,
    (around, settled): (Around, Option<Timestamp>),
    points: impl FnOnce(&'a Schedule) -> Around,
) -> OutstandingPoint {
    let new = by_promise(known, promised, (around, settled));
    let record = known.tiers.iter().find(|record| record.tier == promised.tier);
    let Some(earlier) = record.and_then(|record| record.earlier.as_deref()) else { return new };
    let produced = |backup: &BackupRecord| {
        let of_tier = backup.tier == Some(promised.tier) || promised.consistency == Consistency::Crash;
        of_tier && backup.taken_at >= earlier.until
    };
    if known.good(promised).any(produced) {
        return new;
    }
    let promised = Promised { schedule: &earlier.schedule, consistency: earlier.consistency, ..*promised };
    let old = by_promise(known, &promised, (points(&earlier.schedule), stands(known, &promised)));
    let begins = |outstanding: &OutstandingPoint| outstanding.last.is_some_and(|due| due.state == State::Now);
    let missed = old.last.filter(tier::DueBackup::is_missed);
    let last = if begins(&old) && !begins(&new) { old.last } else { new.last };
    let overdue = new.overdue.or(old.overdue).or(missed.map(|due| due.point));
    OutstandingPoint { last, overdue, ..new }
}

/// Up to which point of a tier what exists settles what is owed.
pub(super) fn stands(known: &ScheduleFacts<'_>, promised: &Promised<'_>) -> Option<Timestamp> {
    let latest = known.latest();
    match promised.tier {
        Tier::Snapshot => scheduled(known.snapshots).filter(|point| *point <= latest).max(),
        Tier::Local | Tier::OffSite => {
            known.backups.iter().filter_map(|backup| stands_for(backup, promised, latest)).max()
        }
    }
}

/// What is owed by one promise alone.
fn by_promise(
    known: &ScheduleFacts<'_>,
    promised: &Promised<'_>,
    (around, stands): (Around, Option<Timestamp>),
) -> OutstandingPoint {
    let time = known.time;
    let record = known.tiers.iter().find(|record| record.tier == promised.tier);
    let latest = known.latest();
    let heard = known.hello.is_some_and(|hello| {
        time.at.duration_since(hello.at).abs() < limits::CONTROLLER_SILENT && known.run == Running::Running
    });
    let waits = promised.consistency == Consistency::Application && heard && !known.still.is_spent();
    tier::judge(&Facts {
        guest: known.guest,
        tier: promised.tier,
        schedule: promised.schedule,
        around,
        record,
        // Snapshots are not hurried, which are no backups.
        renumbered: promised.target.and(known.renumbered).filter(|one| one.at <= latest),
        stands,
        controller: if waits { Controller::WaitedFor } else { Controller::NotWaitedFor },
        time,
    })
}

/// The points for which snapshots stand that a schedule took.
pub(super) fn scheduled(snapshots: &[SnapshotRecord]) -> impl Iterator<Item = Timestamp> {
    snapshots.iter().filter_map(|snapshot| snapshot.point)
}

/// Up to which point of a tier a backup settles what is owed. What says that it was taken later than now settles nothing.
fn stands_for(backup: &BackupRecord, promised: &Promised<'_>, latest: Timestamp) -> Option<Timestamp> {
    // A backup that was not taken for the tier holds no programs that stood still.
    let meant = backup.tier.is_some() || promised.consistency == Consistency::Crash;
    let at = backup.point.unwrap_or(backup.taken_at);
    (meant && is_good(backup, promised) && at <= latest).then_some(at)
}
