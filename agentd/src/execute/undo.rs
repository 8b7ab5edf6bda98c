//! Taking back what this operation made, and nothing else: by VMID and mark and volumes, all from its own journal.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{OperationId, StorageName, Vmid};

use super::attempt::Context;
use super::identity::look_at;
use super::lost;
use super::run::{Run, Stopped};
use super::trouble::{Next, Trouble};
use super::{step_protection, step_roll_back, step_snapshot, step_volume};
use crate::gate::{Approved, Effect, Provenance, Verdict, gate};
use crate::model::mark;
use crate::model::planted::{Bug, planted};
use crate::model::record::VolumeId;
use crate::operation::log::Event;
use crate::operation::step::{Step, Undo};
use crate::operation::{Operation, Provision};
use crate::port::pve::config::Switch;
use crate::port::pve::read::Power;
use crate::port::pve::undo::{Evidence, Made, UndoProof};
use crate::port::pve::{ContentKind, GuestConfig, LiftProof, PveError, Role, Upid, VmidUse};

/// What is left to do of an undo.
pub(super) enum Left {
    Nothing(Option<String>),
    Task(Upid),
}

impl Run<'_> {
    /// Takes one step back. The inner error is why it could not be.
    pub(super) async fn take_back(
        &mut self,
        place: u16,
        step: Step,
    ) -> Result<Result<Option<String>, Trouble>, Stopped> {
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
                Ok(Left::Nothing(note)) => return Ok(Ok(note)),
                Ok(Left::Task(upid)) => {
                    self.write(Event::Posted { step: place, upid: upid.as_str().to_owned() }).await?;
                }
                Err(trouble) => return Ok(Err(trouble)),
            }
        }
        let text =
            format!("the undo of {} was done by Proxmox's word, but the world does not show it", step.name());
        Ok(Err(Trouble::again(ErrorCode::Unavailable, text)))
    }

    /// A guest that is being destroyed leaves its pool first, and then no token of ours sees it: without its task one would
    /// take it for somebody else's.
    async fn adopt_undo(&mut self, place: u16, step: Step) -> Result<Result<(), Trouble>, Stopped> {
        if self.progress.upid(place).is_some() {
            return Ok(Ok(()));
        }
        let found = {
            let context = Context { ports: self.ports, progress: &self.progress, place, step };
            lost::find_undo(&context).await
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
            Undo::StopGuest => kind == "vzstop",
            Undo::DestroyGuest => kind == "vzdestroy",
            Undo::RemoveSnapshot => kind == "vzdelsnapshot",
            Undo::Nothing(_)
            | Undo::ForgetClaim
            | Undo::Unprotect
            | Undo::Disarm
            | Undo::ProtectAgain
            | Undo::WithdrawWish => false,
        }
    }
}

async fn undo(context: &Context<'_>) -> Result<Left, Trouble> {
    match context.step.undo() {
        Undo::Nothing(why) => Ok(Left::Nothing(Some(why.to_owned()))),
        Undo::ForgetClaim => {
            context.ports.store.forget_claim(context.progress.operation.uid()).await?;
            Ok(Left::Nothing(None))
        }
        Undo::ProtectAgain => Ok(Left::Nothing(step_protection::put_back(context).await?)),
        Undo::WithdrawWish => Ok(Left::Nothing(step_volume::withdraw(context).await?)),
        Undo::RemoveSnapshot => {
            permitted(context.progress.id)?;
            step_snapshot::take_back(context).await
        }
        Undo::Disarm => {
            permitted(context.progress.id)?;
            step_roll_back::disarm(context).await
        }
        Undo::StopGuest | Undo::Unprotect | Undo::DestroyGuest => own_making(context).await,
    }
}

