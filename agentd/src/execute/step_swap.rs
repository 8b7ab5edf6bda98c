//! A copy in the place of its guest: both proved, the guest laid aside, the copy plugged in under its name, started and seen.
//!
//! Before each effect both are read anew and held to number, mark and volumes. At most one of the two is ever plugged in: the
//! copy gets its networks only while the guest is seen unplugged and standing still, and is started only then. Deliberately
//! absent: the way back (`step_swap_back`), and deleting anything.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;

use super::attempt::{Acted, Context, Learnt, Probed};
use super::trouble::Trouble;
use super::{face, step_power};
use crate::gate::stranger::{judge, judge_bridges};
use crate::gate::warrant::{Seen, road};
use crate::gate::{Approved, Effect, Verdict, gate};
use crate::model::mark::{self, Mark};
use crate::model::record::{BesideStage, Place, VolumeId};
use crate::operation::log::{Fact, PowerFound};
use crate::operation::step::Step;
use crate::operation::swap_guest::face::{Face, Faces};
use crate::operation::{Operation, SwapGuest};
use crate::port::pve::config::Switch;
use crate::port::pve::destroy::{compare, compare_unmarked};
use crate::port::pve::read::Power;
use crate::port::pve::{ConfigChange, ConfigUpdate, GuestConfig, PveError};

pub(super) fn spec<'a>(context: &'a Context<'_>) -> Result<&'a SwapGuest, Trouble> {
    match &context.progress.operation {
        Operation::SwapGuest(swap) => Ok(swap),
        other => Err(Trouble::fault(format!("a {} swaps nothing", other.kind().as_str()))),
    }
}

pub(super) fn faces<'a>(context: &'a Context<'_>) -> Result<&'a Faces, Trouble> {
    context.progress.faces().ok_or_else(|| Trouble::fault("the journal does not say how the two were found"))
}

fn changed(vmid: Vmid, why: impl std::fmt::Display) -> Trouble {
    let text = format!("guest {vmid} is not what was signed for: {why}; look again and sign anew");
    Trouble::give_up(ErrorCode::TargetChanged, text)
}

