//! Which backup is tried next, by what guests are promised.
//!
//! A guest whose promise names an interval of tests has its newest good backup tried when the last test is older than that.
//! One that failed is tried again when there is a newer backup, and once a day until it comes back; one that could not be
//! run, within the hour. One test at a time on a box, the longest overdue first. What comes in: promises, backups, tests.
//! What goes out: at most one operation, and when to look again. Deliberately absent: what a verdict means for a guest.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::{Protection, Tier};
use jiff::{SignedDuration, Timestamp};

use super::schedule::{Promised, backups_of, is_good, promised};
use super::{Action, Context, Plan};
use crate::gate::of::effects;
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
    let due = records.guests.iter().filter_map(|guest| due(context, guest));
    let Some(due) = due.min_by_key(|due| (due.since, due.guest.uid)) else { return };
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
        let reason =
            format!("{} of {} was to be tried since {}", due.backup.archive, due.guest.name, due.since);
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

fn due<'a>(context: &Context<'a>, guest: &'a GuestRecord) -> Option<Due<'a>> {
    if !matches!(guest.place, Place::Made { .. })
        || context.waits(guest.uid, OperationKind::RestoreTest).is_some()
    {
        return None;
    }
    let records = context.inputs.records;
    let promise = records.protections.get(&guest.uid)?;
    let days = interval_days(promise)?;
    let tiers: Vec<Promised<'_>> =
        promised(promise).into_iter().filter(|tier| is_tested(promise, tier.tier)).collect();
    let mut backups = backups_of(records, guest.uid).iter().rev();
    let backup = backups.find(|backup| tiers.iter().any(|tier| is_good(backup, tier)))?;
    let since =
        last(&records.tests, guest.uid).map_or(Some(backup.taken_at), |test| again(test, backup, days))?;
    let now = context.inputs.time.at;
    if since > now {
        let wait = since.duration_since(now);
        context.again(context.inputs.now.checked_add(wait).unwrap_or(Timestamp::MAX));
        return None;
    }
    Some(Due { since, guest, backup })
}

/// When the next test is due after this one.
fn again(test: &TestRecord, newest: &BackupRecord, days: u32) -> Option<Timestamp> {
    let after = |hours: i64| test.at.checked_add(SignedDuration::from_hours(hours)).ok();
    match test.verdict {
        TestVerdict::Proved | TestVerdict::BootedOnly => after(i64::from(days) * 24),
        TestVerdict::Failed if newest.taken_at > test.taken_at => Some(newest.taken_at),
        TestVerdict::Failed => after(limits::TEST_FAILED_AGAIN_H),
        TestVerdict::NotRun => after(limits::TEST_NOT_RUN_AGAIN_H),
    }
}

/// The last test of a guest. The list is sorted by guest and time.
fn last(tests: &[TestRecord], guest: GuestUid) -> Option<&TestRecord> {
    let end = tests.partition_point(|test| test.guest <= guest);
    tests.get(..end)?.last().filter(|test| test.guest == guest)
}

/// How many days may pass between two tests: the shortest that any tier names.
fn interval_days(promise: &Protection) -> Option<u32> {
    let tiers = &promise.tiers;
    let off_site = tiers.off_site.as_ref().map(|tier| &tier.backup);
    let days = tiers.local.iter().chain(off_site).filter_map(|tier| tier.restore_test_days);
    days.map(|days| days.get()).min()
}

fn is_tested(promise: &Protection, tier: Tier) -> bool {
    let tiers = &promise.tiers;
    let backup = match tier {
        Tier::Snapshot => None,
        Tier::Local => tiers.local.as_ref(),
        Tier::OffSite => tiers.off_site.as_ref().map(|tier| &tier.backup),
    };
    backup.is_some_and(|backup| backup.restore_test_days.is_some())
}
