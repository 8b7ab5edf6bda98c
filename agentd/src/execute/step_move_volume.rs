//! The step that hands a volume to the new container.
//!
//! Both are stopped, and neither is plugged in. The volume is found by its mount in either of them, never by its name, which
//! the move changes. The worker removes it from the one configuration before it writes it into the other; if it dies in
//! between, the volume is in neither, and that is left to a person. Deliberately absent: protection of the new container,
//! which comes with its guest's identity, in the step after the last volume.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;

use super::context::{Checked, Context, Started, StepOutput, UndoState};
use super::identity::look_at;
use super::step_rebase::spec;
use super::step_swap::{copy, former, pair, send, stands_still, unlocked};
use super::trouble::StepError;
use crate::model::mark;
use crate::model::records::VolumeId;
use crate::operation::log::Finding;
use crate::operation::rebase_guest::DataVolume;
use crate::operation::step::Step;
use crate::operation::swap_guest::Pair;
use crate::port::pve::change::MountSlot;
use crate::port::pve::config::Switch;
use crate::port::pve::{ConfigChange, GuestConfig, KnownGuest, LiftProof, ReassignRequest};

/// Where the volume is.
enum Where {
    Guest(VolumeId),
    Successor(VolumeId),
    Neither,
}

/// Both containers, and the volume that this step is about.
struct Both<'a> {
    volume: &'a DataVolume,
    pair: Pair,
    guest: GuestConfig,
    next: GuestConfig,
}

impl Both<'_> {
    fn found(&self) -> Where {
        let at = |config: &GuestConfig| {
            let disk = config.mounts.get(&u16::from(self.volume.slot))?;
            let ours = disk.mount.as_deref() == Some(self.volume.path.as_str());
            ours.then(|| disk.volume().map(|id| VolumeId::new(id.as_str()))).flatten()
        };
        match (at(&self.guest), at(&self.next)) {
            (Some(volume), _) => Where::Guest(volume),
            (None, Some(volume)) => Where::Successor(volume),
            (None, None) => Where::Neither,
        }
    }

    fn nowhere(&self) -> StepError {
        let (from, to) = (self.pair.guest.vmid, self.pair.copy.vmid);
        let text = format!(
            "the worker died between guest {from} and guest {to}: the volume that was {} lies on its storage and is in neither; it \
             is found as an unused volume of one of them",
            self.volume.volume
        );
        let remedy = format!("pct rescan --vmid {to}; pct rescan --vmid {from}; pct set {to} --protection 1");
        StepError::park(ErrorCode::Unavailable, text, remedy)
    }

    async fn stand_still(&self, context: &Context<'_>) -> Result<(), StepError> {
        stands_still(context, self.pair.guest.vmid).await?;
        stands_still(context, self.pair.copy.vmid).await
    }
}

async fn both<'a>(context: &'a Context<'_>) -> Result<Both<'a>, StepError> {
    let Step::MoveVolume(index) = context.step else {
        return Err(StepError::fault(format!("{} moves no volume", context.step.name())));
    };
    let volume = spec(context)?.volume(index);
    let volume = volume.ok_or_else(|| StepError::fault("this step is about no volume"))?;
    let pair = pair(context)?;
    Ok(Both { volume, pair, guest: former(context).await?, next: copy(context).await? })
}

/// What the task of this step is about, as Proxmox names it; none for a step that moves no volume.
pub(super) fn task(context: &Context<'_>) -> Result<Option<String>, StepError> {
    subject(context, |guest, next| (guest, next))
}

/// The same of its undo.
pub(super) fn task_back(context: &Context<'_>) -> Result<Option<String>, StepError> {
    subject(context, |guest, next| (next, guest))
}

fn subject(context: &Context<'_>, way: fn(Vmid, Vmid) -> (Vmid, Vmid)) -> Result<Option<String>, StepError> {
    let Step::MoveVolume(index) = context.step else { return Ok(None) };
    let Some(volume) = spec(context)?.volume(index) else { return Ok(None) };
    let pair = pair(context)?;
    let ((from, to), slot) = (way(pair.guest.vmid, pair.copy.vmid), volume.slot);
    Ok(Some(format!("{from}-mp{slot}>{to}-mp{slot}")))
}

