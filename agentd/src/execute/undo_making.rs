//! Undo of a guest that the operation made.
//!
//! In: the journal, and the guest as it is observed. Out: nothing is left of it, or a person is needed. Only what the
//! proof of [`undo_proof`] covers is touched: the guest was made by this very operation, and has its mark.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{StorageName, Vmid};

use super::context::{Context, UndoState};
use super::identity::look_at;
use super::trouble::StepError;
use super::{step_restore, undo_proof, volume_check};
use crate::operation::Makes;
use crate::port::pve::config::Switch;
use crate::port::pve::read::Power;
use crate::port::pve::{ContentKind, GuestConfig, LiftProof, PveError, Role, UndoProof, VmidUse};
use crate::port::store::access::TokenBack;

/// Forgets the claim of a guest, or the access of a restore test.
pub(super) async fn forget_claim(context: &Context<'_>) -> Result<UndoState, StepError> {
    let store = &context.ports.store;
    match context.progress.operation.makes() {
        Makes::Scratch(_) => store.forget_test_access(context.progress.id).await?,
        Makes::Successor(rebase) => {
            let (found, now) = (context.progress.found_token(), context.ports.clock.now());
            if store.give_token_back(rebase.guest().uid, found, now).await? == TokenBack::Gone {
                let text = "its claim was redeemed so often that the guest's own token is not remembered: its controller is not heard \
                            until the guest is made again";
                return Ok(UndoState::Nothing(Some(text.to_owned())));
            }
        }
        Makes::Guest(_) | Makes::Adopted(_) | Makes::Copy(_) | Makes::Nothing => {
            store.forget_claim(context.progress.operation.uid()).await?;
        }
    }
    Ok(UndoState::Nothing(None))
}

/// The guest that this operation made, as it is seen now.
enum Making<'a> {
    /// Nothing was made, or it is not ours.
    None(String),
    /// No guest has its VMID; its volumes were on these storages.
    Gone(Vmid, BTreeSet<&'a StorageName>),
    There(Box<There>),
}

struct There {
    vmid: Vmid,
    config: GuestConfig,
    runs: bool,
    proof: UndoProof,
}

async fn making<'a>(context: &Context<'a>) -> Result<Making<'a>, StepError> {
    let storages = match context.progress.operation.makes() {
        Makes::Guest(provision) => provision.restored_to(),
        Makes::Copy(copy_of) => BTreeSet::from([&copy_of.storage]),
        Makes::Successor(rebase) => {
            if context.progress.vmid() == Some(rebase.guest().vmid) {
                return Ok(Making::None("no number was chosen for the new container".to_owned()));
            }
            BTreeSet::from([&rebase.successor.storage])
        }
        Makes::Scratch(test) => BTreeSet::from([&test.place.storage]),
        Makes::Adopted(_) | Makes::Nothing => {
            return Err(StepError::fault("this operation made no guest that could be taken back"));
        }
    };
    let Some(vmid) = context.progress.vmid() else {
        return Ok(Making::None("no VMID was chosen".to_owned()));
    };
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
        return Ok(Making::Gone(vmid, storages));
    }
    if context.progress.restored_by().is_none() {
        return Ok(Making::None(format!("nothing was made; guest {vmid} is somebody else's")));
    }
    let config = visible(context, vmid).await?;
    let runs = context.ports.pve.guest_status(vmid).await?.power != Power::Stopped;
    let proof = undo_proof::prove(context, &config)?;
    Ok(Making::There(Box::new(There { vmid, config, runs, proof })))
}

/// Stops it.
pub(super) async fn stop(context: &Context<'_>) -> Result<UndoState, StepError> {
    match making(context).await? {
        Making::None(why) => Ok(UndoState::Nothing(Some(why))),
        Making::Gone(vmid, _) => Ok(UndoState::Nothing(Some(format!("guest {vmid} is gone")))),
        Making::There(guest) if guest.runs => Ok(UndoState::Task(context.ports.pve.stop(guest.vmid).await?)),
        Making::There(_) => Ok(UndoState::Nothing(None)),
    }
}

