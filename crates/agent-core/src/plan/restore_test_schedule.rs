//! Which backup is tried next, by what guests are promised.
//!
//! A tier whose promise names an interval of tests has its newest good backup tried when its last test is nearly as old
//! as that (seven eighths), so that the proof is young enough while the test waits for its slot. Each tier is tested by
//! itself, since a local backup that comes back says nothing about an off-site one and its key. After one that failed a
//! newer one is tried at once, where there is one, and else the same once a day until it comes back; one that could not
//! be run, within the hour, or at once where it was under a former VMID and there is one under the present one. One
//! test at a time on a host, the longest overdue first; a test that was parked stops those of its own guest. Operators
//! may also sign for a test, whatever is due.
//!
//! A backup with something to prove is tested before a newer one without: one that holds programs standing still before
//! one that does not, and any before the one that the guest's making took, in which nothing ran yet. While there is
//! only that one, the first test waits for another for a day. What comes in: promises, backups, tests. What goes out:
//! at most one operation, and when to look again. Deliberately absent: what a verdict means for a guest.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::job::Target;
use holdfast_protocol::job::act::args;
use holdfast_protocol::local::restore_test::TestVerdict;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::{Consistency, Protection, Tier};
use holdfast_protocol::size::TestDays;
use holdfast_trust::Accepted;
use jiff::{SignedDuration, Timestamp};

use super::proved_guest::{Stays, refused};
use super::restore_test_status::Tested;
use super::schedule::facts::{Promised, ScheduleFacts, known, promised};
use super::schedule::memory::{KeptJudgements, NextTest, Waits};
use super::signed_state::reason;
use super::{Action, Context, Inputs, Plan, lost_host};
use crate::gate::job_validation::same_guest;
use crate::gate::retention::taken_at;
use crate::gate::{Effect, Provenance, Verdict, gate};
use crate::model::limits;
use crate::model::policy::TestPlace;
use crate::model::records::{BackupRecord, BackupWhy, GuestRecord, Place, Records, TestRecord};
use crate::operation::restore_test::TestedBackup;
use crate::operation::{Operation, RestoreTest};

/// A tier of which a backup may be tried.
struct DueTest<'a> {
    since: Timestamp,
    guest: &'a GuestRecord,
    tier: Tier,
}

/// Plans the next test. When a guest's tests are due is not worked out again where what is remembered of it holds.
pub(super) fn next(context: &Context<'_>, plan: &mut Plan, memory: &mut KeptJudgements) {
    let (inputs, records) = (context.inputs, context.inputs.records);
    let Some(place) = &inputs.policy.scratch else { return };
    let parked = Parked::of(context.inputs);
    if records.open.iter().any(|open| open.kind == OperationKind::RestoreTest) || parked.are_too_many() {
        return;
    }
    // Not one of these can be looked into as long as its guest is not here, and one that left something is a person's.
    let here = |guest: &&GuestRecord| is_here(context, guest) && !parked.is_about(guest.uid);
    let mut remembered = memory.next_tests();
    let due =
        records.guests.iter().filter(here).flat_map(|guest| due(context, guest, remembered.of(guest.uid)));
    let Some(due) = due.min_by_key(|due| (due.since, due.guest.uid, due.tier)) else { return };
    let Some(backup) = preferred_now(context.inputs, &due) else { return };
    let operation = operation(due.guest, backup, place);
    if passes(context, &operation, &Provenance::Schedule) {
        let reason = format!(
            "the {} backup {} of {} was to be tried since {:.0}",
            due.tier, backup.archive, due.guest.name, due.since
        );
        plan.actions.push(Action { operation, reason, growth: None });
    }
}

/// The tests that were left for a person. Each is reported until somebody answered to it. It keeps its own guest's
/// backups from being tried again, but not those of other guests. What each left takes space on the storage that the
/// next would fill, so their number is limited.
struct Parked(Vec<GuestUid>);

impl Parked {
    fn of(inputs: &Inputs<'_>) -> Self {
        let tests = inputs.records.parked.iter().filter(|one| one.kind == OperationKind::RestoreTest);
        Self(tests.map(|one| one.about).collect())
    }

