//! Steps that take and remove snapshots.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{OperationId, SnapshotName};
use jiff::Timestamp;

use super::context::{Checked, Context, Started, StepOutput, UndoState};
use super::identity::{free_config, vmid};
use super::own_tasks::at_work;
use super::step_prune::clock_is_kept;
use super::trouble::StepError;
use crate::gate::retention;
use crate::model::mark;
use crate::model::records::{SnapshotRecord, TakenBy};
use crate::operation::log::Finding;
use crate::operation::{ExpireSnapshot, ExpiryWhy, Operation};
use crate::port::pve::change::Description;
use crate::port::pve::snapshot::SnapshotListing;
use crate::port::pve::{NewSnapshot, OwnSnapshot, PveError, TaskKind, Upid};

/// Which snapshot the operation is about, and which operation made it.
fn named<'a>(context: &'a Context<'_>) -> Result<(&'a SnapshotName, OperationId), StepError> {
    match &context.progress.operation {
        Operation::Snapshot(new) => Ok((&new.name, context.progress.id)),
        Operation::ExpireSnapshot(expiry) => Ok((&expiry.name, expiry.made_by)),
        Operation::RollBack(back) => Ok((&back.snapshot, back.made_by)),
        Operation::UpdateController(update) => Ok((&update.snapshot.name, context.progress.id)),
        other => Err(StepError::fault(format!("a {} has no snapshot", other.kind().as_str()))),
    }
}

/// What exists under the snapshot's name now.
pub(super) async fn find(context: &Context<'_>) -> Result<SnapshotListing, StepError> {
    let (name, made_by) = named(context)?;
    let vmid = vmid(context)?;
    let listed = context.ports.pve.snapshots(vmid).await?;
    Ok(OwnSnapshot::find(vmid, name, &mark::snapshot_line(made_by), &listed))
}

/// A snapshot that is half made or half removed. It is waited for while a task works on it; otherwise it is left for a
/// person, since no token can remove the lock.
pub(super) async fn half(context: &Context<'_>, state: &str) -> Result<StepError, StepError> {
    let (vmid, (name, _)) = (vmid(context)?, named(context)?);
    for kind in [TaskKind::Snapshot, TaskKind::RemoveSnapshot] {
        if at_work(context, vmid, kind).await? {
            return Ok(PveError::Locked { kind: "snapshot".to_owned() }.into());
        }
    }
    let frozen = if state == "prepare" {
        ", and the guest may stand frozen although Proxmox says running"
    } else {
        ""
    };
    let text = format!(
        "snapshot {name} of guest {vmid} was left half-made (snapstate {state}): its task died{frozen}"
    );
    let thaw = if state == "prepare" { format!("; lxc-unfreeze -n {vmid}") } else { String::new() };
    let remedy = format!("pct unlock {vmid}; pct delsnapshot {vmid} {name} --force{thaw}");
    Ok(StepError::park(ErrorCode::Locked, text, remedy))
}

pub(super) async fn is_taken(context: &Context<'_>) -> Result<Checked, StepError> {
    let (name, _) = named(context)?;
    match find(context).await? {
        SnapshotListing::Half(state) => Err(half(context, &state).await?),
        SnapshotListing::Whole(own) => {
            let made = own.made_epoch_s().and_then(|second| i64::try_from(second).ok());
            let at = made.and_then(|second| Timestamp::from_second(second).ok());
            let at = at.unwrap_or_else(|| context.ports.clock.now());
            Ok(Checked::Happened(StepOutput::fact(Finding::SnapshotTaken { at })))
        }
        SnapshotListing::Others => {
            let text =
                format!("a snapshot {name} is there already, made by somebody else: choose another name");
            Err(StepError::give_up(ErrorCode::NameTaken, text))
        }
        SnapshotListing::Nothing => Ok(Checked::Not),
    }
}

