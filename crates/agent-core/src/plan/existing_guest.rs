//! The plan for a guest that exists.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, RunState};
use holdfast_protocol::id::Vmid;
use holdfast_protocol::job::act::{Act, args};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::{GuestStatus, Running};
use holdfast_protocol::size::DiskGib;

use super::growth::Refused;
use super::made::Made;
use super::schedule::conditions::times;
use super::{
    Action, Context, Inputs, Judged, address, controller, detached, expiry, fields, filter, fixed, growth,
    maintenance, missing_guest, network, passes, placement, silence,
};
use crate::gate::pending_approval::{PendingApproval, Remedy, upon};
use crate::gate::{Effect, Provenance, Verdict, gate};
use crate::model::growth::Growth;
use crate::model::limits;
use crate::model::mark::Mark;
use crate::model::net::NetPlace;
use crate::model::observed::{Detail, GuestFacts, ObservedGuest, Protection, Sight, Template, VmidFact};
use crate::model::records::Access;
use crate::operation::{
    AttachVolume, DiskRef, Grow, KeepProtection, Operation, Reconfigure, Start, Stop, Target,
};

pub(super) fn judge(context: &Context<'_>, made: &Made<'_>) -> Judged {
    let vmid = made.vmid;
    let Some(seen) = context.inputs.observed.guests.get(&vmid) else {
        return missing_guest::judge(context, made, unseen(context, vmid));
    };
    let facts = match &seen.detail {
        Detail::Known(facts) => facts,
        Detail::Unknown(why) => {
            let text =
                format!("the configuration of guest {vmid} cannot be read ({why}): nothing is concluded");
            return Judged::new(GuestStatus::Missing).with(ErrorCode::Unavailable, text);
        }
    };
    if let Some(why) = foreign(made, facts) {
        let text =
            format!("guest {vmid} has our number, but {why}: it is not touched; an operator must look");
        let judged = Judged::new(GuestStatus::Foreign).with(ErrorCode::ForeignGuest, text);
        return missing_guest::judge(context, made, judged);
    }
    let Some(guest) = made.guest else {
        let held = decommission(context, made, facts).into_iter().collect();
        return Judged { held, ..Judged::new(GuestStatus::Unmanaged) };
    };
    let mut judged = Judged::new(GuestStatus::Managed);
    if made.record.access == Access::Frozen {
        judged = judged.with(
            ErrorCode::Frozen,
            "two held its claim or its token, a copy of it perhaps: its access is frozen; `agentd audit show` tells what was \
             seen; end the copy, then `agentd thaw GUEST --reason WHY`",
        );
    }
    if let Some(lock) = &seen.lock {
        return judged.with(ErrorCode::Locked, locked(vmid, lock, seen.run));
    }
    let moves = network::moves(context.inputs, guest, facts);
    let as_seen = AsSeen { facts, moves: moves.as_ref(), disks: SeenDisks::of(guest, facts) };
    judged = differences(judged, context.inputs, (guest, made), as_seen);
    judged = controller::judge(context, judged, made.record);
    judged = silence::judge(context, judged, made.record, seen);
    if let Some((code, text)) = fields::ahead(context.inputs, guest.uid, seen, facts) {
        judged = judged.with(code, text);
    }
    judged.held.extend(shrinking(context, guest, as_seen));
    judged.held.extend(network::held(context, guest, made, (facts, as_seen.moves)));
    let (next, refused) = next_operation(context, guest, made, seen, as_seen);
    judged = growth::reported(judged, (guest, Some(facts)), refused);
    match next.or_else(|| expiry::due(context, made).map(|(operation, why)| (operation, why, None))) {
        Some(next) => act(context, judged, made, next),
        None => judged,
    }
}

/// A guest's configuration, with what follows from it.
#[derive(Clone, Copy)]
struct AsSeen<'a> {
    facts: &'a GuestFacts,
    /// The place of the network that it should have, where it is elsewhere.
    moves: Option<&'a NetPlace>,
    disks: SeenDisks,
}

/// Whether its disks are those of the document, one after the other, as large as it says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeenDisks {
    AsNamed,
    /// Perhaps not: they are compared one by one.
    Unlike,
}

