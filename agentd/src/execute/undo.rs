//! The undo of an operation, from its own journal.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{OperationId, StorageName, Vmid};

use super::context::{Context, StepOutput, UndoState};
use super::identity::look_at;
use super::run::{Run, Stopped};
use super::trouble::{StepError, StepRecovery};
use super::{lost_reply, undo_proof};
use super::{
    step_adopt, step_protection, step_reassign_volume, step_restore, step_roll_back, step_snapshot,
    step_swap_back, step_volume, volume_check,
};
use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::planted::{Bug, planted};
use crate::operation::Operation;
use crate::operation::log::{Event, Finding};
use crate::operation::step::{Step, Undo};
use crate::port::pve::config::Switch;
use crate::port::pve::read::Power;
use crate::port::pve::{ContentKind, GuestConfig, LiftProof, PveError, Role, Upid, VmidUse};

impl Run<'_> {
    /// Takes one step back. The inner error is why it could not be.
    pub(super) async fn take_back(
        &mut self,
        place: u16,
        step: Step,
    ) -> Result<Result<StepOutput, StepError>, Stopped> {
        if let Err(trouble) = self.adopt_undo(place, step).await? {
            return Ok(Err(trouble));
        }
        // Two rounds at most: one task, and a look at what it left.
        for _ in 0..4 {
            if let Some(upid) = self.progress.upid(place).map(str::to_owned)
                && self.undo_task(step, &upid)
            {
                match self.follow(place, step, &upid).await {
                    Ok(_) => {}
                    Err(trouble) => return Ok(Err(trouble)),
                }
            }
            let left = {
                let context = Context { ports: self.ports, progress: &self.progress, place, step };
                undo(&context).await
            };
            match left {
                Ok(UndoState::Nothing(note)) => return Ok(Ok(StepOutput { facts: Vec::new(), note })),
                Ok(UndoState::Back(volume)) => {
                    let note = Some(format!("{volume} is back"));
                    return Ok(Ok(StepOutput { facts: vec![Finding::Volume(volume)], note }));
                }
                Ok(UndoState::Task(upid)) => {
                    self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                }
                Err(trouble) => return Ok(Err(trouble)),
            }
        }
        let text =
            format!("the undo of {} was done by Proxmox's word, but the world does not show it", step.name());
        Ok(Err(StepError::again(ErrorCode::Unavailable, text)))
    }

    /// A guest that is being destroyed leaves its pool first, and then no token of ours sees it: without its task one would
    /// take it for somebody else's.
    async fn adopt_undo(&mut self, place: u16, step: Step) -> Result<Result<(), StepError>, Stopped> {
        if self.progress.upid(place).is_some() {
            return Ok(Ok(()));
        }
        let found = {
            let context = Context { ports: self.ports, progress: &self.progress, place, step };
            lost_reply::find_undo(&context).await
        };
        match found {
            Ok(Some(upid)) => {
                self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(trouble) => Ok(Err(trouble)),
        }
    }

    /// Whether a task in the journal belongs to the undo rather than to the step itself.
    fn undo_task(&self, step: Step, upid: &str) -> bool {
        let kind = upid.parse::<Upid>().map(|upid| upid.kind().to_owned()).unwrap_or_default();
        match step.undo() {
            Undo::StopGuest | Undo::StopPlaced => kind == "vzstop",
            Undo::StartFormer => kind == "vzstart",
            Undo::DestroyGuest => kind == "vzdestroy",
            Undo::RemoveSnapshot => kind == "vzdelsnapshot",
            Undo::Nothing(_)
            | Undo::ForgetClaim
            | Undo::Unprotect
            | Undo::Disarm
            | Undo::ProtectAgain
            | Undo::WithdrawRequest
            | Undo::GiveBack
            | Undo::TakeUpAgain
            | Undo::GiveUpPlace
            | Undo::ProtectOther => false,
            Undo::HandBack => kind == "move_volume",
        }
    }
}

async fn undo(context: &Context<'_>) -> Result<UndoState, StepError> {
    match context.step.undo() {
        Undo::Nothing(why) => Ok(UndoState::Nothing(Some(why.to_owned()))),
        Undo::ForgetClaim => {
            match &context.progress.operation {
                Operation::RestoreTest(_) => {
                    context.ports.store.forget_test_access(context.progress.id).await?
                }
                other => context.ports.store.forget_claim(other.uid()).await?,
            }
            Ok(UndoState::Nothing(None))
        }
        Undo::ProtectAgain => Ok(UndoState::Nothing(step_protection::put_back(context).await?)),
        Undo::WithdrawRequest => Ok(UndoState::Nothing(step_volume::withdraw(context).await?)),
        Undo::ProtectOther => Ok(UndoState::Nothing(step_reassign_volume::protect_again(context).await?)),
        Undo::HandBack => step_reassign_volume::hand_back(context).await,
        Undo::GiveBack => {
            permitted(context.progress.id)?;
            Ok(UndoState::Nothing(step_adopt::give_back(context).await?))
        }
        Undo::RemoveSnapshot => {
            permitted(context.progress.id)?;
            step_snapshot::take_back(context).await
        }
        Undo::Disarm => {
            permitted(context.progress.id)?;
            step_roll_back::disarm(context).await
        }
        Undo::StopPlaced | Undo::GiveUpPlace | Undo::TakeUpAgain | Undo::StartFormer => {
            permitted(context.progress.id)?;
            match context.step.undo() {
                Undo::StopPlaced => step_swap_back::stop_placed(context).await,
                Undo::GiveUpPlace => step_swap_back::give_up_place(context).await,
                Undo::TakeUpAgain => step_swap_back::take_up_again(context).await,
                _ => step_swap_back::start_former(context).await,
            }
        }
        Undo::StopGuest | Undo::Unprotect | Undo::DestroyGuest => own_making(context).await,
    }
}

