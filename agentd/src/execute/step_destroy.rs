//! Steps that destroy a guest.
//!
//! A task's OK proves nothing here: Proxmox says OK when it leaves a volume behind, and it takes the guest out of its
//! pool before it is gone, so that from then on no token of ours sees it.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::look_at;
use super::trouble::StepError;
use super::volume_check;
use crate::gate::warrant::{SignedState, Warrant, road};
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::records::{CopyStage, Place, VolumeId};
use crate::operation::step::Step;
use crate::operation::{Destroy, DiscardCopy, Operation};
use crate::port::pve::visibility::{NeededPrivilege, Sight};
use crate::port::pve::{AclPath, DestroyProof, GuestConfig, PveError, Role, VmidUse, prove_sight};

/// Checks that all is as the operator saw it. Nothing was done yet, so any change parks the operation before it begins.
pub(super) async fn prove(context: &Context<'_>) -> Result<Started, StepError> {
    let signed = spec(context)?;
    let target = signed.target();
    if !is_recorded(context, &signed).await? {
        return Err(signed.changed("our records do not know it under this number"));
    }
    let config = match context.ports.pve.guest_config(target.vmid).await {
        Ok(config) => config,
        Err(PveError::Gone { .. } | PveError::Permission { .. }) => {
            return Err(signed.changed("it is not there any more, or not ours to see"));
        }
        Err(error) => return Err(error.into()),
    };
    proof(context, &config)?;
    let text = format!(
        "{} with {} volumes, as signed by job {}",
        target.name,
        target.volumes.len(),
        signed.warrant().job()
    );
    Ok(Started::Learnt(StepOutput::note(text)))
}

/// Whether our records say that it is there.
async fn is_recorded(context: &Context<'_>, signed: &Signed<'_>) -> Result<bool, StepError> {
    let (store, target) = (&context.ports.store, signed.target());
    Ok(match signed {
        Signed::Guest(_) => {
            let place = store.guest(target.uid).await?.map(|record| record.place);
            matches!(place, Some(Place::Made { vmid, .. }) if vmid == target.vmid)
        }
        Signed::Copy(discard) => store.copies().await?.iter().any(|record| {
            record.vmid == target.vmid
                && record.guest == target.uid
                && record.made_by == discard.made_by()
                && matches!(record.stage, CopyStage::Made { .. })
        }),
    })
}

/// The witness, together with the gate's decision.
pub(super) fn proof(context: &Context<'_>, config: &GuestConfig) -> Result<DestroyProof, StepError> {
    let signed = spec(context)?;
    match gate(&signed.effect(), road(signed.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(StepError::fault(why)),
    }
    if let Some(lock) = &config.lock {
        context.say(format!("the guest is locked ({lock})"));
        return Err(PveError::Locked { kind: lock.clone() }.into());
    }
    let proof = match &signed {
        Signed::Guest(destroy) => DestroyProof::establish(destroy.warrant(), config),
        Signed::Copy(discard) => DestroyProof::of_copy(discard, config),
    };
    proof.map_err(|why| signed.changed(&why.to_string()))
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let signed = spec(context)?;
    let target = signed.target();
    let vmid = target.vmid;
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
        return Ok(Checked::Happened(StepOutput::note(format!("nobody has the number {vmid} any more"))));
    }
    let asked = context.progress.upid(context.place).is_some();
    let config = match context.ports.pve.guest_config(vmid).await {
        Ok(config) => config,
        Err(PveError::Gone { .. } | PveError::Permission { .. }) if asked => return Err(zombie(vmid)),
        Err(PveError::Gone { .. } | PveError::Permission { .. }) => {
            return Err(signed.changed("it is not there any more, or not ours to see"));
        }
        Err(error) => return Err(error.into()),
    };
    if config.lock.as_deref() == Some("destroyed") {
        return Err(zombie(vmid));
    }
    if asked && context.progress.tries(context.place) >= context.step.bound().tries {
        whole(context, target).await?;
    }
    Ok(Checked::Not)
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let config = context.ports.pve.guest_config(spec(context)?.target().vmid).await?;
    let proof = proof(context, &config)?;
    Ok(Started::Task(context.ports.pve.destroy_signed(proof).await?))
}

