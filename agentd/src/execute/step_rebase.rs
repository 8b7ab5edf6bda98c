//! Steps of a rebase: check the image, make the container, verify both.
//!
//! The guest is read before anything is made of the image, and again before it is stopped. The new container is made
//! unplugged, with the mark of a copy, and without protection: until it is in its guest's place it holds nothing but its
//! image, and a protected container takes no volume. Deliberately absent: handing volumes over (`step_move_volume`), and the
//! exchange of the two (`step_swap`).

use std::collections::BTreeMap;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::secret::Secret;

use super::archive_check::{self, archive};
use super::context::{Context, PENDING, Started, StepOutput};
use super::identity::{own_copy, vmid};
use super::step_restore_copy;
use super::step_room::{Restored, lacks};
use super::step_swap::{self, power, unlocked};
use super::trouble::StepError;
use crate::gate::warrant::road;
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::disks::Content;
use crate::model::limits;
use crate::model::mark;
use crate::model::records::Place;
use crate::operation::log::{Finding, PowerFound};
use crate::operation::{Operation, RebaseGuest};
use crate::port::pve::change::Description;
use crate::port::pve::destroy::compare;
use crate::port::pve::read::Power;
use crate::port::pve::restore::BootstrapEnv;
use crate::port::pve::restore_copy::Caps;
use crate::port::pve::volume::Backing;
use crate::port::pve::{GuestConfig, RestoreCopyRequest};

pub(super) fn spec<'a>(context: &'a Context<'_>) -> Result<&'a RebaseGuest, StepError> {
    match &context.progress.operation {
        Operation::RebaseGuest(rebase) => Ok(rebase),
        other => Err(StepError::fault(format!("a {} rebases nothing", other.kind().as_str()))),
    }
}

fn changed(vmid: Vmid, why: impl std::fmt::Display) -> StepError {
    let text = format!("guest {vmid} is not what was signed for: {why}; look again and sign anew");
    StepError::give_up(ErrorCode::TargetChanged, text)
}

