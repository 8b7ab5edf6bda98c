//! The plan for work orders that become operations.
//!
//! An order waits in the road of guests' requests and becomes one operation of its own id. What comes in: what was
//! ordered, and the host. What goes out: the operation, or why it waits or comes to nothing. The gate is asked by the
//! road of a work order, which passes no more than a closed list. Deliberately absent: how often something may be
//! ordered; that is judged when the order is taken.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::RunState;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::report::Running;
use holdfast_protocol::work_order::RestartTiming;
use jiff::SignedDuration;

use super::proved_guest::{Stays, provably_ours, refused};
use super::{Action, Context, maintenance, restore_test_schedule, schedule};
use crate::gate::{Provenance, Verdict, gate};
use crate::model::limits;
use crate::model::records::TakenBy;
use crate::model::request::{Ordered, OrderedAct, QueuedRequest};
use crate::operation::{Operation, RestartGuest, Snapshot, Target};

/// What becomes of an order now.
///
/// # Errors
/// [`Stays`].
pub(super) fn begin(
    context: &Context<'_>,
    request: &QueuedRequest,
    order: &Ordered,
) -> Result<Action, Stays> {
    if context.inputs.now >= order.expires_at {
        return Err(refused(
            ErrorCode::Unavailable,
            "its time was over before it could begin: order it anew",
        ));
    }
    let uid = request.guest;
    let operation = match &order.act {
        OrderedAct::RestoreTest { tier } => restore_test_schedule::ordered(context, uid, *tier)?,
        OrderedAct::Backup { .. } | OrderedAct::Snapshot { .. } | OrderedAct::Restart { .. } => {
            if let Some(parked) = context.parked.get(&uid) {
                let text = format!(
                    "{} of this guest was parked: look at it first (`agentd parked list`)",
                    parked.kind.as_str()
                );
                return Err(refused(ErrorCode::Parked, text));
            }
            if context.open.contains(&uid) {
                return Err(Stays::Waits);
            }
            let target = provably_ours(context, uid)?;
            let operation = build(context, uid, (&order.act, target))?;
            passes(context, &operation)?;
            operation
        }
    };
    Ok(Action { operation, reason: format!("the hub ordered it (order {})", request.id), growth: None })
}

fn passes(context: &Context<'_>, operation: &Operation) -> Result<(), Stays> {
    for effect in operation.effects() {
        match gate(&effect, Provenance::WorkOrder, &context.approved) {
            Verdict::Free => {}
            Verdict::NeedsSignature(why) => {
                let text = format!("an operator's signature is needed: {why}");
                return Err(refused(ErrorCode::NeedsSignature, text));
            }
            Verdict::Forbidden(why) => return Err(refused(ErrorCode::Forbidden, why)),
        }
    }
    Ok(())
}

fn build(
    context: &Context<'_>,
    uid: GuestUid,
    (act, target): (&OrderedAct, Target),
) -> Result<Operation, Stays> {
    match act {
        OrderedAct::Backup { tier: Some(Tier::Snapshot) } => {
            let text = "a snapshot is no backup: order one by itself (`holdfast order snapshot`)";
            Err(refused(ErrorCode::Unsupported, text))
        }
        OrderedAct::Backup { tier: Some(tier) } => {
            let backup = schedule::early_backups::now(context, uid, target, *tier);
            Ok(Operation::Backup(backup.map_err(Stays::Refused)?))
        }
        OrderedAct::Backup { tier: None } => {
            let storage = context.inputs.policy.backup_storage.clone();
            let none = "this host has no storage for backups: name one in its settings, or order a tier";
            let storage = storage.ok_or_else(|| refused(ErrorCode::Unavailable, none))?;
            let backup = schedule::early_backups::plain(context, target, storage);
            Ok(Operation::Backup(backup.map_err(Stays::Refused)?))
        }
        OrderedAct::Snapshot { name, keep_s } => {
            let keep = keep_s.unwrap_or(limits::SNAPSHOT_KEEP_S).max(limits::SNAPSHOT_KEEP_MIN_S);
            let expires_at = context.inputs.now.checked_add(SignedDuration::from_secs(i64::from(keep)));
            Ok(Operation::Snapshot(Snapshot {
                target,
                name: name.clone(),
                taken_by: TakenBy::Job,
                expires_at: Some(expires_at.unwrap_or(jiff::Timestamp::MAX)),
                due: None,
            }))
        }
        OrderedAct::Restart { timing } => restart(context, uid, (*timing, target)),
        OrderedAct::RestoreTest { .. } => {
            Err(refused(ErrorCode::Internal, "a restore test is planned elsewhere"))
        }
    }
}

/// A restart of a guest that runs and should run.
fn restart(
    context: &Context<'_>,
    uid: GuestUid,
    (timing, target): (RestartTiming, Target),
) -> Result<Operation, Stays> {
    let inputs = context.inputs;
    let Some(wanted) = inputs.desired.iter().find(|guest| guest.uid == uid) else {
        return Err(refused(ErrorCode::NotFound, "the document has no such guest"));
    };
    let runs = inputs.observed.guests.get(&target.vmid).map(|seen| seen.run);
    if wanted.run != RunState::Running || runs == Some(Running::Stopped) {
        let text = "the guest does not run, so there is nothing to restart: change its `run` in the document";
        return Err(refused(ErrorCode::Unavailable, text));
    }
    match timing {
        RestartTiming::AtOnce => {}
        RestartTiming::InWindow => {
            if let Some(begins) = maintenance::closed_until(wanted, inputs.time.at) {
                let wait = begins.duration_since(inputs.time.at);
                context.again(inputs.now.checked_add(wait).unwrap_or(jiff::Timestamp::MAX));
                return Err(Stays::Waits);
            }
        }
    }
    if inputs.records.open.iter().any(|open| open.guest == uid && open.kind != OperationKind::RestoreTest) {
        return Err(Stays::Waits);
    }
    Ok(Operation::RestartGuest(RestartGuest(target)))
}
