//! The check of a guest signed for a newer image.
//!
//! What comes in: the guest, proved to be the one that was signed for, and the images that root named. What goes out: the
//! operation, or why there is none. Deliberately absent: changing anything; the operation proves all of it again. What is on
//! the root disk is known from the guest agent alone, and only here: what it reports must be what was signed to stay behind.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::args;
use holdfast_protocol::root_disk::Knowledge;
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};
use holdfast_trust::Accepted;

use super::proved_guest::{Stays, refused};
use super::{Context, bulk, golden, placement, vmid};
use crate::gate::warrant::Warrant;
use crate::model::observed::GuestFacts;
use crate::model::records::{BackupWhy, VolumeId};
use crate::operation::rebase_guest::{DataVolume, GuestSizes, Successor};
use crate::operation::{Backup, Image, Operation, RebaseGuest, Target};

pub(super) fn build(
    context: &Context<'_>,
    job: &Accepted,
    args: &args::RebaseGuest,
    (guest, facts): (Target, &GuestFacts),
) -> Result<Operation, Stays> {
    let Parts { image, successor, volumes, backup } = parts(context, args, (guest, facts))?;
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
    let rebase =
        RebaseGuest::new(warrant, image, successor, volumes, backup).map_err(|error| fault(&error))?;
    Ok(Operation::RebaseGuest(Box::new(rebase)))
}

/// What the operation is made of, besides its warrant.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) image: Image,
    pub(super) successor: Successor,
    pub(super) volumes: Vec<DataVolume>,
    pub(super) backup: Option<Backup>,
}

pub(super) fn parts(
    context: &Context<'_>,
    args: &args::RebaseGuest,
    (guest, facts): (Target, &GuestFacts),
) -> Result<Parts, Stays> {
    let (inputs, uid) = (context.inputs, guest.uid);
    let image = image(context, args, &guest)?;
    stays_behind(context, args, &guest)?;
    without_snapshots(context, &guest)?;
    let volumes = volumes(facts, &guest)?;
    let sizes = sizes(context, args, facts)?;
    let (storage, _) = placement::of_copy(inputs, uid, facts)
        .map_err(|(code, why)| refused(code, format!("its new root disk has no place: {why}")))?;
    let number = vmid::any(context, uid, [guest.vmid]).map_err(|(code, why)| refused(code, why))?;
    let backup = inputs.policy.backup_storage.clone().map(|storage| Backup {
        target: guest.clone(),
        leaves_out: bulk::leaves_out(inputs, uid, &storage),
        storage,
        why: BackupWhy::First,
        due: None,
        key: None,
    });
    let successor = Successor {
        number,
        pool: inputs.policy.pool.clone(),
        storage,
        bridge: inputs.policy.bridge.clone(),
        sizes,
        resolver: facts.resolver.clone(),
    };
    Ok(Parts { image, successor, volumes, backup })
}

/// The image, when it is newer than the guest's, on this host, approved, and the one that was signed.
fn image(context: &Context<'_>, args: &args::RebaseGuest, guest: &Target) -> Result<Image, Stays> {
    let record = context.inputs.records.guests.iter().find(|record| record.uid == guest.uid);
    let record = record.ok_or(Stays::Waits)?;
    if args.version.age_key() <= record.golden.age_key() {
        let text = format!(
            "{} was made from golden {}, and {} is not newer: nothing is changed",
            guest.name, record.golden, args.version
        );
        return Err(refused(ErrorCode::Range, text));
    }
    let (golden, sha256) =
        golden::archive(context, &args.version).map_err(|(code, text)| refused(code, text))?;
    if sha256.as_str() != args.sha256.as_str() {
        let text = format!(
            "golden {} has sha256 {} on this box, not the one that was signed: look again and sign anew",
            args.version,
            sha256.as_str()
        );
        return Err(refused(ErrorCode::TargetChanged, text));
    }
    if !context.approved.has(&args.version, &sha256) {
        let text = format!(
            "golden {}, sha256 {}, is not approved on this box: sign for the image first",
            args.version,
            sha256.as_str()
        );
        return Err(refused(ErrorCode::GoldenUnapproved, text));
    }
    Ok(Image { archive: golden.archive.clone(), sha256, file: golden.file.clone() })
}