/// The guest as it was signed for, and able to give all its volumes away.
async fn guest(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let rebase = spec(context)?;
    match gate(&Effect::RebaseGuest, road(rebase.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(StepError::fault(why)),
    }
    let signed = rebase.guest();
    match context.ports.store.guest(signed.uid).await?.map(|record| record.place) {
        Some(Place::Made { vmid, .. }) if vmid == signed.vmid => {}
        _ => {
            return Err(changed(
                signed.vmid,
                format!("our records do not know {} under this number", signed.name),
            ));
        }
    }
    let config = unlocked(context.ports.pve.guest_config(signed.vmid).await?)?;
    compare(signed, &config).map_err(|why| changed(signed.vmid, why))?;
    gives_all(rebase, &config).map_err(|why| changed(signed.vmid, why))?;
    if let Some(snapshot) = context.ports.pve.snapshots(signed.vmid).await?.first() {
        let text = format!(
            "guest {} has the snapshot {}, and Proxmox hands over no volume that a snapshot holds: remove its snapshots, and sign \
             anew",
            signed.vmid, snapshot.name
        );
        return Err(StepError::give_up(ErrorCode::Locked, text));
    }
    Ok(config)
}

/// Each volume but the root disk is mounted where it was when this was signed, and nothing else is.
fn gives_all(rebase: &RebaseGuest, config: &GuestConfig) -> Result<(), String> {
    if let Some(volume) = config.unused.iter().next() {
        return Err(format!("its volume {volume} is mounted nowhere"));
    }
    if config.mounts.len() != rebase.volumes().len() {
        return Err("its mounts are others".to_owned());
    }
    for one in rebase.volumes() {
        let disk = config.mounts.get(&u16::from(one.slot));
        let there = disk.is_some_and(|disk| {
            let behind = matches!(&disk.backing, Backing::Volume(id) if id.as_str() == one.volume.as_str());
            behind && disk.mount.as_deref() == Some(one.path.as_str())
        });
        if !there {
            return Err(format!("{} is not mounted at {}", one.volume, one.path));
        }
    }
    let root = config.rootfs.as_ref().and_then(|disk| disk.volume());
    let stays = rebase.stays();
    match root {
        Some(root) if stays.len() == 1 && stays.iter().all(|volume| volume.as_str() == root.as_str()) => {
            Ok(())
        }
        _ => Err("its root disk is another".to_owned()),
    }
}

/// The guest, the image, and room for it, before anything is made.
pub(super) async fn judged(context: &Context<'_>) -> Result<Started, StepError> {
    let rebase = spec(context)?;
    guest(context).await?;
    let (successor, image) = (&rebase.successor, rebase.image());
    let digest = archive_check::image(context, image, successor.sizes.rootfs).await?;
    let restored = Restored {
        guest: rebase.guest().uid,
        archive: &image.archive,
        disks: u64::from(successor.sizes.rootfs.get()) << 30,
        content: Content::Held,
        most_percent: limits::SNAPSHOT_FILL_MAX_PERCENT,
    };
    if let Some(why) = lacks(context, &successor.storage, restored).await? {
        let text = format!(
            "the new root disk would lie on {}, which {why}: nothing is made until there is room",
            successor.storage
        );
        return Err(StepError::give_up(ErrorCode::StorageFull, text));
    }
    let version = rebase.version().map_err(|wrong| StepError::fault(wrong.to_string()))?;
    Ok(Started::Learnt(StepOutput::note(format!("golden {version}, sha256 {digest}…"))))
}

/// The container, unplugged, with as many networks as the guest has, and as large.
pub(super) async fn restore(context: &Context<'_>) -> Result<Started, StepError> {
    let rebase = spec(context)?;
    let config = guest(context).await?;
    let fault = |text: String| StepError::fault(text);
    let (signed, successor, sizes) = (rebase.guest(), &rebase.successor, rebase.successor.sizes);
    let version = rebase.version().map_err(|wrong| fault(wrong.to_string()))?;
    let nets = config.nets.keys().map(|slot| u8::try_from(*slot));
    let nets = nets.collect::<Result<_, _>>().map_err(|error| fault(error.to_string()))?;
    let text = mark::next_description(signed.uid, context.progress.id, version.as_str());
    let number = vmid(context)?;
    if number == signed.vmid {
        return Err(fault("no number was chosen for the new container".to_owned()));
    }
    let request = RestoreCopyRequest {
        vmid: number,
        archive: archive(&rebase.image().archive)?,
        storage: successor.storage.clone(),
        elsewhere: BTreeMap::new(),
        pool: successor.pool.clone(),
        nets,
        bridge: successor.bridge.clone(),
        plugged: None,
        env: BootstrapEnv::new(Secret::new(PENDING.to_owned())).map_err(|error| fault(error.to_string()))?,
        hostname: rebase.hostname().ok_or_else(|| fault(format!("{} has no name for it", signed.name)))?,
        description: Description::try_from(text).map_err(|error| fault(error.to_string()))?,
        rootfs: sizes.rootfs,
        mounts: BTreeMap::new(),
        caps: Some(Caps { memory: sizes.memory, swap: Some(sizes.swap), cores: sizes.cores }),
        resolver: successor.resolver.clone(),
    };
    Ok(Started::Task(context.ports.pve.restore_copy(&request).await?))
}

/// Both, before the guest is stopped. Nothing of it was changed yet.
pub(super) async fn prove(context: &Context<'_>) -> Result<Started, StepError> {
    let pair = step_swap::pair(context)?;
    let (guests, nexts) = (guest(context).await?, unlocked(own_copy(context).await?)?);
    if mark::read(&nexts.tags, &nexts.description) != pair.copys_mark {
        return Err(changed(pair.copy.vmid, "it does not carry the mark that this operation set"));
    }
    step_restore_copy::fresh(context, &nexts)?;
    if !nexts.mounts.is_empty() || !nexts.unused.is_empty() {
        return Err(changed(pair.copy.vmid, "somebody gave it a volume"));
    }
    if power(context, pair.copy.vmid).await? != Power::Stopped {
        return Err(changed(pair.copy.vmid, "somebody started it"));
    }
    let identities = step_swap::fits(context, &pair, &guests, &nexts)?;
    let found = match power(context, pair.guest.vmid).await? {
        Power::Running => PowerFound::Running,
        Power::Stopped => PowerFound::Stopped,
        Power::Unknown(text) => {
            let text = format!("Proxmox does not know whether guest {} runs ({text})", pair.guest.vmid);
            return Err(StepError::again(ErrorCode::Unavailable, text));
        }
    };
    let mut facts = vec![Finding::Found(found), Finding::FoundIdentities(Box::new(identities))];
    let token = context.ports.store.present_token(pair.guest.uid).await?;
    facts.extend(token.map(|generation| Finding::FoundToken { generation }));
    let note = format!("guest {} for guest {}", pair.copy.vmid, pair.guest.vmid);
    Ok(Started::Learnt(StepOutput { facts, note: Some(note) }))
}