impl SeenDisks {
    fn of(guest: &DesiredGuest, facts: &GuestFacts) -> Self {
        let mut pairs = guest.volumes.iter().zip(facts.mounts.values());
        let are = guest.volumes.len() == facts.mounts.len()
            && facts.rootfs_bytes == Some(bytes(guest.size.rootfs_gib))
            && pairs.all(|(volume, mount)| {
                mount.bytes == Some(bytes(volume.size_gib)) && mount.path == volume.mount.as_str()
            });
        if are { Self::AsNamed } else { Self::Unlike }
    }
}

/// The report text of a lock. A backup that died leaves it with the guest as it held it: frozen while its snapshot was
/// made or its last changes were copied, stopped for the whole copy in mode `stop`. Without the lock the agent starts a
/// guest that was stopped.
fn locked(vmid: Vmid, lock: &str, run: Running) -> String {
    let wait = format!("guest {vmid} is locked ({lock}): wait for the task that holds it");
    let unlock = format!("`pct unlock {vmid}` on the node");
    match (lock, run) {
        ("backup" | "snapshot", Running::Running) => format!(
            "{wait}; if none runs, it died and the guest may stand FROZEN, although Proxmox says that it runs: {unlock}, and \
             `lxc-unfreeze -n {vmid}`"
        ),
        ("backup", Running::Stopped) => format!(
            "{wait}; if none runs, a backup died that may have stopped the guest for its copy: {unlock}, and it is started again \
             if it is to run"
        ),
        _ => format!("{wait}; if none runs, {unlock}"),
    }
}

/// Not in the list. Even with a proved right to see it, nothing follows from it here: a lost guest is judged elsewhere,
/// on more than one observation.
fn unseen(context: &Context<'_>, vmid: Vmid) -> Judged {
    let judged = Judged::new(GuestStatus::Missing);
    match &context.inputs.observed.sight {
        Sight::Proved if context.inputs.observed.vmids.get(&vmid) == Some(&VmidFact::Taken) => judged.with(
            ErrorCode::VmidForeign,
            format!(
                "guest {vmid} is no longer in our pool, and its number is a guest's that we may not see: it is not touched; if it is \
                 ours, put it back into the pool, otherwise an operator must decide"
            ),
        ),
        Sight::Proved => {
            judged.with(ErrorCode::NotFound, format!("guest {vmid} is no longer in our pool: look for it on the node"))
        }
        Sight::Unproved(why) => judged.with(
            ErrorCode::Unavailable,
            format!("guest {vmid} is not listed, but something may be hidden from us ({why}): nothing is concluded"),
        ),
    }
}

/// Why it is not ours any more, if so: number, mark and volumes must all agree.
pub(super) fn foreign(made: &Made<'_>, facts: &GuestFacts) -> Option<String> {
    match facts.mark {
        Mark::Of(uid) if uid == made.record.uid => {}
        Mark::Of(other) => return Some(format!("it carries the mark of guest {other}")),
        Mark::None => return Some("it carries no mark of ours".to_owned()),
        Mark::Copy { of, .. } => return Some(format!("it is marked as a copy beside guest {of}")),
        Mark::Broken => return Some("its mark was changed".to_owned()),
    }
    // Mostly they are the same, which is cheaper to see than that none is missing.
    if *made.volumes == facts.volumes {
        return None;
    }
    let gone = made.volumes.difference(&facts.volumes).next();
    if gone.is_some() && facts.template == Template::Yes {
        let text = "somebody turned it into a template: it cannot be started, and Proxmox gave its volumes other names";
        return Some(text.to_owned());
    }
    gone.map(|volume| {
        format!("its volume {volume} is in its configuration no more, as if it was detached, moved or exchanged by hand")
    })
}