/// Is it all as the operator saw it, and can the one take the place of the other? Nothing was done yet.
pub(super) async fn prove(context: &Context<'_>) -> Result<Acted, Trouble> {
    let swap = spec(context)?;
    match gate(&Effect::SwapGuest, road(swap.warrant()), &Approved::default()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => return Err(Trouble::fault(why)),
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
    // By the law for guests, not for archives: what was laid aside and is put back may have snapshots.
    judge(&copys.lines(), &copys.raw_lxc)
        .and_then(|()| judge_bridges(&copys.bridges(), &swap.bridge))
        .map_err(|why| Trouble::give_up(ErrorCode::Forbidden, why.to_string()))?;
    if power(context, copy.vmid).await? != Power::Stopped {
        let text = format!("copy {} does not stand still: stop it first, and sign anew", copy.vmid);
        return Err(Trouble::give_up(ErrorCode::Locked, text));
    }
    stays_behind(swap, &guests, &copys)?;
    let faces = fits(context, swap, &guests, &copys)?;
    let runs = step_power::runs(context).await?;
    let found = if runs { PowerFound::Running } else { PowerFound::Standing };
    let note = match swap.leaves().len() {
        0 => format!("copy {} for guest {}", copy.vmid, guest.vmid),
        n => format!("copy {} for guest {}; {n} volumes stay with what is laid aside", copy.vmid, guest.vmid),
    };
    Ok(Acted::Learnt(Learnt {
        facts: vec![Fact::Found(found), Fact::FoundFaces(Box::new(faces))],
        note: Some(note),
    }))
}

/// Our records know both under these numbers, and the copy as one that is whole.
async fn recorded(context: &Context<'_>, swap: &SwapGuest) -> Result<(), Trouble> {
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
    let besides = context.ports.store.besides().await?;
    let known = besides.iter().any(|record| {
        let whole = matches!(record.stage, BesideStage::Made { .. });
        whole && (record.vmid, record.guest, record.made_by) == (copy.vmid, guest.uid, swap.made_by)
    });
    if known {
        return Ok(());
    }
    Err(changed(copy.vmid, format!("our records know no whole copy of {} under this number", guest.name)))
}

/// Volumes whose data the copy does not have: exactly those that the operator named.
fn stays_behind(swap: &SwapGuest, guest: &GuestConfig, copy: &GuestConfig) -> Result<(), Trouble> {
    let paths: BTreeSet<&str> = copy.mounts.values().filter_map(|disk| disk.mount.as_deref()).collect();
    let left =
        guest.mounts.values().filter(|disk| disk.mount.as_deref().is_none_or(|path| !paths.contains(path)));
    let left: BTreeSet<VolumeId> =
        left.filter_map(|disk| disk.volume()).map(|id| VolumeId::new(id.as_str())).collect();
    swap.judge_left(&left).map_err(|why| Trouble::give_up(ErrorCode::Forbidden, why.to_string()))
}

/// How both look, once it is sure that each can be made to look as it must, there and back.
fn fits(
    context: &Context<'_>,
    swap: &SwapGuest,
    guests: &GuestConfig,
    copys: &GuestConfig,
) -> Result<Faces, Trouble> {
    let refused = |vmid: Vmid, why: String| {
        Trouble::give_up(ErrorCode::Forbidden, format!("guest {vmid} cannot be swapped: {why}"))
    };
    let (guest, copy) = (swap.guest().vmid, swap.copy().vmid);
    let read = |vmid, config| face::of(config).map_err(|why| refused(vmid, why));
    let faces = Faces { guest: read(guest, guests)?, copy: read(copy, copys)? };
    let elsewhere = faces.guest.nets.values().find(|net| net.bridge() != Some(swap.bridge.as_str()));
    if let Some(net) = elsewhere {
        let text = format!(
            "its network {} is not on {}, the bridge that the agent was given",
            net.name(),
            swap.bridge
        );
        return Err(refused(guest, text));
    }
    let aside = faces.aside(swap, context.progress.id).map_err(|why| refused(guest, why.to_string()))?;
    let placed = faces.placed().map_err(|why| refused(copy, why.to_string()))?;
    for (vmid, config, wanted) in [(guest, guests, &aside), (copy, copys, &placed)] {
        face::changes(config, wanted).map_err(|why| refused(vmid, why))?;
    }
    Ok(faces)
}

fn unlocked(config: GuestConfig) -> Result<GuestConfig, Trouble> {
    match config.lock.clone() {
        Some(kind) => Err(PveError::Locked { kind }.into()),
        None => Ok(config),
    }
}

pub(super) async fn power(context: &Context<'_>, vmid: Vmid) -> Result<Power, Trouble> {
    Ok(context.ports.pve.guest_status(vmid).await?.power)
}

/// One of the two, when number and volumes say that it is the one that was signed for, and its mark is one of these.
pub(super) async fn one_of(
    context: &Context<'_>,
    seen: &Seen,
    marks: [Mark; 2],
) -> Result<GuestConfig, Trouble> {
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
pub(super) async fn former(context: &Context<'_>) -> Result<GuestConfig, Trouble> {
    let swap = spec(context)?;
    let marks = [Mark::Of(swap.guest().uid), swap.former_mark(context.progress.id)];
    one_of(context, swap.guest(), marks).await
}

/// The copy, whether it is in its guest's place yet or not.
pub(super) async fn copy(context: &Context<'_>) -> Result<GuestConfig, Trouble> {
    let swap = spec(context)?;
    one_of(context, swap.copy(), [swap.copys_mark(), Mark::Of(swap.guest().uid)]).await
}

/// What is still to be set. Whatever it looks like, it is protected.
fn unset(config: &GuestConfig, wanted: &Face, vmid: Vmid) -> Result<Vec<ConfigChange>, Trouble> {
    let mut changes = face::changes(config, wanted).map_err(|why| changed(vmid, why))?;
    if config.protection == Switch::Off {
        changes.push(ConfigChange::Protect);
    }
    Ok(changes)
}

fn aside(context: &Context<'_>) -> Result<Face, Trouble> {
    let aside = faces(context)?.aside(spec(context)?, context.progress.id);
    aside.map_err(|why| Trouble::fault(why.to_string()))
}

fn placed(context: &Context<'_>) -> Result<Face, Trouble> {
    faces(context)?.placed().map_err(|why| Trouble::fault(why.to_string()))
}

async fn is_aside(context: &Context<'_>) -> Result<Vec<ConfigChange>, Trouble> {
    unset(&former(context).await?, &aside(context)?, spec(context)?.guest().vmid)
}

async fn is_placed(context: &Context<'_>) -> Result<Vec<ConfigChange>, Trouble> {
    unset(&copy(context).await?, &placed(context)?, spec(context)?.copy().vmid)
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Probed, Trouble> {
    let copy = spec(context)?.copy().vmid;
    let happened = match context.step {
        Step::LayAside => is_aside(context).await?.is_empty().then(Learnt::nothing),
        Step::TakePlace => is_placed(context).await?.is_empty().then(|| Learnt::fact(Fact::Vmid(copy))),
        _ => (power(context, copy).await? == Power::Running).then(Learnt::nothing),
    };
    Ok(happened.map_or(Probed::Not, Probed::Happened))
}

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    let swap = spec(context)?;
    match context.step {
        Step::LayAside => {
            let config = unlocked(former(context).await?)?;
            let changes = unset(&config, &aside(context)?, swap.guest().vmid)?;
            stands_still(context, swap.guest().vmid).await?;
            send(context, swap.guest().vmid, config, changes).await
        }
        Step::TakePlace => {
            out_of_the_way(context).await?;
            let config = unlocked(copy(context).await?)?;
            let changes = unset(&config, &placed(context)?, swap.copy().vmid)?;
            stands_still(context, swap.copy().vmid).await?;
            send(context, swap.copy().vmid, config, changes).await
        }
        _ => {
            out_of_the_way(context).await?;
            if !is_placed(context).await?.is_empty() {
                return Err(changed(swap.copy().vmid, "somebody changed what it is known by"));
            }
            Ok(Acted::Task(context.ports.pve.start(swap.copy().vmid).await?))
        }
    }
}

/// The guest is unplugged and stands still. It may have been put back, or started, by hand.
async fn out_of_the_way(context: &Context<'_>) -> Result<(), Trouble> {
    let vmid = spec(context)?.guest().vmid;
    if !is_aside(context).await?.is_empty() {
        return Err(changed(vmid, "it was laid aside, and somebody changed that"));
    }
    stands_still(context, vmid).await
}

async fn stands_still(context: &Context<'_>, vmid: Vmid) -> Result<(), Trouble> {
    match power(context, vmid).await? {
        Power::Stopped => Ok(()),
        Power::Running | Power::Unknown(_) => {
            let text = format!("guest {vmid} was started by somebody meanwhile: stop it, and sign anew");
            Err(Trouble::give_up(ErrorCode::Locked, text))
        }
    }
}

pub(super) async fn send(
    context: &Context<'_>,
    vmid: Vmid,
    config: GuestConfig,
    changes: Vec<ConfigChange>,
) -> Result<Acted, Trouble> {
    let update =
        ConfigUpdate::new(config.digest, changes).map_err(|error| Trouble::fault(error.to_string()))?;
    context.ports.pve.configure(vmid, &update).await?;
    Ok(Acted::Done)
}

/// Both are read again, and only then our records change: the copy is the guest, and what was the guest stands beside it.
pub(super) async fn confirm(context: &Context<'_>) -> Result<Acted, Trouble> {
    let (guest, copy) = (spec(context)?.guest().vmid, spec(context)?.copy().vmid);
    if !is_aside(context).await?.is_empty() {
        return Err(changed(guest, "it was laid aside, and somebody changed that"));
    }
    if !is_placed(context).await?.is_empty() {
        return Err(changed(copy, "somebody changed what it is known by"));
    }
    if power(context, copy).await? != Power::Running {
        let text =
            format!("guest {copy} was started in its guest's place and does not run: look at its console");
        return Err(Trouble::give_up(ErrorCode::Unavailable, text));
    }
    let note = format!("it is guest {copy} now; what was guest {guest} is laid aside");
    Ok(Acted::Learnt(Learnt { facts: vec![Fact::TookPlace], note: Some(note) }))
}