    fn are_too_many(&self) -> bool {
        self.0.len() >= limits::PARKED_TESTS
    }

    fn is_about(&self, guest: GuestUid) -> bool {
        self.0.contains(&guest)
    }
}

/// Whether a backup of it is being removed: it may be the one that would be tried.
fn is_pruned(records: &Records, guest: GuestUid) -> bool {
    records.open.iter().any(|open| open.guest == guest && open.kind == OperationKind::PruneBackup)
}

/// Whether a guest is seen under its VMID: Proxmox shows no token the backups of one that is in no pool.
fn is_here(context: &Context<'_>, guest: &GuestRecord) -> bool {
    let is_seen = |vmid| context.inputs.observed.guests.contains_key(&vmid);
    guest.place.vmid().is_some_and(is_seen) && !lost_host::is_away(context.inputs, guest)
}

fn passes(context: &Context<'_>, operation: &Operation, road: &Provenance) -> bool {
    operation.effects().into_iter().all(|effect| {
        // What is thrown away is our own by our own record alone.
        let scratch = Provenance::ScratchRecord;
        let road = if effect == Effect::DestroyScratch { &scratch } else { road };
        gate(&effect, *road, &context.approved) == Verdict::Free
    })
}

/// The test that operators signed for, of the newest good backup of the tier that they named, or of any.
pub(super) fn signed(inputs: &Inputs<'_>, job: &Accepted, args: &args::RestoreTest) -> Result<Action, Stays> {
    let context = Context::new(inputs);
    let aim = &job.payload().target;
    let Target::Guest { uid, .. } = aim else {
        return Err(refused(ErrorCode::TargetKind, "the job names no guest"));
    };
    let compared = |guest: &GuestRecord, vmid| {
        same_guest(aim, Some((&guest.name, &guest.customer, vmid)))
            .map_err(|why| refused(ErrorCode::TargetChanged, why.to_string()))
    };
    let operation = at_once(&context, *uid, (args.tier, Provenance::SignedJob), compared)?;
    Ok(Action { operation, reason: reason(job), growth: None })
}

/// The test that a work order is for.
pub(super) fn ordered(context: &Context<'_>, uid: GuestUid, tier: Option<Tier>) -> Result<Operation, Stays> {
    at_once(context, uid, (tier, Provenance::WorkOrder), |_, _| Ok(()))
}

fn at_once(
    context: &Context<'_>,
    uid: GuestUid,
    (tier, road): (Option<Tier>, Provenance),
    compared: impl FnOnce(&GuestRecord, Vmid) -> Result<(), Stays>,
) -> Result<Operation, Stays> {
    let (inputs, records) = (context.inputs, context.inputs.records);
    let place = inputs.policy.scratch.as_ref().ok_or_else(|| {
        let text = "this host has no place for restore tests: root names one as [scratch] in agent.toml (`agentd setup --scratch-storage`)";
        refused(ErrorCode::Unavailable, text)
    })?;
    let parked = Parked::of(inputs);
    if parked.is_about(uid) {
        let text = "a restore test of this guest was parked: look at it first (`agentd parked list`)";
        return Err(refused(ErrorCode::Parked, text));
    }
    if parked.are_too_many() {
        let text = format!(
            "{} restore tests were parked, and what they left fills the storage of tests: look at them first (`agentd parked list`)",
            parked.0.len()
        );
        return Err(refused(ErrorCode::Parked, text));
    }
    if records.open.iter().any(|open| open.kind == OperationKind::RestoreTest) || is_pruned(records, uid) {
        return Err(Stays::Waits);
    }
    let guest = records.guests.iter().find(|guest| guest.uid == uid);
    let Some((guest, vmid)) = guest.and_then(|guest| Some((guest, guest.place.vmid()?))) else {
        return Err(refused(ErrorCode::NotFound, "this guest is not there any more"));
    };
    if !is_here(context, guest) {
        let text = format!(
            "{} is not back, so Proxmox does not show what is in its backups, and no grant mends that: sign anew when it is back",
            guest.name
        );
        return Err(refused(ErrorCode::Unavailable, text));
    }
    compared(guest, vmid)?;
    let backup = asked_for(inputs, guest, tier).ok_or_else(|| {
        let of = tier.map_or_else(String::new, |tier| format!("{tier} "));
        let text =
            format!("no good {of}backup of {} is on record: have one taken (--backup-now)", guest.name);
        refused(ErrorCode::NotFound, text)
    })?;
    let operation = operation(guest, backup, place);
    if !passes(context, &operation, &road) {
        return Err(refused(ErrorCode::Forbidden, "the gate lets no backup be tried"));
    }
    Ok(operation)
}

