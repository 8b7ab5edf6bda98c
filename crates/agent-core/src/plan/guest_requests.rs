//! The plan for requests of guests.
//!
//! A request begins, is refused with a reason its guest can read, or waits for something that passes: an operation, a
//! lock, an answer of Proxmox; but not longer than a day. The gate is asked by the road of the guest's own local API.
//! Whether its lane has a place is `operation::lane`'s.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredVolume, VolumeKind};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{GuestUid, OperationId, SnapshotName};
use jiff::SignedDuration;

use super::proved_guest::{Stays, provably_ours, refused};
use super::{Action, Context, schedule, work_orders};
use crate::gate::{Effect, Provenance, RollBack as Back, Verdict, gate};
use crate::model::limits;
use crate::model::records::{SnapshotRecord, TakenBy};
use crate::model::request::{Ask, BackupsSpent, QueuedRequest};
use crate::operation::lane::waits_in;
use crate::operation::registry::rules;
use crate::operation::{
    BulkRule, ExpireSnapshot, ExpiryWhy, Operation, QuiescedBackup, RollBack, Snapshot, Target,
};

/// What becomes of a request now. Those that wait are not named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDecision {
    pub request: OperationId,
    pub answer: Answer,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It becomes this operation as soon as its lane has a place.
    Begin(Box<Action>),
    Refuse(ErrorBody),
}

/// Judges the first request of every guest; and where that is a backup, which may have to wait for those of other guests,
/// the first that is none.
pub(super) fn judge(context: &Context<'_>) -> Vec<RequestDecision> {
    let (mut backups, mut others): (BTreeSet<GuestUid>, BTreeSet<GuestUid>) = Default::default();
    let judged = |request: &&QueuedRequest| {
        // No request overtakes one that is no backup.
        let lane = waits_in(&request.ask, request.guest);
        if others.contains(&lane) {
            return false;
        }
        let is_backup = rules(request.ask.kind()).weight.is_backup();
        if is_backup { &mut backups } else { &mut others }.insert(lane)
    };
    let requests = context.inputs.records.requests.iter();
    requests
        .filter(judged)
        .filter_map(|request| {
            Some(RequestDecision { request: request.id, answer: answer(context, request)? })
        })
        .collect()
}

fn answer(context: &Context<'_>, request: &QueuedRequest) -> Option<Answer> {
    match begin(context, request) {
        Ok(action) => Some(Answer::Begin(Box::new(action))),
        Err(Stays::Refused(problem)) => Some(Answer::Refuse(problem)),
        Err(Stays::Waits) => too_old(context, request).map(Answer::Refuse),
    }
}

fn too_old(context: &Context<'_>, request: &QueuedRequest) -> Option<ErrorBody> {
    let waited = context.inputs.now.duration_since(request.asked_at);
    (waited > SignedDuration::from_secs(limits::REQUEST_WAIT_MAX_S)).then(|| {
        let text =
            "it could not begin within a day: ask again, and tell the operator if that ends the same way";
        ErrorBody::new(ErrorCode::Unavailable, text)
    })
}

fn begin(context: &Context<'_>, request: &QueuedRequest) -> Result<Action, Stays> {
    if let Ask::Ordered(order) = &request.ask {
        return work_orders::begin(context, request, order);
    }
    let uid = request.guest;
    if let Some(parked) = context.parked.get(&uid) {
        let text = format!("{} of this guest was parked: an operator must look first", parked.kind.as_str());
        return Err(refused(ErrorCode::Parked, text));
    }
    if context.open.contains(&uid) || context.is_on_trial(uid) {
        return Err(Stays::Waits);
    }
    let target = provably_ours(context, uid)?;
    let operation = build(context, request, target)?;
    let mut effects = operation.effects();
    if matches!(operation, Operation::RollBack(_)) && has_bulk(context, uid) {
        effects.push(Effect::RollBack(Back::ItselfWithBulk));
    }
    for effect in &effects {
        match gate(effect, Provenance::LocalApi(uid), &context.approved) {
            Verdict::Free => {}
            Verdict::NeedsSignature(why) => {
                let text = format!("an operator's signature is needed: {why}");
                return Err(refused(ErrorCode::NeedsSignature, text));
            }
            Verdict::Forbidden(why) => return Err(refused(ErrorCode::Forbidden, why)),
        }
    }
    Ok(Action {
        operation,
        reason: format!("its guest asked for it (request {})", request.serial),
        growth: None,
    })
}