pub(super) async fn is_moved(context: &Context<'_>) -> Result<Checked, StepError> {
    let both = both(context).await?;
    match both.found() {
        Where::Guest(_) => Ok(Checked::Not),
        Where::Neither => Err(both.nowhere()),
        Where::Successor(volume) => {
            let note = Some(format!("{} is {volume} now", both.volume.path));
            let was = both.volume.volume.clone();
            Ok(Checked::Happened(StepOutput { facts: vec![Finding::Moved { was, volume }], note }))
        }
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let both = both(context).await?;
    match both.found() {
        Where::Guest(volume) if volume == both.volume.volume => {}
        _ => return Err(changed(both.pair.guest.vmid, "its volume is not mounted as was signed for")),
    }
    both.stand_still(context).await?;
    // With protection on, the worker would take the volume out of the one and then fail at the other.
    if both.next.protection == Switch::On {
        return Err(changed(both.pair.copy.vmid, "somebody protected it before it had its volumes"));
    }
    let (guest, next) = (unlocked(both.guest)?, unlocked(both.next)?);
    let slot = MountSlot(both.volume.slot);
    let request = ReassignRequest {
        from: both.pair.guest.vmid,
        slot,
        digest: guest.digest,
        to: both.pair.copy.vmid,
        to_slot: slot,
        to_digest: next.digest,
    };
    Ok(Started::Task(context.ports.pve.reassign(&request).await?))
}

fn changed(vmid: Vmid, why: &str) -> StepError {
    let text = format!(
        "guest {vmid} is not what was signed for: {why}; nothing more is moved, and what moved goes back"
    );
    StepError::give_up(ErrorCode::TargetChanged, text)
}

/// The undo. The actual state shows its progress: the guest's protection off, the volume back, protection on.
pub(super) async fn move_back(context: &Context<'_>) -> Result<UndoState, StepError> {
    let found = both(context).await?;
    let was = found.volume.volume.clone();
    match found.found() {
        Where::Neither => Err(found.nowhere()),
        Where::Guest(volume) => {
            if found.guest.protection == Switch::Off {
                send(context, found.pair.guest.vmid, found.guest, vec![ConfigChange::Protect]).await?;
                if former(context).await?.protection == Switch::Off {
                    let text = "protection was put back by Proxmox's word, but the guest does not show it";
                    return Err(StepError::again(ErrorCode::Unavailable, text));
                }
            }
            Ok(UndoState::MovedBack { was, volume })
        }
        Where::Successor(_) => {
            found.stand_still(context).await?;
            if found.guest.protection == Switch::On {
                lift(context, &found.pair, &found.guest).await?;
            }
            let found = both(context).await?;
            let slot = MountSlot(found.volume.slot);
            let request = ReassignRequest {
                from: found.pair.copy.vmid,
                slot,
                digest: found.next.digest,
                to: found.pair.guest.vmid,
                to_slot: slot,
                to_digest: found.guest.digest,
            };
            Ok(UndoState::Task(context.ports.pve.reassign(&request).await?))
        }
    }
}

/// Protection off the guest, which is laid aside at this moment: a protected one takes no volume.
async fn lift(context: &Context<'_>, pair: &Pair, config: &GuestConfig) -> Result<(), StepError> {
    let named = pair.guest.volumes.iter().map(|volume| volume.as_str().parse()).collect::<Result<_, _>>();
    let known = KnownGuest {
        vmid: pair.guest.vmid,
        tags: mark::copy_tags(context.progress.id).into(),
        first_line: mark::copy_line(pair.guest.uid, context.progress.id),
        volumes: named.map_err(|_| StepError::fault("our records name a volume that is none"))?,
    };
    let proof = LiftProof::of_known(&known, config)
        .map_err(|why| StepError::park(ErrorCode::ForeignGuest, why.to_string(), look_at(known.vmid)))?;
    Ok(context.ports.pve.unprotect(&proof, &config.digest).await?)
}