/// What differs and is not changed by this agent: reported, not acted on.
fn differences(
    mut judged: Judged,
    inputs: &Inputs<'_>,
    (guest, made): (&DesiredGuest, &Made<'_>),
    AsSeen { facts, disks, .. }: AsSeen<'_>,
) -> Judged {
    let network = network::unlike(inputs, guest, made.vmid, facts);
    let filter = filter::unlike(guest, made.vmid, facts);
    for (code, text) in network.into_iter().chain(filter).chain(address::reported(inputs, made, facts)) {
        judged = judged.with(code, text);
    }
    for text in fixed::reported(guest, made, facts) {
        judged = judged.with(ErrorCode::Unsupported, text);
    }
    for text in placement::elsewhere(guest, facts) {
        judged = judged.with(ErrorCode::Forbidden, text);
    }
    if disks == SeenDisks::AsNamed {
        return judged;
    }
    if let Some(text) = detached::text(guest, made, facts) {
        return judged.with(ErrorCode::NeedsSignature, text);
    }
    for volume in detached::missing(guest, facts) {
        if let Err((code, why)) = placement::volume(inputs, volume) {
            judged = judged.with(code, format!("volume {} is not attached: {why}", volume.name));
        }
    }
    judged
}

/// The first volume that is missing, has a place and may be made, in the first mount that is free.
fn attach(
    context: &Context<'_>,
    guest: &DesiredGuest,
    facts: &GuestFacts,
    target: impl FnOnce() -> Target,
    refused: &mut Vec<Refused>,
) -> Option<Next> {
    let slot = (0..=u8::MAX).find(|slot| !facts.mounts.contains_key(&u16::from(*slot)))?;
    let placed = |volume| Some((volume, placement::volume(context.inputs, volume).ok()?));
    for (volume, storage) in detached::missing(guest, facts).filter_map(placed) {
        let change = growth::of_volume(guest, volume, storage.as_str());
        match growth::judge(context, (guest, Some(facts)), change) {
            Ok(growth) => {
                let reason = format!("volume {} is not attached", volume.name);
                let attach = AttachVolume { target: target(), volume: volume.clone(), slot, storage };
                return Some((Operation::AttachVolume(Box::new(attach)), reason, growth));
            }
            Err(why) => refused.push(why),
        }
    }
    None
}

/// What an operator would sign to let a guest go that the document no longer names.
fn decommission(context: &Context<'_>, made: &Made<'_>, facts: &GuestFacts) -> Option<PendingApproval> {
    let Verdict::NeedsSignature(reason) =
        gate(&Effect::DestroyGuest, Provenance::Document, &context.approved)
    else {
        return None;
    };
    let name = made.record.name.clone();
    let volumes = facts.volumes.iter().map(ToString::to_string).collect();
    Some(PendingApproval {
        effect: format!("destroy guest {name} ({}), which the document no longer names", made.vmid),
        reason,
        guest: made.record.uid,
        remedy: Remedy::Sign(upon(
            Act::DestroyGuest(args::DestroyGuest {}),
            (made.record.uid, made.vmid),
            (name, Some(made.record.customer.clone())),
            volumes,
        )),
    })
}

const fn bytes(size: DiskGib) -> u64 {
    (size.get() as u64) << 30
}

/// Every disk of the document that is there, with its size as it is.
fn disks<'a>(
    guest: &'a DesiredGuest,
    facts: &'a GuestFacts,
) -> impl Iterator<Item = (DiskRef, &'a str, DiskGib, u64)> {
    let root = facts.rootfs_bytes.map(|seen| (DiskRef::Rootfs, "the root disk", guest.size.rootfs_gib, seen));
    let mounts = facts.mounts.iter().filter_map(|(slot, mount)| {
        let volume = guest.volumes.iter().find(|volume| volume.mount.as_str() == mount.path)?;
        let slot = u8::try_from(*slot).ok()?;
        Some((DiskRef::Mount(slot), volume.name.as_str(), volume.size_gib, mount.bytes?))
    });
    root.into_iter().chain(mounts)
}

fn shrinking(context: &Context<'_>, guest: &DesiredGuest, as_seen: AsSeen<'_>) -> Vec<PendingApproval> {
    let AsSeen { facts, disks: seen, .. } = as_seen;
    let mut held = Vec::new();
    if seen == SeenDisks::AsNamed {
        return held;
    }
    for (_, name, wanted, _) in disks(guest, facts).filter(|(_, _, wanted, seen)| bytes(*wanted) < *seen) {
        if let Verdict::NeedsSignature(reason) =
            gate(&Effect::ShrinkDisk, Provenance::Document, &context.approved)
        {
            held.push(PendingApproval {
                effect: format!("shrink {name} of guest {} to {wanted}", guest.name),
                reason,
                guest: guest.uid,
                remedy: Remedy::ByHand(
                    "no disk is made smaller in place: put its size back in the document, or restore beside the guest",
                ),
            });
        }
    }
    held
}