pub(super) async fn is_removed(context: &Context<'_>) -> Result<Checked, StepError> {
    let (name, _) = named(context)?;
    match find(context).await? {
        SnapshotListing::Half(state) => Err(half(context, &state).await?),
        SnapshotListing::Whole(_) => Ok(Checked::Not),
        SnapshotListing::Nothing => Ok(Checked::Happened(StepOutput::fact(Finding::SnapshotGone))),
        SnapshotListing::Others => {
            let text =
                format!("snapshot {name} does not carry the line of its maker any more: it is left as it is");
            let problem = ErrorBody::new(ErrorCode::NotYours, text.clone());
            let facts = vec![Finding::SnapshotGone, Finding::Condition(problem)];
            Ok(Checked::Happened(StepOutput { facts, note: Some(text) }))
        }
    }
}

pub(super) async fn remove(context: &Context<'_>) -> Result<Started, StepError> {
    free_config(context).await?;
    let Operation::ExpireSnapshot(expiry) = &context.progress.operation else {
        let kind = context.progress.operation.kind();
        return Err(StepError::fault(format!("a {} removes no snapshot", kind.as_str())));
    };
    may_go(context, expiry).await?;
    removal(context).await.map(|task| task.map_or(Started::Done, Started::Task))
}

pub(super) async fn take(context: &Context<'_>) -> Result<Started, StepError> {
    free_config(context).await?;
    let (vmid, (name, made_by)) = (vmid(context)?, named(context)?);
    let line = Description::try_from(mark::snapshot_line(made_by));
    let line = line.map_err(|error| StepError::fault(error.to_string()))?;
    let new = NewSnapshot { name: name.clone(), line };
    Ok(Started::Task(context.ports.pve.snapshot(vmid, &new).await?))
}

/// Our own record must know the snapshot. It must say that the snapshot has expired, that its guest had requested it,
/// or that the schedule took it and the retention in force allows its removal.
async fn may_go(context: &Context<'_>, expiry: &ExpireSnapshot) -> Result<(), StepError> {
    let record = context.ports.store.snapshot(expiry.target.uid, expiry.name.clone()).await?;
    let record = record.filter(|record| record.made_by == expiry.made_by);
    let Some(record) = record else { return Err(kept(expiry)) };
    let may = match expiry.why {
        ExpiryWhy::PastItsTime => record.expires_at.is_some_and(|at| at <= context.ports.clock.now()),
        ExpiryWhy::Asked => record.taken_by == TakenBy::Guest,
        ExpiryWhy::OutsidePolicy => is_let_go(context, &record).await?,
    };
    if may {
        return Ok(());
    }
    Err(kept(expiry))
}

fn kept(expiry: &ExpireSnapshot) -> StepError {
    let text = format!("our records do not allow that snapshot {} goes: it is kept", expiry.name);
    StepError::give_up(ErrorCode::Forbidden, text)
}

/// Whether the retention in force allows its removal, by a synchronised clock. A retention that was raised meanwhile
/// keeps it.
async fn is_let_go(context: &Context<'_>, record: &SnapshotRecord) -> Result<bool, StepError> {
    let store = &context.ports.store;
    if !clock_is_kept(context).await? {
        return Ok(false);
    }
    let Some(promise) = store.outstanding(record.guest, context.ports.clock.now()).await?.promise else {
        return Ok(false);
    };
    let all = store.snapshots(record.guest).await?;
    let gone = retention::snapshots(&all, promise.tiers.snapshot.as_ref(), context.ports.clock.now());
    Ok(gone.iter().any(|one| one.made_by == record.made_by))
}

/// Starts the removal, when there still is something of ours.
async fn removal(context: &Context<'_>) -> Result<Option<Upid>, StepError> {
    match find(context).await? {
        SnapshotListing::Whole(own) => Ok(Some(context.ports.pve.remove_snapshot(&own).await?)),
        SnapshotListing::Half(state) => Err(half(context, &state).await?),
        SnapshotListing::Others | SnapshotListing::Nothing => Ok(None),
    }
}

/// Removes exactly the snapshot that this operation made.
pub(super) async fn take_back(context: &Context<'_>) -> Result<UndoState, StepError> {
    match find(context).await? {
        SnapshotListing::Nothing | SnapshotListing::Others => {
            Ok(UndoState::Nothing(Some("no snapshot of ours is there".to_owned())))
        }
        SnapshotListing::Half(state) => Err(half(context, &state).await?),
        SnapshotListing::Whole(_) => {
            free_config(context).await?;
            Ok(removal(context).await?.map_or(UndoState::Nothing(None), UndoState::Task))
        }
    }
}
