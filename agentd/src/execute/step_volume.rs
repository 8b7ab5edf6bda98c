//! Steps that make a volume for an existing guest.

use holdfast_protocol::code::ErrorCode;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{own_config, vmid};
use super::step_config::change;
use super::trouble::StepError;
use crate::model::records::VolumeId;
use crate::operation::log::Finding;
use crate::operation::step::Step;
use crate::operation::{AttachVolume, Operation};
use crate::port::pve::change::{MountSlot, NewVolume};
use crate::port::pve::volume::{Backing, Disk, InBackup};
use crate::port::pve::{ConfigChange, ContentKind, GuestConfig, PveError, Role};

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    let attach = spec(context)?;
    let config = own_config(context).await?;
    let Some(disk) = disk(&config, attach) else { return Ok(Checked::Not) };
    match (&disk.backing, disk.mount.as_deref()) {
        (_, path) if path != Some(attach.volume.mount.as_str()) => Err(taken(attach)),
        (Backing::Volume(id), _) => {
            let note = Some(format!("{id} as mp{}", attach.slot));
            Ok(Checked::Happened(StepOutput {
                facts: vec![Finding::Volume(VolumeId::new(id.as_str()))],
                note,
            }))
        }
        (Backing::Goal(_), _) => Ok(Checked::Not),
        (Backing::Host(_), _) => Err(taken(attach)),
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let attach = spec(context)?;
    let config = own_config(context).await?;
    let new = NewVolume {
        slot: MountSlot(attach.slot),
        storage: attach.storage.clone(),
        size: attach.volume.size_gib,
        mount: attach.volume.mount.clone(),
        in_backup: InBackup::of(&attach.volume.kind),
    };
    let update = crate::port::pve::ConfigUpdate::new(config.digest, vec![ConfigChange::AddVolume(new)])
        .map_err(|error| StepError::fault(error.to_string()))?;
    match context.ports.pve.configure(vmid(context)?, &update).await {
        Ok(()) => Ok(Started::Done),
        // The guest runs and the kernel would not take the mount, or the storage could not make the volume. The request
        // stays pending, and the undo withdraws it.
        Err(PveError::Parameters { errors, .. }) if errors.contains_key(&key(attach)) => {
            let why = errors.get(&key(attach)).map(|text| text.trim()).unwrap_or_default();
            let text = format!(
                "Proxmox could not attach volume {} ({why}): if the guest runs, stop it for a moment, and it is attached then",
                attach.volume.name
            );
            Err(StepError::give_up(ErrorCode::Unavailable, text))
        }
        Err(error) => Err(error.into()),
    }
}

/// Withdraws what was requested and not made; what was made stays.
pub(super) async fn withdraw(context: &Context<'_>) -> Result<Option<String>, StepError> {
    let attach = spec(context)?;
    let config = own_config(context).await?;
    let pending = disk(&config, attach).is_some_and(|disk| {
        matches!(disk.backing, Backing::Goal(_))
            && disk.mount.as_deref() == Some(attach.volume.mount.as_str())
    });
    if !pending {
        return Ok(None);
    }
    change(context, config, vec![ConfigChange::WithdrawRequest(MountSlot(attach.slot))]).await?;
    match disk(&own_config(context).await?, attach) {
        None => Ok(Some(format!("mp{} was withdrawn", attach.slot))),
        Some(_) => {
            let text =
                format!("mp{} was withdrawn by Proxmox's word, but it is still asked for", attach.slot);
            Err(StepError::again(ErrorCode::Unavailable, text))
        }
    }
}

/// A volume that was made and never attached to the guest has no owner: a person should know its name. The answer is
/// what could not be determined.
pub(super) async fn leftover(context: &Context<'_>) -> Result<Option<String>, StepError> {
    let Operation::AttachVolume(attach) = &context.progress.operation else { return Ok(None) };
    if !context.progress.began(Step::AddVolume) {
        return Ok(None);
    }
    let (config, vmid, pve) = (own_config(context).await?, vmid(context)?, &context.ports.pve);
    let list =
        match pve.storage_content(Role::Operate, &attach.storage, ContentKind::Rootdir, Some(vmid)).await {
            Ok(list) => list,
            // The guest is whole and protected; a storage that is away must not keep it from its other work.
            Err(error) => return Ok(Some(format!("whether a volume is left is not known: {error}"))),
        };
    let named = config.volumes();
    let unnamed = |volid: &str| !named.iter().any(|volume| volume.as_str() == volid);
    match list.into_iter().find(|entry| entry.vmid == Some(vmid) && unnamed(&entry.volid)) {
        None => Ok(None),
        Some(stray) => {
            let text = format!(
                "guest {vmid} is as it was and protected, but the volume {} on its storage belongs to nothing: look at it, then free it",
                stray.volid
            );
            Err(StepError::park(ErrorCode::Unavailable, text, format!("pvesm free {}", stray.volid)))
        }
    }
}

fn spec<'a>(context: &'a Context<'_>) -> Result<&'a AttachVolume, StepError> {
    match &context.progress.operation {
        Operation::AttachVolume(attach) => Ok(attach),
        other => Err(StepError::fault(format!("a {} attaches no volume", other.kind().as_str()))),
    }
}

fn key(attach: &AttachVolume) -> String {
    format!("mp{}", attach.slot)
}

fn disk<'a>(config: &'a GuestConfig, attach: &AttachVolume) -> Option<&'a Disk> {
    config.mounts.get(&u16::from(attach.slot))
}

fn taken(attach: &AttachVolume) -> StepError {
    let text = format!("mp{} was taken by something that we did not attach: it is not touched", attach.slot);
    StepError::give_up(ErrorCode::ForeignGuest, text)
}