/// The newest good backup of the tiers that are meant.
fn asked_for<'a>(
    inputs: &Inputs<'a>,
    guest: &'a GuestRecord,
    tier: Option<Tier>,
) -> Option<&'a BackupRecord> {
    let promise = inputs.records.protections.get(&guest.uid)?;
    let known = known(inputs, guest);
    let meant: Vec<Promised<'_>> =
        promised(promise).into_iter().filter(|one| tier.is_none_or(|tier| tier == one.tier)).collect();
    meant.iter().flat_map(|promised| known.good(promised)).max_by_key(|backup| taken_at(backup))
}

fn operation(guest: &GuestRecord, backup: &BackupRecord, place: &TestPlace) -> Operation {
    Operation::RestoreTest(Box::new(RestoreTest {
        guest: guest.uid,
        name: guest.name.clone(),
        backup: TestedBackup {
            archive: backup.archive.clone(),
            taken_by: backup.taken_by,
            taken_at: backup.taken_at,
        },
        place: place.clone(),
    }))
}

/// The tiers of a guest of which a backup is to be tried now.
fn due<'a>(
    context: &Context<'_>,
    guest: &'a GuestRecord,
    remembered: Option<&mut Option<Vec<NextTest>>>,
) -> Vec<DueTest<'a>> {
    let Some(promise) = context.inputs.records.protections.get(&guest.uid) else { return Vec::new() };
    if !matches!(guest.place, Place::Made { .. }) || is_pruned(context.inputs.records, guest.uid) {
        return Vec::new();
    }
    let all = || next_tests(context.inputs, guest, promise);
    let is_due = |next: &NextTest| is_due(context, guest, next);
    let due = |next: &NextTest| DueTest { since: next.since, guest, tier: next.tier };
    match remembered {
        Some(remembered) => {
            remembered.get_or_insert_with(all).iter().filter(|next| is_due(next)).map(due).collect()
        }
        None => all().iter().filter(|next| is_due(next)).map(due).collect(),
    }
}

/// When each tier's next test is due, whatever time it is.
fn next_tests(inputs: &Inputs<'_>, guest: &GuestRecord, promise: &Protection) -> Vec<NextTest> {
    let mut tiers = promised(promise);
    tiers.retain(|promised| promised.test_every.is_some());
    if tiers.is_empty() {
        return Vec::new();
    }
    let known = known(inputs, guest);
    tiers.iter().filter_map(|promised| next_test(&known, promised)).collect()
}

fn next_test(known: &ScheduleFacts<'_>, promised: &Promised<'_>) -> Option<NextTest> {
    let days = promised.test_every?;
    let tested = Tested::of(promised, known);
    let backup = preferred(known, (promised, &tested), days)?;
    let since = match tested.last {
        Some(test) => again(test, (backup, known), days)?,
        None => first(backup, days)?,
    };
    // That tests of older ones came to nothing says nothing of one that came after them.
    let is_newer = tested.failed.is_some_and(|failed| backup.taken_at > failed.taken_at);
    let waits = if is_newer { Waits::No } else { Waits::AfterTries };
    Some(NextTest { tier: promised.tier, since, waits })
}

fn is_due(context: &Context<'_>, guest: &GuestRecord, next: &NextTest) -> bool {
    let tries = || context.waits(guest.uid, OperationKind::RestoreTest).is_some();
    if next.waits == Waits::AfterTries && tries() {
        return false;
    }
    let now = context.inputs.time.at;
    if next.since > now {
        let wait = next.since.duration_since(now);
        context.again(context.inputs.now.checked_add(wait).unwrap_or(Timestamp::MAX));
        return false;
    }
    true
}