/// The guest is gone; each of its volumes must be gone as well. With the guest we lose the right to see its volumes, so
/// a list that shows none proves nothing. What counts is the end and the log of the task, and what a list still shows.
pub(super) async fn confirm(context: &Context<'_>) -> Result<Started, StepError> {
    let signed = spec(context)?;
    let target = signed.target();
    volume_check::prove(context, target.vmid, context.progress.upid_of(Step::DestroyGuest), &target.volumes)
        .await?;
    let text = format!("{} volumes are gone by the task's end, its log and the lists", target.volumes.len());
    Ok(Started::Learnt(StepOutput::note(text)))
}

/// The destroy did not finish. If nothing was freed the operation can still be taken back; otherwise it is left to a
/// person. The guest still exists, so our rights still show its volumes, if they ever did.
async fn whole(context: &Context<'_>, target: &SignedState) -> Result<(), StepError> {
    let vmid = target.vmid;
    let mut wanted = vec![NeededPrivilege { path: AclPath::guest(vmid), sight: Sight::DisksOf }];
    wanted.extend(
        volume_check::storages(&target.volumes)?
            .iter()
            .map(|name| NeededPrivilege { path: AclPath::storage(name), sight: Sight::Disks }),
    );
    if let Err(blind) = prove_sight(context.ports.pve.as_ref(), Role::Operate, &wanted).await? {
        let text = format!(
            "the destroy of guest {vmid} did not come to its end, and what it freed is not known: {blind}"
        );
        return Err(StepError::park(ErrorCode::Unavailable, text, look_at(vmid)));
    }
    let left = volume_check::present(context, &target.volumes).await?;
    let gone: Vec<&str> = target.volumes.difference(&left).map(VolumeId::as_str).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let text = format!(
        "guest {vmid} is destroyed by half: {} are gone, its configuration still stands",
        gone.join(", ")
    );
    Err(StepError::park(ErrorCode::Unavailable, text, format!("pct destroy {vmid}")))
}

/// What was signed to be destroyed.
enum Signed<'a> {
    Guest(&'a Destroy),
    Copy(&'a DiscardCopy),
}

impl<'a> Signed<'a> {
    const fn warrant(&self) -> &'a Warrant {
        match self {
            Self::Guest(destroy) => destroy.warrant(),
            Self::Copy(discard) => discard.warrant(),
        }
    }

    const fn target(&self) -> &'a SignedState {
        match self {
            Self::Guest(destroy) => destroy.warrant().target(),
            Self::Copy(discard) => discard.copy(),
        }
    }

    const fn effect(&self) -> Effect {
        match self {
            Self::Guest(_) => Effect::DestroyGuest,
            Self::Copy(_) => Effect::DiscardCopy,
        }
    }

    /// A guest that is another now is left to a person. For a copy that is another, its guest need not wait.
    fn changed(&self, why: &str) -> StepError {
        let vmid = self.target().vmid;
        let text = format!(
            "guest {vmid} is not what was signed for: {why}; nothing is destroyed, a new signature is needed"
        );
        match self {
            Self::Guest(_) => StepError::park(ErrorCode::TargetChanged, text, look_at(vmid)),
            Self::Copy(_) => StepError::give_up(ErrorCode::TargetChanged, text),
        }
    }
}

fn spec<'a>(context: &'a Context<'_>) -> Result<Signed<'a>, StepError> {
    match &context.progress.operation {
        Operation::Destroy(destroy) => Ok(Signed::Guest(destroy)),
        Operation::DiscardCopy(discard) => Ok(Signed::Copy(discard)),
        other => Err(StepError::fault(format!("a {} destroys no guest", other.kind().as_str()))),
    }
}

/// Its volumes are freed and its rights removed, and then the task died at the last line.
fn zombie(vmid: Vmid) -> StepError {
    let text = format!(
        "guest {vmid} is destroyed but for its configuration file, which is locked and which no token of ours can clear"
    );
    StepError::park(ErrorCode::Locked, text, format!("pct unlock {vmid}; pct destroy {vmid}"))
}
