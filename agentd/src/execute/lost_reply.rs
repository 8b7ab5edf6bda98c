//! Our own task, found again after a lost reply.

use holdfast_protocol::id::Vmid;

use super::context::Context;
use super::own_tasks::rows_of;
use super::registry::{self, TaskLookup, UndoActions};
use super::trouble::StepError;
use crate::operation::Operation;
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
            let Operation::ReassignVolume(hand) = operation else { return Ok(None) };
            newest_of(context, hand.to().vmid, &[kind], Role::Operate).await
        }
        TaskLookup::RunningOfOriginal => {
            let Some(vmid) = operation.vmid() else { return Ok(None) };
            let rows = rows_of(context, vmid, kind, Role::Operate).await?;
            Ok(rows.into_iter().find(|row| row.end.is_none()).map(|row| row.upid))
        }
    }
}

async fn newest(context: &Context<'_>, kinds: &[TaskKind], role: Role) -> Result<Option<Upid>, StepError> {
    match context.progress.vmid() {
        Some(vmid) => newest_of(context, vmid, kinds, role).await,
        None => Ok(None),
    }
}

async fn newest_of(
    context: &Context<'_>,
    vmid: Vmid,
    kinds: &[TaskKind],
    role: Role,
) -> Result<Option<Upid>, StepError> {
    for kind in kinds {
        if let Some(row) = rows_of(context, vmid, *kind, role).await?.into_iter().next() {
            return Ok(Some(row.upid));
        }
    }
    Ok(None)
}
