//! Steps of a swap: verify, demote, promote, start.
//!
//! Before each effect both are read again and compared with number, mark and volumes. At most one of the two is ever
//! plugged in. The copy gets its networks only while the guest is seen unplugged and stopped, and is started only then.
//! Deliberately absent: the way back (`step_swap_back`), and deleting anything.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;

use super::context::{Checked, Context, Started, StepOutput};
use super::trouble::StepError;
use super::{guest_identity, step_claim, step_power};
use crate::gate::adoption::{judge, judge_bridges};
use crate::gate::warrant::{SignedState, road};
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::limits;
use crate::model::mark::{self, Mark};
use crate::model::records::{CopyStage, Place, VolumeId};
use crate::operation::log::{Finding, PowerFound};
use crate::operation::swap_guest::Pair;
use crate::operation::swap_guest::identity::{GuestIdentities, GuestIdentity};
use crate::operation::{Operation, SwapGuest};
use crate::port::pve::config::Switch;
use crate::port::pve::destroy::{compare, compare_unmarked};
use crate::port::pve::read::Power;
use crate::port::pve::{ConfigChange, ConfigUpdate, GuestConfig, PveError};

pub(super) fn spec<'a>(context: &'a Context<'_>) -> Result<&'a SwapGuest, StepError> {
    match &context.progress.operation {
        Operation::SwapGuest(swap) => Ok(swap),
        other => Err(StepError::fault(format!("a {} swaps nothing", other.kind().as_str()))),
    }
}

/// The two of an exchange, each with the volumes that it has throughout.
pub(super) fn pair(context: &Context<'_>) -> Result<Pair, StepError> {
    let progress = context.progress;
    match &progress.operation {
        Operation::SwapGuest(swap) => Ok(swap.pair()),
        Operation::RebaseGuest(rebase) => {
            let vmid = progress.vmid().filter(|_| progress.restored_by().is_some());
            let pair = vmid.and_then(|vmid| rebase.pair(vmid, progress.volumes(), progress.id));
            pair.ok_or_else(|| StepError::fault("the new container was not made yet"))
        }
        other => Err(StepError::fault(format!("a {} exchanges nothing", other.kind().as_str()))),
    }
}

pub(super) fn identities<'a>(context: &'a Context<'_>) -> Result<&'a GuestIdentities, StepError> {
    context
        .progress
        .identities()
        .ok_or_else(|| StepError::fault("the journal does not say how the two were found"))
}

fn changed(vmid: Vmid, why: impl std::fmt::Display) -> StepError {
    let text = format!("guest {vmid} is not what was signed for: {why}; look again and sign anew");
    StepError::give_up(ErrorCode::TargetChanged, text)
}

