//! The plan for signed jobs after their delay.
//!
//! A job begins, waits for something that passes, or comes to nothing with a reason. What its signers saw is compared
//! with what is there now, before an operation is opened and anything is touched. The gate is asked by the road of a
//! signed job. Deliberately absent: whether it may be done at all; that was checked over its bytes.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Fingerprint, Target as Aim};
use holdfast_trust::Accepted;

use super::guest_requests::{Stays, provably_ours, refused};
use super::{
    Action, Context, Inputs, adopt, deletion, detach, placement, protect, restore_test_schedule, schedule,
    swap, volume_reassignment,
};
use crate::gate::effects::effects;
use crate::gate::job_validation::same_guest;
use crate::gate::warrant::Warrant;
use crate::gate::{Provenance, Verdict, gate};
use crate::model::observed::{Detail, GuestFacts, ObservedGuest};
use crate::operation::{BulkRule, Destroy, Operation, RestoreCopy, RollBack, Target};

/// What becomes of a job now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It becomes this operation.
    Begin(Box<Action>),
    /// It takes effect by itself.
    Now,
    /// What keeps it passes.
    Waits,
    /// It comes to nothing.
    Fails(ErrorBody),
}

/// Judges a job that was checked again this moment.
#[must_use]
pub fn turn(inputs: &Inputs<'_>, job: &Accepted) -> Turn {
    match &job.payload().act {
        Act::AllowGrowth(_)
        | Act::ApproveRelease(_)
        | Act::ReleaseBrake(_)
        | Act::PolicyUpdate(_)
        | Act::Cancel(_)
        | Act::WithdrawRestore(_) => Turn::Now,
        // The gate turns it away before it is on record.
        Act::RestoreHost(_) => Turn::Fails(ErrorBody::new(
            ErrorCode::Unsupported,
            "restore_host is not done by the host it names: make an invite with `holdfast host restore`",
        )),
        Act::LoosenPolicy(args) => match protect::loosens(inputs, job, args) {
            Ok(()) => Turn::Now,
            Err(Stays::Waits) => Turn::Waits,
            Err(Stays::Refused(problem)) => Turn::Fails(problem),
        },
        Act::AttachStorage(_) | Act::DetachStorage(_) => match detach::judge(inputs, &job.payload().act) {
            Ok(()) => Turn::Now,
            Err(problem) => Turn::Fails(problem),
        },
        Act::AdoptGuest(_) => begun(adopt::begin(inputs, job)),
        Act::RestoreTest(args) => begun(restore_test_schedule::signed(inputs, job, args)),
        Act::BackupNow(_)
        | Act::DeleteBackup(_)
        | Act::DestroyGuest(_)
        | Act::ReassignVolume(_)
        | Act::Restore(_)
        | Act::Rollback(_)
        | Act::SwapGuest(_) => begun(begin(inputs, job)),
    }
}

fn begun(action: Result<Action, Stays>) -> Turn {
    match action {
        Ok(action) => Turn::Begin(Box::new(action)),
        Err(Stays::Waits) => Turn::Waits,
        Err(Stays::Refused(problem)) => Turn::Fails(problem),
    }
}

fn begin(inputs: &Inputs<'_>, job: &Accepted) -> Result<Action, Stays> {
    let context = Context::new(inputs);
    let (target, (_, facts)) = proved(&context, &job.payload().target)?;
    let operation = build(&context, job, target, facts)?;
    action(&context, job, operation)
}

/// Passes an operation's effects through the gate, by the road of a signed job.
pub(super) fn action(context: &Context<'_>, job: &Accepted, operation: Operation) -> Result<Action, Stays> {
    for effect in &effects(&operation) {
        match gate(effect, Provenance::SignedJob, &context.approved) {
            Verdict::Free => {}
            Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => {
                return Err(refused(ErrorCode::Forbidden, why));
            }
        }
    }
    Ok(Action { operation, reason: reason(job), growth: None })
}

/// Who signed, and why.
pub(super) fn reason(job: &Accepted) -> String {
    let names: Vec<&str> = job.signers().iter().map(|name| name.as_str()).collect();
    format!("signed by {}: {}", names.join(", "), job.payload().reason.as_str())
}

