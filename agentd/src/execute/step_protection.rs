//! Steps that lift and restore protection.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{look_at, own_config, recorded_volumes, vmid};
use super::step_config::change;
use super::trouble::StepError;
use super::{step_destroy, step_volume};
use crate::model::mark;
use crate::operation::Operation;
use crate::port::pve::config::Switch;
use crate::port::pve::{ConfigChange, GuestConfig, KnownGuest, LiftProof};

pub(super) async fn is_off(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    Ok((config.protection == Switch::Off).then(StepOutput::nothing).into())
}

pub(super) async fn lift(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    let proof = prove(context, &config).await?;
    context.ports.pve.unprotect(&proof, &config.digest).await?;
    Ok(Started::Done)
}

pub(super) async fn is_on_again(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    let happened = config.protection == Switch::On;
    Ok(happened.then(StepOutput::nothing).into())
}

pub(super) async fn protect_again(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    change(context, config, vec![ConfigChange::Protect]).await
}

async fn prove(context: &Context<'_>, config: &GuestConfig) -> Result<LiftProof, StepError> {
    if let Operation::Destroy(_) | Operation::DiscardCopy(_) = &context.progress.operation {
        return Ok(LiftProof::of_destroy(&step_destroy::proof(context, config)?));
    }
    let (uid, vmid) = (context.progress.operation.uid(), vmid(context)?);
    let volumes: BTreeSet<_> = recorded_volumes(context)
        .await?
        .iter()
        .map(|volume| volume.as_str().parse())
        .collect::<Result<_, _>>()
        .map_err(|_| StepError::fault("our records name a volume that is none"))?;
    let known = KnownGuest { vmid, tags: mark::tags(uid).into(), first_line: mark::first_line(uid), volumes };
    LiftProof::of_known(&known, config)
        .map_err(|why| StepError::park(ErrorCode::ForeignGuest, why.to_string(), look_at(vmid)))
}

/// The undo of removing it. When it is on again, leftovers of an unfinished attaching are searched for.
pub(super) async fn put_back(context: &Context<'_>) -> Result<Option<String>, StepError> {
    let config = own_config(context).await?;
    if config.protection == Switch::Off {
        change(context, config, vec![ConfigChange::Protect]).await?;
        if own_config(context).await?.protection == Switch::Off {
            let text = "protection was put back by Proxmox's word, but the guest does not show it";
            return Err(StepError::again(ErrorCode::Unavailable, text));
        }
    }
    let doubt = step_volume::leftover(context).await?;
    Ok(Some(doubt.unwrap_or_else(|| "protection is on".to_owned())))
}