/// An operation, why, and what the guest grows by.
type Next = (Operation, String, Option<Box<Growth>>);

/// The one thing to do next: sizes and volumes before power, so that a guest starts as it should be. What may not grow is said
/// and holds up nothing else.
fn next_operation(
    context: &Context<'_>,
    guest: &DesiredGuest,
    made: &Made<'_>,
    seen: &ObservedGuest,
    as_seen: AsSeen<'_>,
) -> (Option<Next>, Vec<Refused>) {
    let (facts, mut refused) = (as_seen.facts, Vec::new());
    let next = sized(context, guest, made, as_seen, &mut refused)
        .or_else(|| powered(context.inputs, guest, made, (seen, facts)).map(|(what, why)| (what, why, None)));
    (next, refused)
}

fn sized(
    context: &Context<'_>,
    guest: &DesiredGuest,
    made: &Made<'_>,
    AsSeen { facts, moves, disks: seen_disks }: AsSeen<'_>,
    refused: &mut Vec<Refused>,
) -> Option<Next> {
    let (inputs, both) = (context.inputs, (guest, Some(facts)));
    let target = || Target { uid: guest.uid, name: guest.name.clone(), vmid: made.vmid };
    if let Some((change, reason)) = reconfigure(inputs, guest, (facts, moves), Grows::May, target) {
        match growth::judge(context, both, growth::of_sizes(guest, facts, &change)) {
            Ok(growth) => return Some((Operation::Reconfigure(change), reason, growth)),
            Err(why) => refused.push(why),
        }
        if let Some((change, reason)) = reconfigure(inputs, guest, (facts, moves), Grows::Held, target) {
            return Some((Operation::Reconfigure(change), reason, None));
        }
    }
    if seen_disks == SeenDisks::AsNamed {
        return None;
    }
    for (disk, name, size, seen) in disks(guest, facts).filter(|(_, _, wanted, seen)| bytes(*wanted) > *seen)
    {
        match growth::judge(context, both, growth::of_disk(guest, facts, (disk, name), (seen, size))) {
            Ok(growth) => {
                let reason = format!("{name} has {} GiB, wanted are {size}", seen >> 30);
                let grow = Grow { target: target(), disk, size };
                return Some((Operation::Grow(grow), reason, growth));
            }
            Err(why) => refused.push(why),
        }
    }
    // No new volume in the place of a detached one.
    let is_whole = detached::own(guest, made, facts).is_empty();
    if is_whole { attach(context, guest, facts, target, refused) } else { None }
}

fn powered(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    made: &Made<'_>,
    (seen, facts): (&ObservedGuest, &GuestFacts),
) -> Option<(Operation, String)> {
    let target = || Target { uid: guest.uid, name: guest.name.clone(), vmid: made.vmid };
    // Nor a start without it.
    let is_whole = || detached::own(guest, made, facts).is_empty();
    match (guest.run, seen.run) {
        (RunState::Running, Running::Stopped) if is_whole() && facts.template == Template::No => {
            Some((Operation::Start(Start(target())), "it should run and stands still".to_owned()))
        }
        (RunState::Stopped, Running::Running) => {
            Some((Operation::Stop(Stop(target())), "it should stand still and runs".to_owned()))
        }
        // What was stopped is started again by the rule above.
        (RunState::Running, Running::Running) => {
            let why = maintenance::restart(inputs, guest, made.record, (seen, facts))?;
            Some((Operation::Stop(Stop(target())), why))
        }
        (RunState::Running, Running::Stopped | Running::Unknown)
        | (RunState::Stopped, Running::Stopped | Running::Unknown) => None,
    }
}

/// Whether cores, memory and swap may become more.
#[derive(Clone, Copy)]
enum Grows {
    May,
    Held,
}