/// Takes back a part of the guest that this operation made.
async fn own_making(context: &Context<'_>) -> Result<UndoState, StepError> {
    let storages = match &context.progress.operation {
        Operation::Provision(provision) => provision.restored_to(),
        Operation::RestoreCopy(copy_of) => BTreeSet::from([&copy_of.storage]),
        Operation::RestoreTest(test) => BTreeSet::from([&test.place.storage]),
        _ => return Err(StepError::fault("this operation made no guest that could be taken back")),
    };
    permitted(context.progress.id)?;
    let Some(vmid) = context.progress.vmid() else {
        return Ok(UndoState::Nothing(Some("no VMID was chosen".to_owned())));
    };
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
        return gone(context, &storages, vmid).await;
    }
    if context.progress.restored_by().is_none() {
        return Ok(UndoState::Nothing(Some(format!("nothing was made; guest {vmid} is somebody else's"))));
    }
    if planted(Bug::HiddenIsGone) && context.ports.pve.guest_config(vmid).await.is_err() {
        return Ok(UndoState::Nothing(None));
    }
    let config = visible(context, vmid).await?;
    let running = context.ports.pve.guest_status(vmid).await?.power != Power::Stopped;
    let proof = undo_proof::prove(context, &config)?;
    match context.step.undo() {
        Undo::StopGuest if running => Ok(UndoState::Task(context.ports.pve.stop(vmid).await?)),
        Undo::Unprotect if config.protection == Switch::On => {
            context.ports.pve.unprotect(&LiftProof::of_undo(&proof), &config.digest).await?;
            Ok(UndoState::Nothing(None))
        }
        Undo::DestroyGuest if running => {
            let text = format!("guest {vmid} runs although its start was taken back: somebody started it");
            Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(vmid)))
        }
        Undo::DestroyGuest if config.protection == Switch::On => {
            context.ports.pve.unprotect(&LiftProof::of_undo(&proof), &config.digest).await?;
            let fresh = context.ports.pve.guest_config(vmid).await?;
            Ok(UndoState::Task(context.ports.pve.destroy(undo_proof::prove(context, &fresh)?).await?))
        }
        Undo::DestroyGuest => Ok(UndoState::Task(context.ports.pve.destroy(proof).await?)),
        Undo::StopGuest
        | Undo::Unprotect
        | Undo::ForgetClaim
        | Undo::ProtectAgain
        | Undo::WithdrawRequest
        | Undo::RemoveSnapshot
        | Undo::Disarm
        | Undo::ProtectOther
        | Undo::HandBack
        | Undo::GiveBack
        | Undo::StopPlaced
        | Undo::GiveUpPlace
        | Undo::TakeUpAgain
        | Undo::StartFormer
        | Undo::Nothing(_) => Ok(UndoState::Nothing(None)),
    }
}

/// The gate is asked here as well: an undo is an effect like any other.
fn permitted(undoing: OperationId) -> Result<(), StepError> {
    match gate(&Effect::UndoOwnMaking { undoing }, Provenance::Journal(undoing), &Approved::default()) {
        Verdict::Free => Ok(()),
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => Err(StepError::fault(why)),
    }
}

/// The guest is gone; its volumes must be as well. Those that the journal knows were read while it was there: a list that
/// does not show them now proves nothing, the end of our own destroy does.
async fn gone(
    context: &Context<'_>,
    storages: &BTreeSet<&StorageName>,
    vmid: Vmid,
) -> Result<UndoState, StepError> {
    if context.step.undo() != Undo::DestroyGuest {
        return Ok(UndoState::Nothing(Some(format!("guest {vmid} is gone"))));
    }
    if context.progress.restored_by().is_none() {
        return Ok(UndoState::Nothing(Some("nothing was made".to_owned())));
    }
    let volumes = context.progress.volumes();
    if !volumes.is_empty() {
        let task = context.progress.upid(context.place);
        volume_check::prove(context, vmid, task, &volumes).await?;
        return Ok(UndoState::Nothing(None));
    }
    // Nothing was ever seen of it: the restore itself failed, and Proxmox takes back what it had begun.
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

/// What follows an undo that could not be done.
pub(super) fn after(step: Step, vmid: Option<Vmid>, trouble: &StepError) -> Option<String> {
    match &trouble.next {
        StepRecovery::Park(remedy) => Some(remedy.clone()),
        StepRecovery::GiveUp => Some(step.remedy(vmid)),
        StepRecovery::Look | StepRecovery::Again | StepRecovery::Away | StepRecovery::Busy => None,
    }
}
