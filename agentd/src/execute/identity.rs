//! The ownership check before every effect.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;

use super::context::Context;
use super::trouble::StepError;
use crate::model::mark::{self, Mark};
use crate::model::records::{Place, VolumeId};
use crate::operation::step::Step;
use crate::operation::{Makes, Operation};
use crate::port::pve::{GuestConfig, PveError};

/// The number this operation works on.
pub(super) fn vmid(context: &Context<'_>) -> Result<Vmid, StepError> {
    context.progress.vmid().ok_or_else(|| StepError::fault("a step needs a VMID, and none was chosen"))
}

/// The guest's configuration, when number, mark and volumes all show that it is the one this operation is about.
pub(super) async fn own_config(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    if matches!(context.progress.operation.makes(), Makes::Scratch(_)) {
        return own_copy(context).await;
    }
    let vmid = vmid(context)?;
    let config = context.ports.pve.guest_config(vmid).await?;
    if let Operation::DiscardCopy(discard) = &context.progress.operation {
        return match mark::read(&config.tags, &config.description) == discard.mark() {
            true => Ok(config),
            false => Err(StepError::give_up(
                ErrorCode::TargetChanged,
                format!(
                    "guest {vmid} does not carry the mark of the copy that was signed for: it is not touched"
                ),
            )),
        };
    }
    let uid = context.progress.operation.uid();
    let making = matches!(context.progress.operation.makes(), Makes::Guest(_));
    let unmarked = making && !context.progress.did(Step::Mark);
    let seen = mark::read(&config.tags, &config.description);
    match seen {
        Mark::Of(found) if found == uid => {}
        // Before the mark is set, the restore in the journal is the evidence; a half-set mark is our own as well.
        Mark::None if unmarked && context.progress.restored_by().is_some() => {}
        _ => {
            let text = format!(
                "guest {vmid} does not carry the mark of {uid}: it is somebody else's now, and is not touched"
            );
            return Err(StepError::park(other(context), text, look_at(vmid)));
        }
    }
    with_volumes(context, config).await
}

/// What it is called when the guest is not the one that was meant.
const fn other(context: &Context<'_>) -> ErrorCode {
    match context.progress.operation {
        Operation::Destroy(_) | Operation::DiscardCopy(_) => ErrorCode::TargetChanged,
        Operation::AdoptGuest(_)
        | Operation::AttachVolume(_)
        | Operation::Backup(_)
        | Operation::ExpireSnapshot(_)
        | Operation::Grow(_)
        | Operation::ReassignVolume(_)
        | Operation::RebaseGuest(_)
        | Operation::Provision(_)
        | Operation::QuiescedBackup(_)
        | Operation::PruneBackup(_)
        | Operation::Reconfigure(_)
        | Operation::RestoreCopy(_)
        | Operation::RestartGuest(_)
        | Operation::RestoreTest(_)
        | Operation::RollBack(_)
        | Operation::Snapshot(_)
        | Operation::Start(_)
        | Operation::Stop(_)
        | Operation::SwapGuest(_)
        | Operation::UpdateController(_) => ErrorCode::ForeignGuest,
    }
}

/// The configuration back, when it still has every volume that we made.
pub(super) async fn with_volumes(
    context: &Context<'_>,
    config: GuestConfig,
) -> Result<GuestConfig, StepError> {
    let vmid = vmid(context)?;
    let ours = match context.progress.operation.makes() {
        Makes::Guest(_) | Makes::Adopted(_) | Makes::Copy(_) | Makes::Scratch(_) => {
            context.progress.volumes()
        }
        // Its own root disk, and what moved to it; before it has a number of its own it is the guest.
        Makes::Successor(rebase) if vmid != rebase.guest().vmid => {
            context.progress.volumes().into_iter().chain(context.progress.moved().into_values()).collect()
        }
        Makes::Successor(_) | Makes::Nothing => recorded_volumes(context).await?,
    };
    let present: BTreeSet<VolumeId> = config.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect();
    match ours.iter().find(|volume| !present.contains(*volume)) {
        Some(missing) => {
            let text = format!("guest {vmid} has lost volume {missing} that we made: it is not touched");
            Err(StepError::park(other(context), text, look_at(vmid)))
        }
        None => Ok(config),
    }
}

/// The same for a guest without a lock: a lock is waited for.
pub(super) async fn free_config(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let config = own_config(context).await?;
    match config.lock.clone() {
        Some(kind) => Err(PveError::Locked { kind }.into()),
        None => Ok(config),
    }
}

/// The volumes that our records know of a guest that was made.
pub(super) async fn recorded_volumes(context: &Context<'_>) -> Result<BTreeSet<VolumeId>, StepError> {
    let uid = context.progress.operation.uid();
    match context.ports.store.guest(uid).await?.map(|record| record.place) {
        Some(Place::Made { volumes, .. }) => Ok(volumes),
        _ => Err(StepError::fault(format!("there is no record of guest {uid} as made"))),
    }
}

pub(super) fn look_at(vmid: Vmid) -> String {
    format!("pct config {vmid}")
}

/// The copy's configuration, when number, line and volumes all show that this operation made it.
pub(super) async fn own_copy(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let vmid = vmid(context)?;
    let first_line = mark::copy_line(context.progress.operation.uid(), context.progress.id);
    let config = context.ports.pve.guest_config(vmid).await?;
    if config.description.lines().next() != Some(first_line.as_str()) {
        let text = format!("guest {vmid} is not the copy that this operation made: it is not touched");
        return Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(vmid)));
    }
    with_volumes(context, config).await
}
