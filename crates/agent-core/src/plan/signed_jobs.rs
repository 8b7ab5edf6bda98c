//! The plan for signed jobs after their delay.
//!
//! A job begins, waits for something that passes, or comes to nothing with a reason. What its signers saw is compared
//! with what is there now, before an operation is opened and anything is touched. The gate is asked by the road of a
//! signed job. Deliberately absent: whether it may be done at all; that was checked over its bytes.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::job::Act;
use holdfast_protocol::job::act::args;
use holdfast_trust::Accepted;

use super::proved_guest::{Stays, refused};
use super::signed_state::{action, proved};
use super::{
    Action, Context, Inputs, adopt, deletion, detach, discard, placement, protect, rebase,
    restore_test_schedule, schedule, swap, volume_reassignment,
};
use crate::gate::warrant::Warrant;
use crate::model::observed::GuestFacts;
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
    /// Its own task passes it on, also while Proxmox does not answer.
    Elsewhere,
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
        Act::BreakGlass(_) | Act::SetTunnelToken(_) => Turn::Elsewhere,
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
        | Act::DiscardCopy(_)
        | Act::ReassignVolume(_)
        | Act::RebaseGuest(_)
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
    if matches!(job.payload().act, Act::BackupNow(_)) && context.is_on_trial(target.uid) {
        return Err(Stays::Waits);
    }
    let operation = build(&context, job, target, facts)?;
    action(&context, job, operation)
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
        Act::RebaseGuest(args) => rebase::build(context, job, args, (target, facts)),
        Act::DiscardCopy(args) => discard::build(context, job, args, &target),
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
