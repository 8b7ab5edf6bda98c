//! Steps that reassign a volume to another guest.
//!
//! The worker removes the volume from the one configuration before it writes it into the other. If it dies in between,
//! the volume is in neither: that is left to a person, with the command that finds it again.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::Vmid;

use super::context::{Checked, Context, Started, StepOutput, UndoState};
use super::identity::look_at;
use super::trouble::StepError;
use crate::gate::warrant::{SignedState, road};
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::mark::{self, Mark};
use crate::model::records::{GuestRecord, Place, VolumeId};
use crate::operation::log::Finding;
use crate::operation::{HandOver, Operation};
use crate::port::pve::change::MountSlot;
use crate::port::pve::config::Switch;
use crate::port::pve::destroy::compare;
use crate::port::pve::read::Power;
use crate::port::pve::volume::{Disk, InBackup};
use crate::port::pve::{ConfigChange, ConfigUpdate, GuestConfig, KnownGuest, LiftProof, ReassignRequest};

/// Where the volume is.
enum Where {
    From(VolumeId),
    To(VolumeId),
    Neither,
}

/// Both guests, ours beyond doubt.
struct Pair<'a> {
    hand: &'a HandOver,
    from: GuestConfig,
    to: GuestConfig,
}

impl Pair<'_> {
    fn volume(&self) -> Where {
        let mounts = self.hand.mounts();
        let at = |config: &GuestConfig, slot: u8| {
            let disk = config.mounts.get(&u16::from(slot))?;
            let ours = disk.mount.as_deref() == Some(mounts.path.as_str());
            ours.then(|| disk.volume().map(|id| VolumeId::new(id.as_str()))).flatten()
        };
        match (at(&self.from, mounts.from), at(&self.to, mounts.to)) {
            (Some(volume), _) => Where::From(volume),
            (None, Some(volume)) => Where::To(volume),
            (None, None) => Where::Neither,
        }
    }
}

fn spec<'a>(context: &'a Context<'_>) -> Result<&'a HandOver, StepError> {
    match &context.progress.operation {
        Operation::ReassignVolume(hand) => Ok(hand),
        other => Err(StepError::fault(format!("a {} hands nothing over", other.kind().as_str()))),
    }
}

/// Reads both, and compares each with number, mark and volumes; the volume may be with either of them.
async fn pair<'a>(context: &'a Context<'_>) -> Result<Pair<'a>, StepError> {
    let hand = spec(context)?;
    let mut moving = context.progress.volumes();
    moving.insert(hand.volume().clone());
    let from = own(context, hand.from(), &moving).await?;
    let to = own(context, hand.to(), &moving).await?;
    Ok(Pair { hand, from, to })
}

async fn own(
    context: &Context<'_>,
    guest: &SignedState,
    moving: &BTreeSet<VolumeId>,
) -> Result<GuestConfig, StepError> {
    let volumes = made(&record(context, guest).await?, guest.vmid)?;
    let config = context.ports.pve.guest_config(guest.vmid).await?;
    if mark::read(&config.tags, &config.description) != Mark::Of(guest.uid) {
        let text = format!("guest {} does not carry the mark of {}", guest.vmid, guest.uid);
        return Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(guest.vmid)));
    }
    let present: BTreeSet<VolumeId> = config.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect();
    match volumes.difference(&present).find(|volume| !moving.contains(*volume)) {
        None => Ok(config),
        Some(missing) => {
            let text =
                format!("guest {} has lost volume {missing} that we made: it is not touched", guest.vmid);
            Err(StepError::park(ErrorCode::ForeignGuest, text, look_at(guest.vmid)))
        }
    }
}

async fn record(context: &Context<'_>, guest: &SignedState) -> Result<GuestRecord, StepError> {
    let record = context.ports.store.guest(guest.uid).await?;
    record.ok_or_else(|| changed(guest.vmid, "our records do not know it"))
}

fn made(record: &GuestRecord, vmid: Vmid) -> Result<BTreeSet<VolumeId>, StepError> {
    match &record.place {
        Place::Made { vmid: number, volumes, .. } if *number == vmid => Ok(volumes.clone()),
        _ => Err(changed(vmid, "our records do not know it under this number")),
    }
}

fn changed(vmid: Vmid, why: &str) -> StepError {
    let text = format!(
        "guest {vmid} is not what was signed for: {why}; nothing is moved, a new signature is needed"
    );
    StepError::park(ErrorCode::TargetChanged, text, look_at(vmid))
}