fn build(context: &Context<'_>, request: &QueuedRequest, target: Target) -> Result<Operation, Stays> {
    let inputs = context.inputs;
    Ok(match &request.ask {
        Ask::Snapshot { name, keep_s } => {
            let keep = keep_s.unwrap_or(limits::SNAPSHOT_KEEP_S);
            let expires_at = inputs.now.checked_add(SignedDuration::from_secs(i64::from(keep)));
            let expires_at = Some(expires_at.unwrap_or(jiff::Timestamp::MAX));
            let taken_by = TakenBy::Guest;
            Operation::Snapshot(Snapshot { target, name: name.clone(), taken_by, expires_at, due: None })
        }
        Ask::ExpireSnapshot { name } => {
            let made_by = own_snapshot(context, request.guest, name)?.made_by;
            let (name, why) = (name.clone(), ExpiryWhy::Asked);
            Operation::ExpireSnapshot(ExpireSnapshot { target, name, made_by, why })
        }
        Ask::RollBack { snapshot } => {
            let made_by = own_snapshot(context, request.guest, snapshot)?.made_by;
            let (snapshot, bulk) = (snapshot.clone(), BulkRule::NoneThere);
            Operation::RollBack(RollBack { target, snapshot, made_by, bulk })
        }
        Ask::Backup { tier: Some(tier) } => {
            let backup = schedule::early_backups::now(context, request.guest, target, *tier);
            Operation::Backup(backup.map_err(Stays::Refused)?)
        }
        Ask::Backup { tier: None } => {
            let Some(storage) = inputs.policy.backup_storage.clone() else {
                let text = "this box has no storage for backups: an operator must name one in its settings";
                return Err(refused(ErrorCode::Unavailable, text));
            };
            let backup = schedule::early_backups::plain(context, target, storage);
            Operation::Backup(backup.map_err(Stays::Refused)?)
        }
        Ask::QuiescedBackup { tier, bound } => {
            let backup = schedule::early_backups::backup(context, request.guest, target, *tier)
                .map_err(Stays::Refused)?;
            // It counts itself. What is due is the schedule's request, and is bounded by it.
            let asked = inputs.records.asked_backups.get(&request.guest).copied().unwrap_or_default();
            if backup.due.is_none() && asked > limits::ASKED_BACKUPS_PER_DAY {
                return Err(refused(ErrorCode::Quota, BackupsSpent.to_string()));
            }
            let still = schedule::still::Still::of(inputs.records, request.guest);
            let bound = still.bound(*bound).map_err(Stays::Refused)?;
            Operation::QuiescedBackup(QuiescedBackup { backup, bound })
        }
        Ask::Ordered(_) => return Err(refused(ErrorCode::Internal, "an order is planned elsewhere")),
    })
}

/// An existing snapshot that this guest asked for.
fn own_snapshot<'a>(
    context: &'a Context<'_>,
    guest: GuestUid,
    name: &SnapshotName,
) -> Result<&'a SnapshotRecord, Stays> {
    let is_it = |snapshot: &&SnapshotRecord| {
        snapshot.guest == guest && snapshot.name == *name && snapshot.taken_by == TakenBy::Guest
    };
    context.inputs.records.snapshots.iter().find(is_it).ok_or_else(|| {
        refused(ErrorCode::NotFound, format!("snapshot {name} is not there: it was not taken, or has gone"))
    })
}

/// Whether the document gives it volumes that no backup holds.
fn has_bulk(context: &Context<'_>, uid: GuestUid) -> bool {
    let wanted = context.inputs.desired.iter().find(|guest| guest.uid == uid);
    let is_bulk = |volume: &DesiredVolume| matches!(volume.kind, VolumeKind::Bulk(_));
    wanted.is_some_and(|guest| guest.volumes.iter().any(is_bulk))
}
