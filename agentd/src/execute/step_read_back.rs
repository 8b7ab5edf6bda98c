//! The step that compares the finished guest with the document.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;

use super::context::{Context, Started, StepOutput};
use super::identity::{look_at, own_config, vmid};
use super::step_restore_copy;
use super::trouble::StepError;
use crate::operation::{AttachVolume, Makes, MissingGuest, Operation, Provision};
use crate::port::pve::GuestConfig;
use crate::port::pve::config::Switch;
use crate::port::pve::read::Power;
use crate::port::pve::volume::{Disk, InBackup};

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let (wrong, empty) = match context.progress.operation.makes() {
        Makes::Copy(_) => (step_restore_copy::check(context).await?, None),
        Makes::Guest(_) | Makes::Adopted(_) | Makes::Successor(_) | Makes::Scratch(_) | Makes::Nothing => {
            by_document(context).await?
        }
    };
    if wrong.is_empty() {
        let note = format!("as wanted{}", empty.map(|empty| format!("; {empty}")).unwrap_or_default());
        return Ok(Started::Learnt(StepOutput::note(note)));
    }
    let text = format!("the work was done, but the guest is not as wanted: {}", wrong.join("; "));
    if matches!(&context.progress.operation, Operation::Provision(provision) if provision.lost().is_some()) {
        // It serves, and the plan sees what is wrong with it as with any guest.
        return Err(StepError::give_up(ErrorCode::Unavailable, text));
    }
    Err(StepError::park(ErrorCode::Unavailable, text, look_at(vmid(context)?)))
}

/// The message about a new guest that was stopped since its hello.
const STANDS_STILL: &str = "it was stopped meanwhile, and is started again if it is to run";

/// What differs from the document, and which disks came back empty although it was not known beforehand.
async fn by_document(context: &Context<'_>) -> Result<(Vec<String>, Option<String>), StepError> {
    let config = own_config(context).await?;
    Ok(match &context.progress.operation {
        Operation::Provision(provision) => {
            let status = context.ports.pve.guest_status(vmid(context)?).await?;
            let mut wrong =
                if provision.lost().is_some() { again(&config) } else { differences(provision, &config) };
            let runs = status.power == Power::Running;
            let Some(lost) = provision.lost() else {
                // Its hello arrived. If it was stopped since, for example by a reboot of the node, the plan sees that
                // as with any guest.
                return Ok((wrong, (!runs).then(|| STANDS_STILL.to_owned())));
            };
            if !runs {
                wrong.push("it does not run".to_owned());
            }
            (wrong, lost.disks.is_none().then(|| empty(&config, lost)).flatten())
        }
        Operation::AttachVolume(attach) => (attached(attach, &config), None),
        other => return Err(StepError::fault(format!("a {} is not read back", other.kind().as_str()))),
    })
}

/// Disks that the backup's own configuration leaves out: Proxmox makes them empty. The others hold the archive's data.
fn empty(config: &GuestConfig, lost: &MissingGuest) -> Option<String> {
    let is_out = |disk: &&Disk| disk.volume().is_some() && disk.in_backup == InBackup::No;
    let paths: Vec<&str> =
        config.mounts.values().filter(is_out).filter_map(|disk| disk.mount.as_deref()).collect();
    let storages: BTreeSet<&str> = lost.volumes.iter().filter_map(|volume| volume.storage()).collect();
    let lists = storages.iter().map(|storage| format!("`pvesm list {storage} --vmid {}`", lost.vmid));
    (!paths.is_empty()).then(|| {
        format!(
            "empty, since {} leaves them out: {}; should an old volume be left, root finds it with {} and attaches it with `pct \
             set`",
            lost.backup,
            paths.join(", "),
            lists.collect::<Vec<_>>().join(", ")
        )
    })
}

fn attached(attach: &AttachVolume, config: &GuestConfig) -> Vec<String> {
    let mut wrong = Vec::new();
    if config.protection == Switch::Off {
        wrong.push("protection is off".to_owned());
    }
    let wanted_bytes = u64::from(attach.volume.size_gib.get()) << 30;
    let in_backup = InBackup::of(&attach.volume.kind);
    match config.mounts.get(&u16::from(attach.slot)) {
        Some(disk)
            if disk.volume().is_some() && disk.mount.as_deref() == Some(attach.volume.mount.as_str()) =>
        {
            if disk.size.is_none_or(|size| size < wanted_bytes) {
                wrong.push(format!("volume {} has {:?} bytes", attach.volume.name, disk.size));
            }
            if disk.in_backup != in_backup {
                wrong.push(format!("volume {} is on the wrong side of the backup", attach.volume.name));
            }
        }
        _ => wrong.push(format!("volume {} is not mounted", attach.volume.name)),
    }
    wrong
}

/// A guest that was made again from its backup: the plan handles sizes and volumes next, as for any guest.
fn again(config: &GuestConfig) -> Vec<String> {
    let mut wrong = Vec::new();
    if config.protection == Switch::Off {
        wrong.push("protection is off".to_owned());
    }
    if config.unprivileged == Switch::Off {
        wrong.push("it is privileged".to_owned());
    }
    if config.env.is_some() {
        wrong.push("a bootstrap token is left in its environment".to_owned());
    }
    wrong
}

fn differences(provision: &Provision, config: &GuestConfig) -> Vec<String> {
    let size = provision.guest.size;
    let mut wrong = Vec::new();
    let mut hold = |right: bool, what: String| {
        if !right {
            wrong.push(what);
        }
    };
    hold(
        config.memory_mib == u64::from(size.memory_mib.get()),
        format!("memory is {} MiB", config.memory_mib),
    );
    hold(config.swap_mib == u64::from(size.swap_mib.get()), format!("swap is {} MiB", config.swap_mib));
    hold(config.cores == Some(u64::from(size.cores.get())), format!("cores are {:?}", config.cores));
    let lacks = provision.guest.limits.and_then(|limits| config.cpu().missing(&limits));
    hold(lacks.is_none(), lacks.map(|limits| config.cpu().unlike(&limits)).unwrap_or_default());
    hold(config.protection == Switch::On, "protection is off".to_owned());
    hold(config.unprivileged == Switch::On, "it is privileged".to_owned());
    hold(config.env.is_none(), "a bootstrap token is left in its environment".to_owned());
    hold(config.lock.is_none(), format!("it is locked ({:?})", config.lock));
    hold(
        config.hostname.as_deref() == Some(provision.guest.name.as_str()),
        format!("its name is {:?}", config.hostname),
    );
    let root = config.rootfs.as_ref().and_then(|disk| disk.size);
    hold(
        root.is_some_and(|bytes| bytes >= u64::from(size.rootfs_gib.get()) << 30),
        format!("its root disk is {root:?}"),
    );
    for volume in &provision.guest.volumes {
        let mounted = config.mounts.values().any(|disk| disk.mount.as_deref() == Some(volume.mount.as_str()));
        hold(mounted, format!("volume {} is not mounted", volume.name));
    }
    wrong
}