/// The backup that is tried.
fn preferred_now<'a>(inputs: &Inputs<'a>, due: &DueTest<'a>) -> Option<&'a BackupRecord> {
    let promise = inputs.records.protections.get(&due.guest.uid)?;
    let known = known(inputs, due.guest);
    let promised = promised(promise).into_iter().find(|promised| promised.tier == due.tier)?;
    preferred(&known, (&promised, &Tested::of(&promised, &known)), promised.test_every?)
}

/// What a test of a backup can prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Proves {
    /// The guest's making took it: nothing ran in it yet.
    Nothing,
    /// That it comes back.
    Return,
    /// That its programs come back as they were when they stood still.
    Programs,
}

fn proves(backup: &BackupRecord) -> Proves {
    let label = backup.label.as_ref().map(|label| label.consistency);
    match (label, backup.why) {
        (Some(Consistency::Application), _) => Proves::Programs,
        (_, BackupWhy::First) => Proves::Nothing,
        (_, BackupWhy::Schedule | BackupWhy::Asked) => Proves::Return,
    }
}

/// The newest of the good ones that prove most. What is older than the newest by more than the interval of tests says
/// nothing of what is taken now; and where one failed and another came after it, that one is what is still hoped for.
fn preferred<'a>(
    known: &ScheduleFacts<'a>,
    (promised, tested): (&Promised<'_>, &Tested<'_>),
    days: TestDays,
) -> Option<&'a BackupRecord> {
    let newest = known.good(promised).map(taken_at).max()?;
    let within = SignedDuration::from_hours(24 * i64::from(days.get()));
    let after = tested.newer_than_the_failed(known, promised);
    let recent = known.good(promised).filter(|backup| newest.duration_since(taken_at(backup)) <= within);
    let recent = recent.filter(|backup| after.is_none_or(|after| backup.taken_at > after));
    // Backups under a former VMID can mostly not be read.
    let now = |backup: &BackupRecord| known.vmid.is_none_or(|vmid| backup.vmid == vmid);
    recent.max_by_key(|backup| (now(backup), proves(backup), taken_at(backup)))
}

/// When a tier is tried for the first time.
fn first(backup: &BackupRecord, days: TestDays) -> Option<Timestamp> {
    let hours = match proves(backup) {
        Proves::Nothing => {
            limits::TEST_WAITS_FOR_MORE_H.min(i64::from(days.get()) * limits::TEST_AGAIN_H_PER_DAY)
        }
        Proves::Return | Proves::Programs => 0,
    };
    backup.taken_at.checked_add(SignedDuration::from_hours(hours)).ok()
}

/// When the next test is due after this one.
fn again(
    test: &TestRecord,
    (newest, known): (&BackupRecord, &ScheduleFacts<'_>),
    days: TestDays,
) -> Option<Timestamp> {
    let after = |hours: i64| test.at.checked_add(SignedDuration::from_hours(hours)).ok();
    let tried = known.backups.iter().find(|backup| backup.taken_by == test.backup);
    // Nothing could be checked in it, and now there is one in which something can be.
    let proved_less = tried.is_some_and(|tried| proves(tried) < proves(newest));
    match test.verdict {
        TestVerdict::BootedOnly if proved_less => Some(newest.taken_at.max(test.at)),
        TestVerdict::Proved | TestVerdict::BootedOnly => {
            after(i64::from(days.get()) * limits::TEST_AGAIN_H_PER_DAY)
        }
        TestVerdict::NotRun if tried.is_some_and(|tried| tried.vmid != newest.vmid) => {
            Some(newest.taken_at.max(test.at))
        }
        TestVerdict::Failed if newest.taken_at > test.taken_at => Some(newest.taken_at),
        TestVerdict::Failed => after(limits::TEST_FAILED_AGAIN_H),
        TestVerdict::NotRun => after(limits::TEST_NOT_RUN_AGAIN_H),
    }
}