/// Takes back a part of the guest that this operation made.
async fn own_making(context: &Context<'_>) -> Result<Left, Trouble> {
    let Operation::Provision(provision) = &context.progress.operation else {
        return Err(Trouble::fault("this operation made no guest that could be taken back"));
    };
    permitted(context.progress.id)?;
    let Some(vmid) = context.progress.vmid() else {
        return Ok(Left::Nothing(Some("no VMID was chosen".to_owned())));
    };
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
        return gone(context, provision, vmid).await;
    }
    if context.progress.restored_by().is_none() {
        return Ok(Left::Nothing(Some(format!("nothing was made; guest {vmid} is somebody else's"))));
    }
    if planted(Bug::HiddenIsGone) && context.ports.pve.guest_config(vmid).await.is_err() {
        return Ok(Left::Nothing(None));
    }
    let config = visible(context, vmid).await?;
    let running = context.ports.pve.guest_status(vmid).await?.power != Power::Stopped;
    let proof = prove(context, &config)?;
    match context.step.undo() {
        Undo::StopGuest if running => Ok(Left::Task(context.ports.pve.stop(vmid).await?)),
        Undo::Unprotect if config.protection == Switch::On => {
            context.ports.pve.unprotect(&LiftProof::of_undo(&proof), &config.digest).await?;
            Ok(Left::Nothing(None))
        }
        Undo::DestroyGuest if running => {
            let text = format!("guest {vmid} runs although its start was taken back: somebody started it");
            Err(Trouble::park(ErrorCode::ForeignGuest, text, look_at(vmid)))
        }
        Undo::DestroyGuest if config.protection == Switch::On => {
            context.ports.pve.unprotect(&LiftProof::of_undo(&proof), &config.digest).await?;
            let fresh = context.ports.pve.guest_config(vmid).await?;
            Ok(Left::Task(context.ports.pve.destroy(prove(context, &fresh)?).await?))
        }
        Undo::DestroyGuest => Ok(Left::Task(context.ports.pve.destroy(proof).await?)),
        Undo::StopGuest
        | Undo::Unprotect
        | Undo::ForgetClaim
        | Undo::ProtectAgain
        | Undo::WithdrawWish
        | Undo::RemoveSnapshot
        | Undo::Disarm
        | Undo::Nothing(_) => Ok(Left::Nothing(None)),
    }
}

/// The gate is asked here as well: an undo is an effect like any other.
fn permitted(undoing: OperationId) -> Result<(), Trouble> {
    match gate(&Effect::UndoOwnMaking { undoing }, Provenance::Journal(undoing), &Approved::default()) {
        Verdict::Free => Ok(()),
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => Err(Trouble::fault(why)),
    }
}

/// The guest is gone; its volumes must be as well.
async fn gone(context: &Context<'_>, provision: &Provision, vmid: Vmid) -> Result<Left, Trouble> {
    let mut storages = BTreeSet::from([provision.storage.clone()]);
    let named = |volume: &VolumeId| volume.as_str().split_once(':')?.0.parse::<StorageName>().ok();
    storages.extend(context.progress.volumes().iter().filter_map(named));
    for storage in &storages {
        let list = context
            .ports
            .pve
            .storage_content(Role::Operate, storage, ContentKind::Rootdir, Some(vmid))
            .await?;
        if let Some(left) = list.into_iter().find(|entry| entry.vmid == Some(vmid)) {
            let text = format!("guest {vmid} is gone, but its volume {} is left", left.volid);
            return Err(Trouble::park(ErrorCode::Unavailable, text, format!("pvesm free {}", left.volid)));
        }
    }
    Ok(Left::Nothing(None))
}

async fn visible(context: &Context<'_>, vmid: Vmid) -> Result<GuestConfig, Trouble> {
    let leftover = |why: String| {
        let text = format!("guest {vmid} was left half-made ({why}), where no token of ours can clear it");
        Trouble::park(ErrorCode::Locked, text, format!("pct unlock {vmid}; pct destroy {vmid}"))
    };
    match context.ports.pve.guest_config(vmid).await {
        Ok(config) => match config.lock.clone() {
            Some(lock) => Err(leftover(format!("lock {lock}"))),
            None => Ok(config),
        },
        Err(PveError::Permission { text, .. }) => Err(leftover(text)),
        Err(error) => Err(error.into()),
    }
}

fn prove(context: &Context<'_>, config: &GuestConfig) -> Result<UndoProof, Trouble> {
    let refuse = |why: String, vmid: Vmid| Trouble::park(ErrorCode::ForeignGuest, why, look_at(vmid));
    let vmid = context.progress.vmid().ok_or_else(|| Trouble::fault("there is no VMID to undo"))?;
    let uid = context.progress.operation.uid();
    // The mark may stand although its outcome was never written: then it is the better evidence.
    let marked = mark::read(&config.tags, &config.description) == mark::Mark::Of(uid);
    let evidence = if context.progress.did(Step::Mark) || (context.progress.began(Step::Mark) && marked) {
        Evidence::Mark { tags: mark::tags(uid).into(), first_line: mark::first_line(uid) }
    } else {
        let upid = context.progress.restored_by().and_then(|text| text.parse::<Upid>().ok());
        Evidence::Restore(upid.ok_or_else(|| Trouble::fault("the journal does not name the restore"))?)
    };
    let volumes =
        context.progress.volumes().iter().filter_map(|volume| volume.as_str().parse().ok()).collect();
    let made = Made { vmid, evidence, volumes };
    UndoProof::establish(&made, config).map_err(|why| refuse(why.to_string(), vmid))
}

/// What follows an undo that could not be done.
pub(super) fn after(step: Step, vmid: Option<Vmid>, trouble: &Trouble) -> Option<String> {
    match &trouble.next {
        Next::Park(remedy) => Some(remedy.clone()),
        Next::GiveUp => Some(step.remedy(vmid)),
        Next::Look | Next::Again | Next::Away | Next::Busy => None,
    }
}