/// Checks that all is as the operator saw it, and that it may be done. Nothing was done yet.
pub(super) async fn prove(context: &Context<'_>) -> Result<Started, StepError> {
    let hand = spec(context)?;
    match gate(&Effect::ReassignVolume, road(hand.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(StepError::fault(why)),
    }
    let (giver, taker) = (record(context, hand.from()).await?, record(context, hand.to()).await?);
    if giver.uid == taker.uid || giver.customer != taker.customer {
        let text = format!("{} and {} are not two guests of one customer", giver.name, taker.name);
        return Err(StepError::give_up(ErrorCode::Forbidden, text));
    }
    let pair = pair(context).await?;
    for (seen, config) in [(hand.from(), &pair.from), (hand.to(), &pair.to)] {
        compare(seen, config).map_err(|why| changed(seen.vmid, &why.to_string()))?;
    }
    fits(&pair)?;
    still(context, hand).await?;
    let text = format!("{} of {} for {}", hand.volume(), giver.name, taker.name);
    Ok(Started::Learnt(StepOutput::note(text)))
}

fn fits(pair: &Pair<'_>) -> Result<(), StepError> {
    let (hand, mounts) = (pair.hand, pair.hand.mounts());
    match pair.volume() {
        Where::From(volume) if volume == *hand.volume() => {}
        _ => return Err(changed(hand.from().vmid, "the volume is not mounted as was signed for")),
    }
    let disk = pair.from.mounts.get(&u16::from(mounts.from));
    if disk.is_some_and(|disk| disk.in_backup == InBackup::Yes) {
        let text =
            format!("{} is part of its guest's backups: only bulk volumes are handed over", hand.volume());
        return Err(StepError::give_up(ErrorCode::Forbidden, text));
    }
    let path = |disk: &Disk| disk.mount.as_deref() == Some(mounts.path.as_str());
    if pair.to.mounts.contains_key(&u16::from(mounts.to)) || pair.to.mounts.values().any(path) {
        let text = format!("guest {} has something mounted there already", hand.to().vmid);
        return Err(StepError::give_up(ErrorCode::NameTaken, text));
    }
    Ok(())
}

/// Both are stopped. They stay so as far as we control it: no other operation may touch either.
async fn still(context: &Context<'_>, hand: &HandOver) -> Result<(), StepError> {
    for vmid in [hand.from().vmid, hand.to().vmid] {
        if context.ports.pve.guest_status(vmid).await?.power != Power::Stopped {
            let text = format!("guest {vmid} does not stand still: stop both guests first");
            return Err(StepError::give_up(ErrorCode::Locked, text));
        }
    }
    Ok(())
}

pub(super) async fn other_is_off(context: &Context<'_>) -> Result<Checked, StepError> {
    let off = pair(context).await?.to.protection == Switch::Off;
    Ok(off.then(StepOutput::nothing).into())
}

pub(super) async fn other_is_on(context: &Context<'_>) -> Result<Checked, StepError> {
    let on = pair(context).await?.to.protection == Switch::On;
    Ok(on.then(StepOutput::nothing).into())
}

pub(super) async fn is_reassigned(context: &Context<'_>) -> Result<Checked, StepError> {
    handed(context, &pair(context).await?).await
}

async fn handed(context: &Context<'_>, pair: &Pair<'_>) -> Result<Checked, StepError> {
    match pair.volume() {
        Where::From(_) => Ok(Checked::Not),
        Where::Neither => Err(nowhere(pair.hand)),
        Where::To(volume) => {
            let vmid = pair.hand.to().vmid;
            let mut facts = vec![Finding::Volume(volume.clone())];
            if context.ports.pve.guest_status(vmid).await?.power != Power::Stopped {
                let text =
                    format!("guest {vmid} was started meanwhile: it sees the volume from its next start");
                facts.push(Finding::Condition(ErrorBody::new(ErrorCode::Unavailable, text)));
            }
            Ok(Checked::Happened(StepOutput { facts, note: Some(format!("it is {volume} now")) }))
        }
    }
}

fn nowhere(hand: &HandOver) -> StepError {
    let (from, to) = (hand.from().vmid, hand.to().vmid);
    let text = format!(
        "the worker died between guest {from} and guest {to}: the volume that was {} lies on its storage and is in neither; \
         it is found as an unused volume of one of them",
        hand.volume()
    );
    StepError::park(ErrorCode::Unavailable, text, format!("pct rescan --vmid {to}; pct rescan --vmid {from}"))
}

pub(super) async fn lift_other(context: &Context<'_>) -> Result<Started, StepError> {
    let pair = pair(context).await?;
    lift(context, pair.hand.to(), &pair.to).await
}

pub(super) async fn protect_other(context: &Context<'_>) -> Result<Started, StepError> {
    let pair = pair(context).await?;
    protect(context, pair.hand.to().vmid, pair.to).await
}

pub(super) async fn reassign(context: &Context<'_>) -> Result<Started, StepError> {
    let pair = pair(context).await?;
    let hand = pair.hand;
    still(context, hand).await?;
    let request = ReassignRequest {
        from: hand.from().vmid,
        slot: MountSlot(hand.mounts().from),
        digest: pair.from.digest,
        to: hand.to().vmid,
        to_slot: MountSlot(hand.mounts().to),
        to_digest: pair.to.digest,
    };
    Ok(Started::Task(context.ports.pve.reassign(&request).await?))
}

async fn lift(
    context: &Context<'_>,
    guest: &SignedState,
    config: &GuestConfig,
) -> Result<Started, StepError> {
    let mut volumes = made(&record(context, guest).await?, guest.vmid)?;
    // It may be with either of them now, so it proves neither.
    volumes.remove(spec(context)?.volume());
    let named = volumes.iter().map(|volume| volume.as_str().parse()).collect::<Result<_, _>>();
    let known = KnownGuest {
        vmid: guest.vmid,
        tags: mark::tags(guest.uid).into(),
        first_line: mark::first_line(guest.uid),
        volumes: named.map_err(|_| StepError::fault("our records name a volume that is none"))?,
    };
    let proof = LiftProof::of_known(&known, config)
        .map_err(|why| StepError::park(ErrorCode::ForeignGuest, why.to_string(), look_at(guest.vmid)))?;
    context.ports.pve.unprotect(&proof, &config.digest).await?;
    Ok(Started::Done)
}

async fn protect(context: &Context<'_>, vmid: Vmid, config: GuestConfig) -> Result<Started, StepError> {
    let update = ConfigUpdate::new(config.digest, vec![ConfigChange::Protect])
        .map_err(|error| StepError::fault(error.to_string()))?;
    context.ports.pve.configure(vmid, &update).await?;
    Ok(Started::Done)
}

/// Protection is on when the guest's configuration shows it, not because the call that set it succeeded.
fn seen_on(protection: Switch) -> Result<(), StepError> {
    match protection {
        Switch::On => Ok(()),
        Switch::Off => {
            let text = "protection was put back by Proxmox's word, but the guest does not show it";
            Err(StepError::again(ErrorCode::Unavailable, text))
        }
    }
}

/// Both are read again. If they are not as they should be, the volume is handed back.
pub(super) async fn confirm(context: &Context<'_>) -> Result<Started, StepError> {
    let pair = pair(context).await?;
    let Where::To(volume) = pair.volume() else { return Err(nowhere(pair.hand)) };
    let disk = pair.to.mounts.get(&u16::from(pair.hand.mounts().to));
    let bulk = disk.is_some_and(|disk| disk.in_backup == InBackup::No);
    let protected = [&pair.from, &pair.to].iter().all(|config| config.protection == Switch::On);
    if bulk && protected {
        return Ok(Started::Learnt(StepOutput::note(format!("{volume} is where it should be"))));
    }
    let text = format!(
        "{volume} was handed over, but the guests are not as they should be: protected {protected}, out of the backup {bulk}"
    );
    Err(StepError::give_up(ErrorCode::Unavailable, text))
}

/// The undo of lifting: protection is on again.
pub(super) async fn protect_again(context: &Context<'_>) -> Result<Option<String>, StepError> {
    let before = pair(context).await?;
    if before.to.protection == Switch::Off {
        protect(context, before.hand.to().vmid, before.to).await?;
        seen_on(pair(context).await?.to.protection)?;
    }
    Ok(Some("protection is on".to_owned()))
}

/// The undo of handing over. The actual state shows its progress: the giver's protection off, the volume back,
/// protection on.
pub(super) async fn hand_back(context: &Context<'_>) -> Result<UndoState, StepError> {
    let found = pair(context).await?;
    let hand = found.hand;
    match found.volume() {
        Where::Neither => Err(nowhere(hand)),
        Where::From(volume) => {
            if found.from.protection == Switch::Off {
                protect(context, hand.from().vmid, found.from).await?;
                seen_on(pair(context).await?.from.protection)?;
            }
            Ok(UndoState::Back(volume))
        }
        Where::To(_) => {
            still(context, hand).await?;
            if found.from.protection == Switch::On {
                lift(context, hand.from(), &found.from).await?;
            }
            let found = pair(context).await?;
            let request = ReassignRequest {
                from: hand.to().vmid,
                slot: MountSlot(hand.mounts().to),
                digest: found.to.digest,
                to: hand.from().vmid,
                to_slot: MountSlot(hand.mounts().from),
                to_digest: found.from.digest,
            };
            Ok(UndoState::Task(context.ports.pve.reassign(&request).await?))
        }
    }
}