impl Grows {
    fn takes(self, seen: u64, wanted: u32) -> bool {
        match self {
            Self::May => true,
            Self::Held => u64::from(wanted) <= seen,
        }
    }
}

fn reconfigure(
    inputs: &Inputs<'_>,
    guest: &DesiredGuest,
    (facts, moves): (&GuestFacts, Option<&NetPlace>),
    grows: Grows,
    target: impl FnOnce() -> Target,
) -> Option<(Reconfigure, String)> {
    let size = guest.size;
    let mut why = Vec::new();
    let more_cores = facts.cores.is_none_or(|seen| grows.takes(seen, size.cores.get()));
    let cores = (more_cores && facts.cores != Some(u64::from(size.cores.get()))).then(|| {
        let seen = facts.cores.map_or_else(|| "all".to_owned(), |cores| cores.to_string());
        why.push(format!("{seen} cores, wanted {}", size.cores.get()));
        size.cores
    });
    let more_memory = grows.takes(facts.memory_mib, size.memory_mib.get());
    let memory = (more_memory && facts.memory_mib != u64::from(size.memory_mib.get())).then(|| {
        why.push(format!("{} MiB memory, wanted {}", facts.memory_mib, size.memory_mib.get()));
        size.memory_mib
    });
    let more_swap = grows.takes(facts.swap_mib, size.swap_mib.get());
    let swap = (more_swap && facts.swap_mib != u64::from(size.swap_mib.get())).then(|| {
        why.push(format!("{} MiB swap, wanted {}", facts.swap_mib, size.swap_mib.get()));
        size.swap_mib
    });
    let limits = guest.limits.and_then(|limits| facts.cpu.missing(&limits));
    why.extend(limits.map(|limits| facts.cpu.unlike(&limits)));
    let name = (facts.name.as_deref() != Some(guest.name.as_str())).then(|| {
        why.push(format!("host name {}, wanted {}", facts.name.as_deref().unwrap_or("none"), guest.name));
        guest.name.clone()
    });
    let network = network::place(inputs, guest, (facts, moves)).map(|(place, text)| {
        why.push(text);
        place
    });
    let filter = filter::goal(guest, facts, network.as_ref()).map(|(goal, text)| {
        why.push(text);
        goal
    });
    let resolver = network::resolver(guest, facts).map(|(wanted, text)| {
        why.push(text);
        wanted
    });
    let protection = match facts.protection {
        Protection::On => KeepProtection::AsItIs,
        Protection::Off => {
            why.push("its protection was taken off".to_owned());
            KeepProtection::PutBack
        }
    };
    (!why.is_empty()).then(|| {
        let target = target();
        let change =
            Reconfigure { target, cores, memory, swap, limits, name, network, filter, resolver, protection };
        (change, why.join("; "))
    })
}

fn act(context: &Context<'_>, judged: Judged, made: &Made<'_>, (operation, reason, growth): Next) -> Judged {
    match passes(context, &operation.effects()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => {
            return judged.with(ErrorCode::Forbidden, why);
        }
    }
    let (uid, kind) = (made.record.uid, operation.kind());
    let tried = context.attempts.get(&(uid, kind)).map_or(0, |tried| tried.failed);
    if kind == OperationKind::Start && tried >= limits::START_TRIES {
        let text = format!(
            "it was started {tried} times without a healthy hour and does not stay up: look at its console and log \
             (`pct start {0} --debug`), mend it, then `agentd parked retry {1}`",
            made.vmid, made.record.name
        );
        return Judged { status: GuestStatus::Broken, ..judged }.with(ErrorCode::Broken, text);
    }
    if let Some((tried, until)) = context.waits(uid, kind) {
        let text = format!(
            "{} was tried {}, next at {until:.0}: {}",
            kind.as_str(),
            times(tried.failed),
            tried.message
        );
        return judged.with(ErrorCode::Unavailable, text);
    }
    if let (Some(growth), Some(guest)) = (&growth, made.guest) {
        growth::take(context, guest, growth);
    }
    Judged { action: Some(Box::new(Action { operation, reason, growth })), ..judged }
}
