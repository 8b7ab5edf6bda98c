//! Conditions on due backups and slow restores.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::Condition;

use super::tier::{DueBackup, OutstandingPoint, PointOf, State};
use super::{Promised, ScheduleFacts, is_good};
use crate::operation::Begun;
use crate::plan::restore_test_status::Tested;

/// What a tier's points bring.
const fn what(tier: Tier) -> &'static str {
    match tier {
        Tier::Snapshot => "snapshot",
        Tier::Local => "local backup",
        Tier::OffSite => "off-site backup",
    }
}

/// Why something is begun.
pub(super) fn reason(tier: Tier, due: &DueBackup) -> String {
    let late = match due.begun {
        Begun::InTime => "",
        Begun::Late => ", caught up after its window",
    };
    let what = what(tier);
    match due.of {
        PointOf::Schedule => format!("the {what} of {} is due{late}", due.point),
        PointOf::Return => {
            format!("it came back from a loss at {}, and the {what} of that is due{late}", due.point)
        }
        PointOf::Swap => format!(
            "another container took its place at {}, so the newest {what} is of an earlier state: one is due{late}",
            due.point
        ),
    }
}

/// What is missed, and what fails.
pub(super) fn tier(
    promised: &Promised<'_>,
    outstanding: &OutstandingPoint,
    known: &ScheduleFacts<'_>,
) -> Vec<Condition> {
    let of_backups = missing(promised, known).into_iter().chain(unsealed(promised, known));
    let mut reported: Vec<Condition> = of_backups.chain(failed(promised, known)).collect();
    reported.extend(left_out(promised.tier, outstanding));
    reported.extend(overdue(promised.tier, outstanding));
    let Some(due) = outstanding.last else { return reported };
    let (what, point) = (what(promised.tier), due.point);
    let times = times(due.tried.map_or(0, |tried| tried.times));
    let next = outstanding.next.map_or_else(String::new, |next| format!("; the next one is due at {next}"));
    // A snapshot is no backup, and one that is missed is no backup that is missed.
    let is_backup = promised.tier != Tier::Snapshot;
    let code = if due.is_missed() && is_backup { ErrorCode::BackupMissed } else { ErrorCode::Unavailable };
    let message = match (due.is_missed(), due.state) {
        (_, State::Settled | State::Later(_)) => return reported,
        // The try that is counted may be the one under way.
        (_, State::Again(_) | State::GivenUp) if known.open.is_some() => return reported,
        (_, State::GivenUp) => {
            format!("the {what} of {point} came to nothing, tried {times}: look at its operations{next}")
        }
        (true, State::Again(at)) => {
            format!(
                "the {what} of {point} is missed and was tried {times}, next at {at}: look at its operations{next}"
            )
        }
        (true, _) => {
            format!("the {what} of {point} did not begin within its window: it is caught up{next}")
        }
        (false, State::Again(at)) => {
            format!("the {what} of {point} was tried {times}, next at {at}: look at its operations")
        }
        (false, State::Waits(_) | State::Now) => return reported,
    };
    reported.push(Condition { code, message });
    reported
}

/// Points that nothing comes of, since they are closer than backups may be.
fn left_out(tier: Tier, outstanding: &OutstandingPoint) -> Option<Condition> {
    let least = outstanding.left_out?.as_secs().unsigned_abs().div_ceil(60);
    let message = format!(
        "its {} schedule is denser than backups may be: {least} minutes lie between the beginnings of two, and points that come \
         sooner are left out; an operator signs `loosen_policy` for fewer points",
        what(tier)
    );
    Some(Condition { code: ErrorCode::Unavailable, message })
}

/// Points that nothing came of, although later ones came.
fn overdue(tier: Tier, outstanding: &OutstandingPoint) -> Option<Condition> {
    let since = outstanding.overdue.filter(|_| !outstanding.last.is_some_and(|due| due.is_missed()))?;
    let code = if tier == Tier::Snapshot { ErrorCode::Unavailable } else { ErrorCode::BackupMissed };
    let message = format!("no {} came of any point since {since}: look at its operations", what(tier));
    Some(Condition { code, message })
}

/// How often something was done.
pub fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

/// Backups that were taken for this tier and are not listed any more. The newest is named.
fn missing(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<Condition> {
    let target = promised.target?;
    let missing = || {
        known
            .backups
            .iter()
            .filter(|backup| backup.is_of(promised.tier, target) && backup.missing_since.is_some())
    };
    let newest = missing().next_back()?;
    let message = format!(
        "{} of its {} backups are not listed by {} any more and protect nothing, the newest is {}: find out who took it away",
        missing().count(),
        promised.tier,
        newest.storage,
        newest.archive
    );
    Some(Condition { code: ErrorCode::BackupMissing, message })
}

/// The newest backup of a tier that should be encrypted and is not.
fn unsealed(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<Condition> {
    let (key, target) = (promised.key?, promised.target?);
    let of_tier = |backup: &&crate::model::records::BackupRecord| {
        backup.is_of(promised.tier, target) && backup.missing_since.is_none()
    };
    let newest = known.backups.iter().rfind(of_tier).filter(|backup| !is_good(backup, promised))?;
    let message = format!(
        "its newest {} backup {} is not encrypted with key {key}: it counts as none; look at the entry of storage {target}",
        promised.tier, newest.archive
    );
    Some(Condition { code: ErrorCode::BackupUnsealed, message })
}

/// A restore test that failed, until one proves a backup of the tier.
fn failed(promised: &Promised<'_>, known: &ScheduleFacts<'_>) -> Option<Condition> {
    let tested = promised.test_every.map(|_| Tested::of(promised, known))?;
    let (failure, tier) = (tested.failure()?, promised.tier);
    let next = match tested.newer_than_the_failed(known, promised) {
        Some(_) => format!("the {tier} backup that came after it is tried next"),
        None => format!("it is tried again with the next {tier} backup, or after a day"),
    };
    let message = format!("{failure}; find out why it does not come back: {next}");
    Some(Condition { code: ErrorCode::RestoreTestFailed, message })
}