/// Checks that all is as the operator saw it, and that the one can take the place of the other. Nothing was done yet.
pub(super) async fn prove(context: &Context<'_>) -> Result<Started, StepError> {
    let swap = spec(context)?;
    match gate(&Effect::SwapGuest, road(swap.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(StepError::fault(why)),
    }
    recorded(context, swap).await?;
    let (guest, copy) = (swap.guest(), swap.copy());
    let guests = unlocked(context.ports.pve.guest_config(guest.vmid).await?)?;
    compare(guest, &guests).map_err(|why| changed(guest.vmid, why))?;
    let copys = unlocked(context.ports.pve.guest_config(copy.vmid).await?)?;
    if mark::read(&copys.tags, &copys.description) != swap.copys_mark() {
        return Err(changed(copy.vmid, format!("it does not carry the mark of a copy of {}", guest.name)));
    }
    compare_unmarked(copy, &copys).map_err(|why| changed(copy.vmid, why))?;
    // By the rules for guests, not for archives: a former guest that is put back may have snapshots.
    judge(&copys.lines(), &copys.raw_lxc)
        .and_then(|()| judge_bridges(&copys.bridges(), &swap.bridge))
        .map_err(|why| StepError::give_up(ErrorCode::Forbidden, why.to_string()))?;
    if power(context, copy.vmid).await? != Power::Stopped {
        let text = format!("copy {} does not stand still: stop it first, and sign anew", copy.vmid);
        return Err(StepError::give_up(ErrorCode::Locked, text));
    }
    stays_behind(swap, &guests, &copys)?;
    let identities = fits(context, &swap.pair(), &guests, &copys)?;
    let runs = step_power::runs(context).await?;
    let found = if runs { PowerFound::Running } else { PowerFound::Stopped };
    let note = match swap.leaves().len() {
        0 => format!("copy {} for guest {}", copy.vmid, guest.vmid),
        n => format!("copy {} for guest {}; {n} volumes stay with what is laid aside", copy.vmid, guest.vmid),
    };
    Ok(Started::Learnt(StepOutput {
        facts: vec![Finding::Found(found), Finding::FoundIdentities(Box::new(identities))],
        note: Some(note),
    }))
}

/// Our records know both under these numbers, and the copy as a complete one.
async fn recorded(context: &Context<'_>, swap: &SwapGuest) -> Result<(), StepError> {
    let (guest, copy) = (swap.guest(), swap.copy());
    match context.ports.store.guest(guest.uid).await?.map(|record| record.place) {
        Some(Place::Made { vmid, .. }) if vmid == guest.vmid => {}
        _ => {
            return Err(changed(
                guest.vmid,
                format!("our records do not know {} under this number", guest.name),
            ));
        }
    }
    let copies = context.ports.store.copies().await?;
    let known = copies.iter().any(|record| {
        let whole = matches!(record.stage, CopyStage::Made { .. });
        whole && (record.vmid, record.guest, record.made_by) == (copy.vmid, guest.uid, swap.made_by)
    });
    if known {
        return Ok(());
    }
    Err(changed(copy.vmid, format!("our records know no whole copy of {} under this number", guest.name)))
}

/// Volumes whose data the copy does not have: exactly those that the operator named.
fn stays_behind(swap: &SwapGuest, guest: &GuestConfig, copy: &GuestConfig) -> Result<(), StepError> {
    let paths: BTreeSet<&str> = copy.mounts.values().filter_map(|disk| disk.mount.as_deref()).collect();
    let left =
        guest.mounts.values().filter(|disk| disk.mount.as_deref().is_none_or(|path| !paths.contains(path)));
    let left: BTreeSet<VolumeId> =
        left.filter_map(|disk| disk.volume()).map(|id| VolumeId::new(id.as_str())).collect();
    swap.judge_left(&left).map_err(|why| StepError::give_up(ErrorCode::Forbidden, why.to_string()))
}

/// The identity of both, once it is sure that each can get the other identity and return to its own.
pub(super) fn fits(
    context: &Context<'_>,
    pair: &Pair,
    guests: &GuestConfig,
    copys: &GuestConfig,
) -> Result<GuestIdentities, StepError> {
    let refused = |vmid: Vmid, why: String| {
        StepError::give_up(ErrorCode::Forbidden, format!("guest {vmid} cannot be swapped: {why}"))
    };
    let (guest, copy) = (pair.guest.vmid, pair.copy.vmid);
    let read = |vmid, config| guest_identity::of(config).map_err(|why| refused(vmid, why));
    let identities = GuestIdentities { guest: read(guest, guests)?, copy: read(copy, copys)? };
    let elsewhere = identities.guest.nets.values().find(|net| net.bridge() != Some(pair.bridge.as_str()));
    if let Some(net) = elsewhere {
        let text = format!(
            "its network {} is not on {}, the bridge that the agent was given",
            net.name(),
            pair.bridge
        );
        return Err(refused(guest, text));
    }
    let demoted =
        identities.demoted(pair, context.progress.id).map_err(|why| refused(guest, why.to_string()))?;
    let placed = identities.placed().map_err(|why| refused(copy, why.to_string()))?;
    for (vmid, config, wanted) in [(guest, guests, &demoted), (copy, copys, &placed)] {
        guest_identity::changes(config, wanted).map_err(|why| refused(vmid, why))?;
    }
    Ok(identities)
}

pub(super) fn unlocked(config: GuestConfig) -> Result<GuestConfig, StepError> {
    match config.lock.clone() {
        Some(kind) => Err(PveError::Locked { kind }.into()),
        None => Ok(config),
    }
}

pub(super) async fn power(context: &Context<'_>, vmid: Vmid) -> Result<Power, StepError> {
    Ok(context.ports.pve.guest_status(vmid).await?.power)
}

/// One of the two, when number and volumes show that it is the one that was signed for, and its mark is one of these.
pub(super) async fn one_of(
    context: &Context<'_>,
    seen: &SignedState,
    marks: [Mark; 2],
) -> Result<GuestConfig, StepError> {
    let config = context.ports.pve.guest_config(seen.vmid).await?;
    if !marks.contains(&mark::read(&config.tags, &config.description)) {
        return Err(changed(seen.vmid, "its mark was changed"));
    }
    let present: BTreeSet<VolumeId> = config.volumes().iter().map(|id| VolumeId::new(id.as_str())).collect();
    match seen.volumes.difference(&present).next() {
        Some(volume) => Err(changed(seen.vmid, format!("it has lost volume {volume}"))),
        None => Ok(config),
    }
}

/// The guest, whether it is laid aside yet or not.
pub(super) async fn former(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let pair = pair(context)?;
    let marks = [Mark::Of(pair.guest.uid), pair.former_mark(context.progress.id)];
    one_of(context, &pair.guest, marks).await
}

/// The copy, whether it is in its guest's place yet or not.
pub(super) async fn copy(context: &Context<'_>) -> Result<GuestConfig, StepError> {
    let pair = pair(context)?;
    one_of(context, &pair.copy, [pair.copys_mark, Mark::Of(pair.guest.uid)]).await
}

/// What must still be set. Protection is always part of it.
fn unset(config: &GuestConfig, wanted: &GuestIdentity, vmid: Vmid) -> Result<Vec<ConfigChange>, StepError> {
    let mut changes = guest_identity::changes(config, wanted).map_err(|why| changed(vmid, why))?;
    if config.protection == Switch::Off {
        changes.push(ConfigChange::Protect);
    }
    Ok(changes)
}

fn demoted(context: &Context<'_>) -> Result<GuestIdentity, StepError> {
    let demoted = identities(context)?.demoted(&pair(context)?, context.progress.id);
    demoted.map_err(|why| StepError::fault(why.to_string()))
}

fn placed(context: &Context<'_>) -> Result<GuestIdentity, StepError> {
    identities(context)?.placed().map_err(|why| StepError::fault(why.to_string()))
}

async fn is_demoted(context: &Context<'_>) -> Result<Vec<ConfigChange>, StepError> {
    unset(&former(context).await?, &demoted(context)?, pair(context)?.guest.vmid)
}

async fn is_placed(context: &Context<'_>) -> Result<Vec<ConfigChange>, StepError> {
    unset(&copy(context).await?, &placed(context)?, pair(context)?.copy.vmid)
}

pub(super) async fn original_is_demoted(context: &Context<'_>) -> Result<Checked, StepError> {
    Ok(is_demoted(context).await?.is_empty().then(StepOutput::nothing).into())
}

pub(super) async fn demote_original(context: &Context<'_>) -> Result<Started, StepError> {
    let guest = pair(context)?.guest.vmid;
    let config = unlocked(former(context).await?)?;
    let changes = unset(&config, &demoted(context)?, guest)?;
    stands_still(context, guest).await?;
    send(context, guest, config, changes).await
}

pub(super) async fn copy_is_promoted(context: &Context<'_>) -> Result<Checked, StepError> {
    let copy = pair(context)?.copy.vmid;
    Ok(is_placed(context).await?.is_empty().then(|| StepOutput::fact(Finding::Vmid(copy))).into())
}

pub(super) async fn promote_copy(context: &Context<'_>) -> Result<Started, StepError> {
    out_of_the_way(context).await?;
    let vmid = pair(context)?.copy.vmid;
    let config = unlocked(copy(context).await?)?;
    let changes = unset(&config, &placed(context)?, vmid)?;
    stands_still(context, vmid).await?;
    send(context, vmid, config, changes).await
}

pub(super) async fn copy_runs(context: &Context<'_>) -> Result<Checked, StepError> {
    let power = power(context, pair(context)?.copy.vmid).await?;
    Ok((power == Power::Running).then(StepOutput::nothing).into())
}

pub(super) async fn start_copy(context: &Context<'_>) -> Result<Started, StepError> {
    out_of_the_way(context).await?;
    let copy = pair(context)?.copy.vmid;
    if !is_placed(context).await?.is_empty() {
        return Err(changed(copy, "somebody changed what it is known by"));
    }
    if let Operation::RebaseGuest(_) = &context.progress.operation {
        step_claim::renew_when_old(context).await?;
    }
    Ok(Started::Task(context.ports.pve.start(copy).await?))
}

/// The guest is unplugged and stopped. It may have been put back, or started, by hand.
async fn out_of_the_way(context: &Context<'_>) -> Result<(), StepError> {
    let vmid = pair(context)?.guest.vmid;
    if !is_demoted(context).await?.is_empty() {
        return Err(changed(vmid, "it was laid aside, and somebody changed that"));
    }
    stands_still(context, vmid).await
}

pub(super) async fn original_is_down(context: &Context<'_>) -> Result<Checked, StepError> {
    let Operation::RebaseGuest(_) = &context.progress.operation else {
        return step_power::is_down(context).await;
    };
    let power = power(context, pair(context)?.guest.vmid).await?;
    Ok((power == Power::Stopped).then(StepOutput::nothing).into())
}

/// Requests a shutdown; in a further try it is stopped. A guest that is put on a newer image has another number by now than
/// the one that the operation works on.
pub(super) async fn stop_original(context: &Context<'_>) -> Result<Started, StepError> {
    let Operation::RebaseGuest(_) = &context.progress.operation else {
        return step_power::shut_down(context).await;
    };
    let guest = pair(context)?.guest;
    let config = former(context).await?;
    if mark::read(&config.tags, &config.description) != Mark::Of(guest.uid) {
        return Err(changed(guest.vmid, "its mark was changed"));
    }
    if context.progress.tries(context.place) > 1 {
        context.say("it did not go down when asked: stopping it");
        return Ok(Started::Task(context.ports.pve.stop(guest.vmid).await?));
    }
    Ok(Started::Task(context.ports.pve.shutdown(guest.vmid, limits::SHUTDOWN_S).await?))
}

pub(super) async fn stands_still(context: &Context<'_>, vmid: Vmid) -> Result<(), StepError> {
    match power(context, vmid).await? {
        Power::Stopped => Ok(()),
        Power::Running | Power::Unknown(_) => {
            let text = format!("guest {vmid} was started by somebody meanwhile: stop it, and sign anew");
            Err(StepError::give_up(ErrorCode::Locked, text))
        }
    }
}

pub(super) async fn send(
    context: &Context<'_>,
    vmid: Vmid,
    config: GuestConfig,
    changes: Vec<ConfigChange>,
) -> Result<Started, StepError> {
    let update =
        ConfigUpdate::new(config.digest, changes).map_err(|error| StepError::fault(error.to_string()))?;
    context.ports.pve.configure(vmid, &update).await?;
    Ok(Started::Done)
}

/// Both are read again, and only then our records change: the copy becomes the guest, and the former guest is kept as
/// well.
pub(super) async fn confirm(context: &Context<'_>) -> Result<Started, StepError> {
    let (guest, copy) = (pair(context)?.guest.vmid, pair(context)?.copy.vmid);
    if !is_demoted(context).await?.is_empty() {
        return Err(changed(guest, "it was laid aside, and somebody changed that"));
    }
    if !is_placed(context).await?.is_empty() {
        return Err(changed(copy, "somebody changed what it is known by"));
    }
    holds_all(context).await?;
    if power(context, copy).await? != Power::Running {
        let text =
            format!("guest {copy} was started in its guest's place and does not run: look at its console");
        return Err(StepError::give_up(ErrorCode::Unavailable, text));
    }
    let note = format!("it is guest {copy} now; what was guest {guest} is laid aside");
    Ok(Started::Learnt(StepOutput { facts: vec![Finding::TookPlace], note: Some(note) }))
}

/// Each volume that was signed for is mounted in the new container.
async fn holds_all(context: &Context<'_>) -> Result<(), StepError> {
    let Operation::RebaseGuest(rebase) = &context.progress.operation else { return Ok(()) };
    let (copy, config) = (pair(context)?.copy.vmid, copy(context).await?);
    let moved = context.progress.moved();
    for one in rebase.volumes() {
        let disk = config.mounts.get(&u16::from(one.slot));
        let held = disk.and_then(|disk| disk.volume()).map(|id| VolumeId::new(id.as_str()));
        if held.is_none() || held.as_ref() != moved.get(&one.volume) {
            return Err(changed(copy, format!("its volume at {} is another", one.path)));
        }
    }
    Ok(())
}
