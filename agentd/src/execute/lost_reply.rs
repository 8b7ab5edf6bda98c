//! Our own task, found again after a lost reply.

use holdfast_protocol::id::Vmid;

use super::context::Context;
use super::own_tasks::rows_of;
use super::registry::{self, TaskLookup, UndoActions};
use super::step_move_volume;
use super::trouble::StepError;
use crate::operation::Operation;
use crate::operation::step::Step;
use crate::port::pve::task::TaskKind;
use crate::port::pve::{Role, Upid};

/// The task of this step's running try.
pub(super) async fn find(context: &Context<'_>) -> Result<Option<Upid>, StepError> {
    match registry::actions(context.step).task {
        Some((kinds, role)) => newest(context, kinds, role).await,
        None => Ok(None),
    }
}

/// The task of this step's undo.
pub(super) async fn find_undo(context: &Context<'_>) -> Result<Option<Upid>, StepError> {
    let UndoActions::Task { kind, lookup, .. } = registry::undo_actions(context.step.undo()) else {
        return Ok(None);
    };
    let operation = &context.progress.operation;
    match lookup {
        TaskLookup::Newest(role) => newest(context, &[kind], role).await,
        TaskLookup::OfTaker => {
            let taker = match operation {
                Operation::ReassignVolume(hand) => Some(hand.to().vmid),
                other => context.progress.vmid().filter(|_| matches!(other, Operation::RebaseGuest(_))),
            };
            let Some(taker) = taker else { return Ok(None) };
            let subject = step_move_volume::task_back(context)?;
            newest_of(context, taker, &[kind], Role::Operate, subject.as_deref()).await
        }
        TaskLookup::RunningOfOriginal => {
            let Some(vmid) = operation.vmid() else { return Ok(None) };
            let rows = rows_of(context, vmid, kind, Role::Operate).await?;
            Ok(rows.into_iter().find(|row| row.end.is_none()).map(|row| row.upid))
        }
    }
}

/// The guest that a step's task works on.
fn worked_on(context: &Context<'_>) -> Option<Vmid> {
    // The guest that is replaced, whatever number was chosen for the other since.
    if matches!(context.step, Step::StopOriginal | Step::MoveVolume(_)) {
        context.progress.operation.vmid()
    } else {
        context.progress.vmid()
    }
}

async fn newest(context: &Context<'_>, kinds: &[TaskKind], role: Role) -> Result<Option<Upid>, StepError> {
    match worked_on(context) {
        Some(vmid) => {
            newest_of(context, vmid, kinds, role, step_move_volume::task(context)?.as_deref()).await
        }
        None => Ok(None),
    }
}

/// The newest of these kinds; of several on one guest the one with this subject. Tasks are listed by the second, and within
/// one second several volumes of a guest may have moved.
async fn newest_of(
    context: &Context<'_>,
    vmid: Vmid,
    kinds: &[TaskKind],
    role: Role,
    subject: Option<&str>,
) -> Result<Option<Upid>, StepError> {
    for kind in kinds {
        let rows = rows_of(context, vmid, *kind, role).await?;
        let mut rows = rows.into_iter().filter(|row| subject.is_none_or(|one| row.upid.subject() == one));
        if let Some(row) = rows.next() {
            return Ok(Some(row.upid));
        }
    }
    Ok(None)
}
