//! Taking a snapshot, removing one of ours, and taking one back. A snapshot is ours when it carries the line of the
//! operation that made it; a name alone proves nothing.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::{OperationId, SnapshotName};
use jiff::Timestamp;

use super::attempt::{Acted, Context, Learnt, Probed};
use super::identity::{free_config, vmid};
use super::lost::at_work;
use super::step_prune::clock_is_kept;
use super::trouble::Trouble;
use super::undo::Left;
use crate::gate::retention;
use crate::model::mark;
use crate::model::record::{SnapshotRecord, TakenBy};
use crate::operation::log::Fact;
use crate::operation::step::Step;
use crate::operation::{ExpireSnapshot, ExpiryWhy, Operation};
use crate::port::pve::change::Description;
use crate::port::pve::snapshot::Found;
use crate::port::pve::{NewSnapshot, OwnSnapshot, PveError, TaskKind, Upid};

/// Which snapshot the operation is about, and who made it.
fn named<'a>(context: &'a Context<'_>) -> Result<(&'a SnapshotName, OperationId), Trouble> {
    match &context.progress.operation {
        Operation::Snapshot(new) => Ok((&new.name, context.progress.id)),
        Operation::ExpireSnapshot(expiry) => Ok((&expiry.name, expiry.made_by)),
        Operation::RollBack(back) => Ok((&back.snapshot, back.made_by)),
        Operation::UpdateController(update) => Ok((&update.snapshot.name, context.progress.id)),
        other => Err(Trouble::fault(format!("a {} has no snapshot", other.kind().as_str()))),
    }
}

/// What stands under the snapshot's name now.
pub(super) async fn find(context: &Context<'_>) -> Result<Found, Trouble> {
    let (name, made_by) = named(context)?;
    let vmid = vmid(context)?;
    let listed = context.ports.pve.snapshots(vmid).await?;
    Ok(OwnSnapshot::find(vmid, name, &mark::snapshot_line(made_by), &listed))
}

/// A snapshot in the middle of its making or removal: waited for while a task works on it, else left for a person, since
/// no token can take the lock off.
pub(super) async fn half(context: &Context<'_>, state: &str) -> Result<Trouble, Trouble> {
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
    Ok(Trouble::park(ErrorCode::Locked, text, remedy))
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Probed, Trouble> {
    let (name, _) = named(context)?;
    let gone = || Learnt::fact(Fact::SnapshotGone);
    match (context.step, find(context).await?) {
        (_, Found::Half(state)) => Err(half(context, &state).await?),
        (Step::TakeSnapshot, Found::Whole(own)) => {
            let made = own.made_epoch_s().and_then(|second| i64::try_from(second).ok());
            let at = made.and_then(|second| Timestamp::from_second(second).ok());
            let at = at.unwrap_or_else(|| context.ports.clock.now());
            Ok(Probed::Happened(Learnt::fact(Fact::SnapshotTaken { at })))
        }
        (Step::TakeSnapshot, Found::Others) => {
            let text =
                format!("a snapshot {name} is there already, made by somebody else: choose another name");
            Err(Trouble::give_up(ErrorCode::NameTaken, text))
        }
        (Step::TakeSnapshot, Found::Nothing) | (_, Found::Whole(_)) => Ok(Probed::Not),
        (_, Found::Nothing) => Ok(Probed::Happened(gone())),
        (_, Found::Others) => {
            let text =
                format!("snapshot {name} does not carry the line of its maker any more: it is left as it is");
            let problem = Problem::new(ErrorCode::NotYours, text.clone());
            let facts = vec![Fact::SnapshotGone, Fact::Condition(problem)];
            Ok(Probed::Happened(Learnt { facts, note: Some(text) }))
        }
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    free_config(context).await?;
    let (vmid, (name, made_by)) = (vmid(context)?, named(context)?);
    if let Operation::ExpireSnapshot(expiry) = &context.progress.operation {
        may_go(context, expiry).await?;
        return removal(context).await.map(|task| task.map_or(Acted::Done, Acted::Task));
    }
    let line = Description::try_from(mark::snapshot_line(made_by));
    let line = line.map_err(|error| Trouble::fault(error.to_string()))?;
    let new = NewSnapshot { name: name.clone(), line };
    Ok(Acted::Task(context.ports.pve.snapshot(vmid, &new).await?))
}

/// Our own record must know the snapshot, and say that its time is over, that its guest had wished for it, or that the
/// schedule took it and the retention in force lets it go.
async fn may_go(context: &Context<'_>, expiry: &ExpireSnapshot) -> Result<(), Trouble> {
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

fn kept(expiry: &ExpireSnapshot) -> Trouble {
    let text = format!("our records do not allow that snapshot {} goes: it is kept", expiry.name);
    Trouble::give_up(ErrorCode::Forbidden, text)
}

/// Whether what is in force now lets it go, by a clock that is kept. A retention that was raised meanwhile keeps it.
async fn is_let_go(context: &Context<'_>, record: &SnapshotRecord) -> Result<bool, Trouble> {
    let store = &context.ports.store;
    if !clock_is_kept(context).await? {
        return Ok(false);
    }
    let Some(promise) = store.owing(record.guest, context.ports.clock.now()).await?.promise else {
        return Ok(false);
    };
    let all = store.snapshots(record.guest).await?;
    let gone = retention::snapshots(&all, promise.tiers.snapshot.as_ref(), context.ports.clock.now());
    Ok(gone.iter().any(|one| one.made_by == record.made_by))
}

/// Starts the removal, when there still is something of ours.
async fn removal(context: &Context<'_>) -> Result<Option<Upid>, Trouble> {
    match find(context).await? {
        Found::Whole(own) => Ok(Some(context.ports.pve.remove_snapshot(&own).await?)),
        Found::Half(state) => Err(half(context, &state).await?),
        Found::Others | Found::Nothing => Ok(None),
    }
}

/// Removes exactly the snapshot that this operation made.
pub(super) async fn take_back(context: &Context<'_>) -> Result<Left, Trouble> {
    match find(context).await? {
        Found::Nothing | Found::Others => Ok(Left::Nothing(Some("no snapshot of ours is there".to_owned()))),
        Found::Half(state) => Err(half(context, &state).await?),
        Found::Whole(_) => {
            free_config(context).await?;
            Ok(removal(context).await?.map_or(Left::Nothing(None), Left::Task))
        }
    }
}