/// What the guest reports of its root disk now was known when this was signed.
fn stays_behind(context: &Context<'_>, args: &args::RebaseGuest, guest: &Target) -> Result<(), Stays> {
    let record = context.inputs.records.guests.iter().find(|record| record.uid == guest.uid);
    let data =
        record.and_then(|record| record.hello.as_ref()).and_then(|hello| hello.reported.root_disk.as_ref());
    args.leaves.covers(Knowledge::of(data, context.inputs.now)).map_err(|uncovered| {
        let text = format!(
            "{}: {uncovered}, and the signature does not say that it stays behind: nothing is changed. Move it to a volume, or \
             sign anew with --leave-behind",
            guest.name
        );
        refused(ErrorCode::RootDiskData, text)
    })
}

/// Proxmox hands no volume over that a snapshot holds.
fn without_snapshots(context: &Context<'_>, guest: &Target) -> Result<(), Stays> {
    let own = context.inputs.records.snapshots.iter().find(|snapshot| snapshot.guest == guest.uid);
    own.map_or(Ok(()), |snapshot| {
        let text = format!(
            "{} has the snapshot {}, and Proxmox hands over no volume that a snapshot holds: let its snapshots expire or remove \
             them, and sign anew",
            guest.name, snapshot.name
        );
        Err(refused(ErrorCode::Locked, text))
    })
}

/// Every volume but the root disk, each with its mount.
fn volumes(facts: &GuestFacts, guest: &Target) -> Result<Vec<DataVolume>, Stays> {
    let odd = |what: String| {
        let text =
            format!("{} cannot be put on a newer image: {what}; put that right and sign anew", guest.name);
        refused(ErrorCode::Unsupported, text)
    };
    if let Some(volume) = facts.detached.iter().next() {
        return Err(odd(format!("its volume {volume} is mounted nowhere, and only mounted volumes move")));
    }
    let mut volumes = Vec::new();
    for (slot, mount) in &facts.mounts {
        let Some(volume) = mount.volume.clone() else {
            return Err(odd(format!("what is mounted at {} is no volume", mount.path)));
        };
        let (Ok(slot), Ok(path)) = (u8::try_from(*slot), mount.path.parse()) else {
            return Err(odd(format!("its volume {volume} is mounted at {:?}", mount.path)));
        };
        volumes.push(DataVolume { slot, path, volume });
    }
    let moves: BTreeSet<&VolumeId> = volumes.iter().map(|one| &one.volume).collect();
    match facts.volumes.iter().filter(|volume| !moves.contains(volume)).count() {
        1 => Ok(volumes),
        n => {
            Err(odd(format!("{n} of its volumes are mounted nowhere, and one, its root disk, was expected")))
        }
    }
}

/// As large as the guest is.
fn sizes(context: &Context<'_>, args: &args::RebaseGuest, facts: &GuestFacts) -> Result<GuestSizes, Stays> {
    let bytes = facts.rootfs_bytes.ok_or(Stays::Waits)?;
    if let Some(image) =
        context.inputs.observed.golden_roots.get(&args.version).filter(|image| **image > bytes)
    {
        let text = format!(
            "its root disk has {bytes} bytes, and that of golden {} has {image}: let the root disk grow to {} GiB first, then sign \
             anew",
            args.version,
            image.div_ceil(1 << 30)
        );
        return Err(refused(ErrorCode::Range, text));
    }
    let whole = |value: u64| u32::try_from(value).ok();
    let sizes = || {
        Some(GuestSizes {
            memory: MemoryMib::try_from(whole(facts.memory_mib)?).ok()?,
            swap: SwapMib::try_from(whole(facts.swap_mib)?).ok()?,
            cores: match facts.cores {
                Some(cores) => Some(Cores::try_from(whole(cores)?).ok()?),
                None => None,
            },
            rootfs: DiskGib::try_from(whole(bytes.div_ceil(1 << 30))?).ok()?,
        })
    };
    sizes().ok_or_else(|| {
        refused(ErrorCode::Range, "its memory, cores or root disk have a size that no guest of ours may have")
    })
}
