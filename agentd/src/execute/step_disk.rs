//! Steps that grow disks and make volumes of new guests.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredVolume, VolumeKind};
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::size::DiskGib;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::{own_config, vmid};
use super::step_config::change;
use super::trouble::StepError;
use crate::model::records::VolumeId;
use crate::operation::log::Finding;
use crate::operation::step::Step;
use crate::operation::{DiskRef, Operation, Provision};
use crate::port::pve::change::{MountSlot, NewVolume};
use crate::port::pve::read::Power;
use crate::port::pve::volume::{Backing, Disk, InBackup};
use crate::port::pve::{ConfigChange, DiskSlot, GuestConfig};

pub(super) async fn is_attached(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    let (index, _, volume) = volume(context)?;
    mounted(&config, index, volume)
}

pub(super) async fn is_grown(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    let (slot, wanted) = target(context)?;
    let wanted_bytes = u64::from(wanted.get()) << 30;
    if disk(&config, slot).and_then(|disk| disk.size).is_none_or(|size| size < wanted_bytes) {
        return Ok(Checked::Not);
    }
    Ok(Checked::Happened(file_system(context, slot, wanted_bytes).await?))
}

/// A running guest's file system may stay small although the disk grew, and the task says OK all the same.
async fn file_system(
    context: &Context<'_>,
    slot: DiskSlot,
    wanted_bytes: u64,
) -> Result<StepOutput, StepError> {
    if slot != DiskSlot::Rootfs {
        return Ok(StepOutput::nothing());
    }
    let status = context.ports.pve.guest_status(vmid(context)?).await?;
    // A file system keeps up to a tenth for itself.
    let small =
        status.power == Power::Running && status.disk_max > 0 && status.disk_max < wanted_bytes / 10 * 8;
    if !small {
        return Ok(StepOutput::nothing());
    }
    let text = "the disk grew, but the file system in the running guest did not: restart the guest";
    Ok(StepOutput::fact(Finding::Condition(ErrorBody::new(ErrorCode::Unavailable, text))))
}

pub(super) async fn attach(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    let (index, provision, volume) = volume(context)?;
    let new = new_volume(provision, index, volume)?;
    change(context, config, vec![ConfigChange::AddVolume(new)]).await
}

pub(super) async fn grow(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    let (slot, wanted) = target(context)?;
    Ok(Started::Task(context.ports.pve.resize(vmid(context)?, slot, wanted, &config.digest).await?))
}

fn target(context: &Context<'_>) -> Result<(DiskSlot, DiskGib), StepError> {
    match &context.progress.operation {
        Operation::Provision(provision) => Ok((DiskSlot::Rootfs, provision.guest.size.rootfs_gib)),
        Operation::Grow(grow) => Ok((
            match grow.disk {
                DiskRef::Rootfs => DiskSlot::Rootfs,
                DiskRef::Mount(slot) => DiskSlot::Mount(MountSlot(slot)),
            },
            grow.size,
        )),
        other => Err(StepError::fault(format!("a {} grows no disk", other.kind().as_str()))),
    }
}

fn disk(config: &GuestConfig, slot: DiskSlot) -> Option<&Disk> {
    match slot {
        DiskSlot::Rootfs => config.rootfs.as_ref(),
        DiskSlot::Mount(MountSlot(number)) => config.mounts.get(&u16::from(number)),
    }
}

/// The volume that the step is about, with its index in the document.
fn volume<'a>(context: &'a Context<'_>) -> Result<(u8, &'a Provision, &'a DesiredVolume), StepError> {
    let (Operation::Provision(provision), Step::AttachVolume(index)) =
        (&context.progress.operation, context.step)
    else {
        return Err(StepError::fault("only a provision attaches volumes"));
    };
    let volume = provision.guest.volumes.get(usize::from(index));
    volume
        .map(|volume| (index, provision.as_ref(), volume))
        .ok_or_else(|| StepError::fault("there is no such volume"))
}

fn mounted(config: &GuestConfig, index: u8, wanted: &DesiredVolume) -> Result<Checked, StepError> {
    let Some(disk) = config.mounts.get(&u16::from(index)) else {
        return Ok(Checked::Not);
    };
    match (disk.volume(), disk.mount.as_deref()) {
        // Requested by an earlier try, and not made.
        (None, Some(path)) if matches!(disk.backing, Backing::Goal(_)) && path == wanted.mount.as_str() => {
            Ok(Checked::Not)
        }
        (Some(id), Some(path)) if path == wanted.mount.as_str() => {
            Ok(Checked::Happened(StepOutput::fact(Finding::Volume(VolumeId::new(id.as_str())))))
        }
        _ => {
            let text = format!("mp{index} is taken by something that we did not attach");
            Err(StepError::give_up(ErrorCode::ForeignGuest, text))
        }
    }
}

fn new_volume(provision: &Provision, index: u8, volume: &DesiredVolume) -> Result<NewVolume, StepError> {
    let storage = provision.volume_storages.get(usize::from(index)).or(match &volume.kind {
        VolumeKind::Hot => Some(&provision.storage),
        VolumeKind::Bulk(_) => provision.bulk_storage.as_ref(),
    });
    let storage = storage.ok_or_else(|| {
        let text = format!(
            "volume {} is bulk, and this box has no bulk_storage: add one to the settings",
            volume.name
        );
        StepError::give_up(ErrorCode::Unavailable, text)
    })?;
    Ok(NewVolume {
        slot: MountSlot(index),
        storage: storage.clone(),
        size: volume.size_gib,
        mount: volume.mount.clone(),
        in_backup: InBackup::of(&volume.kind),
    })
}
