//! Which backup is tried next, by what guests are promised.
//!
//! A tier whose promise names an interval of tests has its newest good backup tried when its last test is nearly as old as
//! that (seven eighths), so that the proof is young enough while it waits for its turn: each tier for itself, since a local
//! backup that comes back says nothing about an off-site one and its key. One that failed is tried again when there is a
//! newer backup, and once a day until it comes back; one that could not be run, within the hour. One test at a time on a box,
//! the longest overdue first. What comes in: promises, backups, tests. What goes out: at most one operation, and when to look
//! again. Deliberately absent: what a verdict means for a guest.

use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::size::TestDays;
use jiff::{SignedDuration, Timestamp};

use super::schedule::{Known, Promised, known, promised};
use super::tested::Tested;
use super::{Action, Context, Plan};
use crate::gate::of::effects;
use crate::gate::retention::taken_at;
use crate::gate::{Provenance, Verdict, gate};
use crate::model::limits;
use crate::model::policy::TestPlace;
use crate::model::record::{BackupRecord, GuestRecord, Place, TestRecord};
use crate::operation::restore_test::Tried;
use crate::operation::{Operation, RestoreTest};

/// A backup that may be tried.
struct Due<'a> {
    since: Timestamp,
    guest: &'a GuestRecord,
    tier: Tier,
    backup: &'a BackupRecord,
}

/// Plans the next test.
pub(super) fn next(context: &Context<'_>, plan: &mut Plan) {
    let (inputs, records) = (context.inputs, context.inputs.records);
    let Some(place) = &inputs.policy.scratch else { return };
    let is_test = |kind: OperationKind| kind == OperationKind::RestoreTest;
    // What a parked one left lies on the storage that the next would fill. It is told until a person answered to it.
    if records.open.iter().any(|open| is_test(open.kind))
        || records.parked.iter().any(|one| is_test(one.kind))
    {
        return;
    }
    let due = records.guests.iter().flat_map(|guest| due(context, guest));
    let Some(due) = due.min_by_key(|due| (due.since, due.guest.uid, due.tier)) else { return };
    let operation = operation(&due, place);
    let passes = |effect| {
        // What is thrown away is our own by our own record alone.
        let road = if effect == crate::gate::Effect::ReapScratch {
            Provenance::ScratchRecord
        } else {
            Provenance::Schedule
        };
        gate(&effect, road, &context.approved) == Verdict::Free
    };
    if effects(&operation).into_iter().all(passes) {
        let reason = format!(
            "the {} backup {} of {} was to be tried since {}",
            due.tier, due.backup.archive, due.guest.name, due.since
        );
        plan.actions.push(Action { operation, reason });
    }
}

fn operation(due: &Due<'_>, place: &TestPlace) -> Operation {
    Operation::RestoreTest(Box::new(RestoreTest {
        guest: due.guest.uid,
        name: due.guest.name.clone(),
        backup: Tried {
            archive: due.backup.archive.clone(),
            taken_by: due.backup.taken_by,
            taken_at: due.backup.taken_at,
        },
        place: place.clone(),
    }))
}

/// The newest backup of each tier of a guest that is to be tried now.
fn due<'a>(context: &Context<'a>, guest: &'a GuestRecord) -> Vec<Due<'a>> {
    let Some(promise) = context.inputs.records.protections.get(&guest.uid) else { return Vec::new() };
    if !matches!(guest.place, Place::Made { .. })
        || context.waits(guest.uid, OperationKind::RestoreTest).is_some()
    {
        return Vec::new();
    }
    let known = known(context.inputs, guest);
    let tier = |promised| tier(context, guest, &known, &promised);
    promised(promise).into_iter().filter_map(tier).collect()
}

fn tier<'a>(
    context: &Context<'a>,
    guest: &'a GuestRecord,
    known: &Known<'a>,
    promised: &Promised<'_>,
) -> Option<Due<'a>> {
    let days = promised.test_every?;
    let backup = known.good(promised).max_by_key(|backup| taken_at(backup))?;
    let last = Tested::of(promised, known).last;
    let since = last.map_or(Some(backup.taken_at), |test| again(test, backup, days))?;
    let now = context.inputs.time.at;
    if since > now {
        let wait = since.duration_since(now);
        context.again(context.inputs.now.checked_add(wait).unwrap_or(Timestamp::MAX));
        return None;
    }
    Some(Due { since, guest, tier: promised.tier, backup })
}

/// When the next test is due after this one.
fn again(test: &TestRecord, newest: &BackupRecord, days: TestDays) -> Option<Timestamp> {
    let after = |hours: i64| test.at.checked_add(SignedDuration::from_hours(hours)).ok();
    match test.verdict {
        TestVerdict::Proved | TestVerdict::BootedOnly => {
            after(i64::from(days.get()) * limits::TEST_AGAIN_H_PER_DAY)
        }
        TestVerdict::Failed if newest.taken_at > test.taken_at => Some(newest.taken_at),
        TestVerdict::Failed => after(limits::TEST_FAILED_AGAIN_H),
        TestVerdict::NotRun => after(limits::TEST_NOT_RUN_AGAIN_H),
    }
}
