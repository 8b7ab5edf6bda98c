//! Our own task, found again after a lost reply.

use holdfast_protocol::id::Vmid;

use super::context::Context;
use super::trouble::StepError;
use crate::model::planted::{Bug, planted};
use crate::operation::Operation;
use crate::operation::step::{Step, Undo};
use crate::port::pve::read::TaskRow;
use crate::port::pve::task::{TaskKind, TaskQuery};
use crate::port::pve::{PveError, Role, TaskStatus, Upid};

/// The task of this step's running try.
pub(super) async fn find(context: &Context<'_>) -> Result<Option<Upid>, StepError> {
    match started_by(context.step) {
        Some(_) if planted(Bug::SkipAdoption) => Ok(None),
        Some((kinds, role)) => newest(context, kinds, role).await,
        None => Ok(None),
    }
}

/// The task of this step's undo.
pub(super) async fn find_undo(context: &Context<'_>) -> Result<Option<Upid>, StepError> {
    match context.step.undo() {
        Undo::StopGuest => newest(context, &[TaskKind::Stop], Role::Operate).await,
        // Who took it gives it back.
        Undo::HandBack => {
            let Operation::ReassignVolume(hand) = &context.progress.operation else { return Ok(None) };
            newest_of(context, hand.to().vmid, &[TaskKind::MoveVolume], Role::Operate).await
        }
        Undo::DestroyGuest => newest(context, &[TaskKind::Destroy], Role::Allocate).await,
        Undo::RemoveSnapshot => newest(context, &[TaskKind::RemoveSnapshot], Role::Operate).await,
        Undo::StopPlaced => newest(context, &[TaskKind::Stop], Role::Operate).await,
        // What this operation is about has another number by then.
        Undo::StartFormer => match context.progress.operation.vmid() {
            // One that has ended is told by the guest, which runs or does not; and tasks are listed by the second, so it may be
            // of the time before this.
            Some(vmid) => {
                let rows = rows_of(context, vmid, TaskKind::Start, Role::Operate).await?;
                Ok(rows.into_iter().find(|row| row.end.is_none()).map(|row| row.upid))
            }
            None => Ok(None),
        },
        Undo::Nothing(_)
        | Undo::ForgetClaim
        | Undo::Unprotect
        | Undo::ProtectAgain
        | Undo::WithdrawRequest
        | Undo::GiveBack
        | Undo::ProtectOther
        | Undo::TakeUpAgain
        | Undo::GiveUpPlace
        | Undo::Disarm => Ok(None),
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

/// Our tasks of one kind on a guest since the intent, the newest first.
async fn rows_of(
    context: &Context<'_>,
    vmid: Vmid,
    kind: TaskKind,
    role: Role,
) -> Result<Vec<TaskRow>, StepError> {
    let Some(since) = context.progress.intended_at(context.place) else { return Ok(Vec::new()) };
    let since_epoch_s = u64::try_from(since.as_second()).unwrap_or(0);
    Ok(context.ports.pve.find_tasks(TaskQuery { vmid, kind, role, since_epoch_s }).await?)
}

/// Whether a task still runs, by Proxmox's word. What it does not know does not run.
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

/// Which tasks a step starts, and with which token.
fn started_by(step: Step) -> Option<(&'static [TaskKind], Role)> {
    match step {
        Step::Restore => Some((&[TaskKind::Restore], Role::Allocate)),
        Step::GrowRootfs | Step::GrowDisk => Some((&[TaskKind::Resize], Role::Operate)),
        Step::FirstStart | Step::Start | Step::StartAgain | Step::StartPlaced => {
            Some((&[TaskKind::Start], Role::Operate))
        }
        Step::ShutDown | Step::StopOriginal => Some((&[TaskKind::Stop, TaskKind::Shutdown], Role::Operate)),
        Step::FirstBackup | Step::TakeBackup => Some((&[TaskKind::Backup], Role::Operate)),
        Step::RemoveBackup => Some((&[TaskKind::RemoveBackup], Role::Operate)),
        Step::TakeSnapshot => Some((&[TaskKind::Snapshot], Role::Operate)),
        Step::RemoveSnapshot => Some((&[TaskKind::RemoveSnapshot], Role::Operate)),
        Step::RollBack => Some((&[TaskKind::RollBack], Role::Operate)),
        Step::ReassignVolumeTo => Some((&[TaskKind::MoveVolume], Role::Operate)),
        Step::DestroyGuest | Step::DestroyScratch => Some((&[TaskKind::Destroy], Role::Allocate)),
        Step::StopScratch => Some((&[TaskKind::Stop], Role::Operate)),
        Step::ChooseVmid
        | Step::CheckArchive
        | Step::Mark
        | Step::AttachVolume(_)
        | Step::Protect
        | Step::SetBootstrapToken
        | Step::VerifyUnmanaged
        | Step::TagGuest
        | Step::ConfirmTagged
        | Step::AwaitHello
        | Step::AwaitController
        | Step::DropClaim
        | Step::ReadBack
        | Step::ConfirmRunning
        | Step::ConfirmStopped
        | Step::Configure
        | Step::LiftProtection
        | Step::AddVolume
        | Step::ProtectAgain
        | Step::CheckRoom
        | Step::GrantWindow
        | Step::AwaitQuiesced
        | Step::AwaitReleased
        | Step::VerifySnapshot
        | Step::ArmRollBack
        | Step::Renew
        | Step::ConfirmAgain
        | Step::VerifyTarget
        | Step::ConfirmGone
        | Step::TagCopy
        | Step::VerifyBoth
        | Step::LiftOther
        | Step::ProtectOther
        | Step::ConfirmReassigned
        | Step::ConfirmIsolated
        | Step::ObserveBoot
        | Step::AwaitReport
        | Step::ConfirmScratchGone
        | Step::VerifySwap
        | Step::DemoteOriginal
        | Step::PromoteCopy
        | Step::ConfirmPlaced => None,
    }
}
