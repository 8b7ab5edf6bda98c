//! Faults of a tier, as values for conditions.
//!
//! In: what is promised and known of one tier, and what is outstanding. Out: its faults, each with its time. The sentences of
//! the guest's report come from the same facts in [`super::conditions`]. A snapshot is no backup and has no fault.

use holdfast_protocol::protection::Tier;
use jiff::Timestamp;

use super::tier::{DueBackup, OutstandingPoint, State};
use super::{Promised, ScheduleFacts, is_good};
use crate::gate::retention::taken_at;
use crate::model::tier_fault::{TierFault, TierFaultKind};
use crate::operation::Begun;
use crate::plan::posture;
use crate::plan::restore_test_status::{Tested, within};

/// All faults of a tier. `stands` is the point up to which it is settled.
pub(super) fn tier(
    (promised, known): (&Promised<'_>, &ScheduleFacts<'_>),
    (stands, outstanding): (Option<Timestamp>, &OutstandingPoint),
    tested: &Tested<'_>,
) -> Vec<TierFault> {
    let tier = promised.tier;
    if tier == Tier::Snapshot {
        return Vec::new();
    }
    let found = [
        crash_consistent(promised, known),
        failed(promised, known, stands),
        late(promised, known, outstanding),
        missed(outstanding),
        missing(promised, known),
        unsealed(promised, known),
        test_failed(promised, tested),
        test_overdue(promised, known, tested),
    ];
    found.into_iter().flatten().map(|kind| TierFault { tier, kind }).collect()
}

fn crash_consistent(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<TierFaultKind> {
    let (backup, why) = posture::taken_of_running_programs(promised, known)?;
    Some(TierFaultKind::CrashConsistent { taken_at: taken_at(backup), why: why.to_owned() })
}

/// While an operation on the guest is open, the last try may be that operation, and only earlier ones are known to have failed.
/// A try that made a backup did not fail, also when that backup is missing since.
fn failed(
    promised: &Promised<'_>,
    known: &ScheduleFacts<'_>,
    stands: Option<Timestamp>,
) -> Option<TierFaultKind> {
    let record = known.tiers.iter().find(|record| record.tier == promised.tier)?;
    let tried = record.tried.filter(|tried| tried.last <= known.latest())?;
    let ended = if known.open.is_some() { tried.times.saturating_sub(1) } else { tried.times };
    let made =
        known.backups.iter().filter(|one| one.tier == Some(promised.tier) && one.point == Some(tried.point));
    let ended = ended.saturating_sub(u32::try_from(made.count()).unwrap_or(u32::MAX));
    let settled = stands.is_some_and(|stands| stands >= tried.point);
    (ended > 0 && !settled).then_some(TierFaultKind::Failed {
        point: tried.point,
        last: tried.last,
        times: ended,
    })
}

fn late(
    promised: &Promised<'_>,
    known: &ScheduleFacts<'_>,
    outstanding: &OutstandingPoint,
) -> Option<TierFaultKind> {
    let since = outstanding.overdue?;
    Some(TierFaultKind::Late { since, newest: known.good(promised).map(taken_at).max() })
}

/// A point that was tried within its window and failed is not missed: it failed.
fn missed(outstanding: &OutstandingPoint) -> Option<TierFaultKind> {
    let due = outstanding.last.filter(|due| due.begun == Begun::Late && is_open(due))?;
    let in_time = due.tried.map_or(0, |tried| tried.times.saturating_sub(tried.late));
    (in_time == 0).then_some(TierFaultKind::Missed { point: due.point, ended: due.ends })
}

const fn is_open(due: &DueBackup) -> bool {
    match due.state {
        State::Settled | State::Later(_) => false,
        State::Waits(_) | State::Again(_) | State::Now | State::GivenUp => true,
    }
}

fn missing(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<TierFaultKind> {
    let target = promised.target?;
    let gone = || known.backups.iter().filter(|backup| backup.is_of(promised.tier, target));
    let since = gone().filter_map(|backup| backup.missing_since).min()?;
    let count = gone().filter(|backup| backup.missing_since.is_some()).count();
    let newest = gone().rfind(|backup| backup.missing_since.is_some())?;
    Some(TierFaultKind::Missing { since, count, newest: newest.archive.to_string() })
}

fn unsealed(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<TierFaultKind> {
    let target = promised.key.and(promised.target)?;
    let listed = known
        .backups
        .iter()
        .rfind(|backup| backup.is_of(promised.tier, target) && backup.missing_since.is_none());
    let newest = listed.filter(|backup| !is_good(backup, promised))?;
    Some(TierFaultKind::Unsealed { taken_at: taken_at(newest), archive: newest.archive.to_string() })
}

fn test_failed(promised: &Promised<'_>, tested: &Tested<'_>) -> Option<TierFaultKind> {
    let failed = tested.failed.filter(|_| promised.test_every.is_some())?;
    Some(TierFaultKind::TestFailed { at: failed.at, why: tested.failure()? })
}

fn test_overdue(
    promised: &Promised<'_>,
    known: &ScheduleFacts<'_>,
    tested: &Tested<'_>,
) -> Option<TierFaultKind> {
    let since = test_due(promised, known, tested).filter(|due| known.time.at > *due)?;
    let why = match tested.proved {
        Some(at) => format!("the last proof is of {at:.0}"),
        None => "none was ever restored and checked".to_owned(),
    };
    Some(TierFaultKind::TestOverdue { since, why })
}

/// The last moment at which a proof is not overdue. Without any, the time counts from the promise, and only once there is a
/// backup to try.
pub(super) fn test_due(
    promised: &Promised<'_>,
    known: &ScheduleFacts<'_>,
    tested: &Tested<'_>,
) -> Option<Timestamp> {
    let every = promised.test_every?;
    let oldest = known.good(promised).map(taken_at).min()?;
    let record = known.tiers.iter().find(|record| record.tier == promised.tier);
    // A promise from the future was written by a clock that was wrong.
    let since = record.map(|record| record.since).filter(|since| *since <= known.latest());
    tested.proved.or(since).unwrap_or(oldest).checked_add(within(every)).ok()
}