/// Whether anything is under way on a guest, or was left for a person.
pub(super) fn at_rest(context: &Context<'_>, uid: GuestUid) -> Result<(), Stays> {
    if let Some(parked) = context.parked.get(&uid) {
        let text = format!("{} of this guest was parked: look at it first", parked.kind.as_str());
        return Err(refused(ErrorCode::Parked, text));
    }
    if context.open.contains(&uid) { Err(Stays::Waits) } else { Ok(()) }
}

/// A guest of ours, as its signers saw it, with what is seen of it now.
pub(super) fn proved<'a>(
    context: &Context<'a>,
    aim: &Aim,
) -> Result<(Target, (&'a ObservedGuest, &'a GuestFacts)), Stays> {
    let Aim::Guest { uid, fingerprint, .. } = aim else {
        return Err(refused(ErrorCode::TargetKind, "the job names no guest"));
    };
    at_rest(context, *uid)?;
    let target = provably_ours(context, *uid)?;
    let changed = |why: String| refused(ErrorCode::TargetChanged, why);
    let record = context.inputs.records.guests.iter().find(|record| record.uid == *uid);
    let known = record.map(|record| (&target.name, &record.customer, target.vmid));
    same_guest(aim, known).map_err(|why| changed(why.to_string()))?;
    let seen = context.inputs.observed.guests.get(&target.vmid).ok_or(Stays::Waits)?;
    let Detail::Known(facts) = &seen.detail else { return Err(Stays::Waits) };
    same_volumes(fingerprint, facts)?;
    Ok((target, (seen, facts)))
}

/// Its volumes, all of them and no others.
pub(super) fn same_volumes(fingerprint: &Fingerprint, facts: &GuestFacts) -> Result<(), Stays> {
    let volumes = facts.volumes.iter().map(ToString::to_string).collect();
    if fingerprint.volumes == volumes {
        return Ok(());
    }
    let text = "its volumes are not those that the operator saw: look again and sign anew";
    Err(refused(ErrorCode::TargetChanged, text))
}

fn build(
    context: &Context<'_>,
    job: &Accepted,
    target: Target,
    facts: &GuestFacts,
) -> Result<Operation, Stays> {
    let inputs = context.inputs;
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    match &job.payload().act {
        Act::Restore(_) => {
            let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
            let pinned = inputs.desired.iter().filter_map(|guest| guest.vmid).collect();
            let copy_of = RestoreCopy::new(warrant, inputs.policy, pinned).map_err(|error| fault(&error))?;
            let (root, volumes) = placement::of_copy(inputs, target.uid, facts)
                .map_err(|(code, why)| refused(code, format!("the copy has no place: {why}")))?;
            Ok(Operation::RestoreCopy(Box::new(copy_of.placed(root, volumes))))
        }
        Act::DeleteBackup(args) => deletion::build(context, job, args, target),
        Act::ReassignVolume(args) => volume_reassignment::build(context, job, args),
        Act::SwapGuest(args) => swap::build(context, job, args, (target, facts)),
        Act::DestroyGuest(_) => {
            let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
            Ok(Operation::Destroy(Box::new(Destroy::new(warrant).map_err(|error| fault(&error))?)))
        }
        Act::BackupNow(args::BackupNow { tier: Some(tier) }) => {
            let backup = schedule::early_backups::now(context, target.uid, target, *tier);
            Ok(Operation::Backup(backup.map_err(Stays::Refused)?))
        }
        Act::BackupNow(args::BackupNow { tier: None }) => {
            let storage = inputs.policy.backup_storage.clone();
            let none = "this box has no storage for backups: name one in its settings";
            let storage = storage.ok_or_else(|| refused(ErrorCode::Unavailable, none))?;
            let backup = schedule::early_backups::plain(context, target, storage);
            Ok(Operation::Backup(backup.map_err(Stays::Refused)?))
        }
        Act::Rollback(args) => {
            let own = |one: &&crate::model::records::SnapshotRecord| {
                one.guest == target.uid && one.name == args.snapshot
            };
            let found = inputs.records.snapshots.iter().find(own).ok_or_else(|| {
                refused(ErrorCode::NotFound, format!("snapshot {} of it is not there", args.snapshot))
            })?;
            let (snapshot, made_by) = (args.snapshot.clone(), found.made_by);
            Ok(Operation::RollBack(RollBack { target, snapshot, made_by, bulk: BulkRule::Signed }))
        }
        other => Err(refused(ErrorCode::Unsupported, format!("{} is no operation", other.verb().as_str()))),
    }
}
