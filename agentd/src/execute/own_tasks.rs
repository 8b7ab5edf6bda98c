//! Tasks of ours in Proxmox's lists.

use holdfast_protocol::id::Vmid;

use super::context::Context;
use super::trouble::StepError;
use crate::port::pve::read::TaskRow;
use crate::port::pve::task::{TaskKind, TaskQuery};
use crate::port::pve::{PveError, Role, TaskStatus, Upid};

/// Our tasks of one kind on a guest since the intent, the newest first.
pub(super) async fn rows_of(
    context: &Context<'_>,
    vmid: Vmid,
    kind: TaskKind,
    role: Role,
) -> Result<Vec<TaskRow>, StepError> {
    let Some(since) = context.progress.intended_at(context.place) else { return Ok(Vec::new()) };
    let since_epoch_s = u64::try_from(since.as_second()).unwrap_or(0);
    Ok(context.ports.pve.find_tasks(TaskQuery { vmid, kind, role, since_epoch_s }).await?)
}

/// Whether a task still runs, as Proxmox reports it. A task that Proxmox does not know does not run.
pub(super) async fn runs(context: &Context<'_>, upid: &str) -> Result<bool, StepError> {
    let Ok(upid) = upid.parse::<Upid>() else { return Ok(false) };
    match context.ports.pve.task_status(&upid).await {
        Ok(status) => Ok(status == TaskStatus::Running),
        Err(PveError::NoSuchTask) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a task of ours of this kind works on the guest now.
pub(super) async fn at_work(context: &Context<'_>, vmid: Vmid, kind: TaskKind) -> Result<bool, StepError> {
    let since_epoch_s = u64::try_from(context.progress.opened_at.as_second()).unwrap_or(0);
    let query = TaskQuery { vmid, kind, role: Role::Operate, since_epoch_s };
    Ok(context.ports.pve.find_tasks(query).await?.iter().any(|row| row.end.is_none()))
}