/// Takes off the protection that this operation set.
pub(super) async fn unprotect(context: &Context<'_>) -> Result<UndoState, StepError> {
    match making(context).await? {
        Making::None(why) => Ok(UndoState::Nothing(Some(why))),
        Making::Gone(vmid, _) => Ok(UndoState::Nothing(Some(format!("guest {vmid} is gone")))),
        Making::There(guest) => {
            if guest.config.protection == Switch::On {
                let lift = LiftProof::of_undo(&guest.proof);
                context.ports.pve.unprotect(&lift, &guest.config.digest).await?;
            }
            Ok(UndoState::Nothing(None))
        }
    }
}

/// Destroys it, and sees that its volumes are gone.
pub(super) async fn destroy(context: &Context<'_>) -> Result<UndoState, StepError> {
    let guest = match making(context).await? {
        Making::None(why) => return Ok(UndoState::Nothing(Some(why))),
        Making::Gone(vmid, storages) => return gone(context, &storages, vmid).await,
        Making::There(guest) => guest,
    };
    let There { vmid, config, runs, proof } = *guest;
    if runs {
        let text = format!("guest {vmid} runs although its start was taken back: somebody started it");
        return Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(vmid)));
    }
    if config.protection != Switch::On {
        return Ok(UndoState::Task(context.ports.pve.destroy(proof).await?));
    }
    context.ports.pve.unprotect(&LiftProof::of_undo(&proof), &config.digest).await?;
    let fresh = context.ports.pve.guest_config(vmid).await?;
    Ok(UndoState::Task(context.ports.pve.destroy(undo_proof::prove(context, &fresh)?).await?))
}

/// The guest is gone; its volumes must be gone as well. Those in the journal were read while it existed. A list that
/// does not show them now proves nothing; the end of our own destroy does.
async fn gone(
    context: &Context<'_>,
    storages: &BTreeSet<&StorageName>,
    vmid: Vmid,
) -> Result<UndoState, StepError> {
    if context.progress.restored_by().is_none() {
        return Ok(UndoState::Nothing(Some("nothing was made".to_owned())));
    }
    let volumes = context.progress.volumes();
    if !volumes.is_empty() {
        let task = context.progress.upid(context.place);
        volume_check::prove(context, vmid, task, &volumes).await?;
        return Ok(UndoState::Nothing(None));
    }
    // Nothing was ever seen of it: the restore itself failed, and Proxmox removes what it had begun.
    for storage in storages {
        let list = context
            .ports
            .pve
            .storage_content(Role::Operate, storage, ContentKind::Rootdir, Some(vmid))
            .await?;
        if let Some(left) = list.into_iter().find(|entry| entry.vmid == Some(vmid)) {
            let text = format!("guest {vmid} is gone, but its volume {} is left", left.volid);
            return Err(StepError::park(ErrorCode::Unavailable, text, format!("pvesm free {}", left.volid)));
        }
    }
    Ok(UndoState::Nothing(None))
}

async fn visible(context: &Context<'_>, vmid: Vmid) -> Result<GuestConfig, StepError> {
    let leftover = |why: String| {
        let text = format!("guest {vmid} was left half-made ({why}), where no token of ours can clear it");
        StepError::park(ErrorCode::Locked, text, format!("pct unlock {vmid}; pct destroy {vmid}"))
    };
    let why = match context.ports.pve.guest_config(vmid).await {
        Ok(config) => match config.lock.clone() {
            Some(lock) => format!("lock {lock}"),
            None => return Ok(config),
        },
        Err(PveError::Permission { text, .. }) => text,
        Err(error) => return Err(error.into()),
    };
    step_restore::at_rest(context, vmid).await?;
    Err(leftover(why))
}
