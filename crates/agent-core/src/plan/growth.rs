//! Growth of guests: allowed, held for a signature, or without room.
//!
//! What comes in: a part of a guest that the document asks to be larger, or a guest that is to be made. Room is checked
//! first: growth without room is not offered for a signature. Then what is left of the day, then what operators signed
//! for. What is refused holds up nothing else of its guest. Deliberately absent: sizes that become smaller, which give
//! nothing back.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, DesiredVolume};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::act::args;
use holdfast_protocol::job::{Act, Draft, Target};
use holdfast_protocol::measure::GuestMeasure;
use holdfast_protocol::size::DiskGib;
use jiff::Timestamp;

use super::capacity::{NoRoom, Promised, gib};
use super::placement::Placement;
use super::{Context, Inputs, Judged};
use crate::gate::growth::{Budget, Lack};
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::model::growth::{Amount, Growth, Part, Passed, Permit};
use crate::model::observed::GuestFacts;
use crate::operation::{DiskRef, Reconfigure};

/// What is left in one plan.
#[derive(Debug)]
pub(super) struct Growing {
    budget: Budget,
    promised: Promised,
}

impl Growing {
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let growth = &inputs.records.growth;
        Self {
            budget: Budget::new(&growth.limits, &growth.ledger, inputs.time.at),
            promised: Promised::new(inputs),
        }
    }
}

/// One part of a guest that would grow.
pub(super) struct Change {
    part: Part,
    what: String,
    amount: Amount,
    disks: Vec<(Option<String>, u64)>,
}

/// Why a part does not grow now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is more than is left of the day.
    Beyond {
        /// What would grow.
        what: String,
        /// What is lacking.
        lacks: Vec<Lack>,
    },
    /// It has no room.
    NoRoom {
        /// What would grow.
        what: String,
        why: NoRoom,
    },
}

/// A guest that is to be made.
pub(super) fn of_new(guest: &DesiredGuest, placed: &Placement) -> Change {
    let root = u64::from(guest.size.rootfs_gib.get());
    let volumes = guest.volumes.iter().map(|volume| u64::from(volume.size_gib.get()));
    let disks = std::iter::once((&placed.root, root)).chain(placed.volumes.iter().zip(volumes));
    let disks: Vec<_> = disks.map(|(storage, gib)| (Some(storage.to_string()), gib)).collect();
    let amount = of_whole(guest);
    let what = format!(
        "make guest {} with {} cores, {} MiB memory, {} MiB swap and disks of {} GiB",
        guest.name, amount.cores, amount.memory_mib, amount.swap_mib, amount.disk_gib
    );
    Change { part: Part::Guest, what, amount, disks }
}

/// All of a guest.
fn of_whole(guest: &DesiredGuest) -> Amount {
    let size = &guest.size;
    let volumes = guest.volumes.iter().map(|volume| u64::from(volume.size_gib.get()));
    Amount {
        cores: size.cores.get().into(),
        memory_mib: size.memory_mib.get().into(),
        swap_mib: size.swap_mib.get().into(),
        disk_gib: u64::from(size.rootfs_gib.get()) + volumes.sum::<u64>(),
        guests: 1,
        volumes: guest.volumes.len() as u64,
    }
}

/// A lost guest that comes back: written down, and held by no budget, since a guest that serves no user is worse.
pub(super) fn of_lost(inputs: &Inputs<'_>, guest: &DesiredGuest) -> Growth {
    let (part, passed, at) = (Part::Guest, Passed::Recovery, inputs.time.at);
    Growth { part, amount: of_whole(guest), passed, at, disks: Vec::new() }
}

/// Cores, memory and swap.
pub(super) fn of_sizes(guest: &DesiredGuest, facts: &GuestFacts, change: &Reconfigure) -> Change {
    let more = |seen: Option<u64>, wanted: Option<u32>| {
        seen.zip(wanted).map_or(0, |(seen, wanted)| u64::from(wanted).saturating_sub(seen))
    };
    let amount = Amount {
        // A guest without a number has all cores of the host.
        cores: more(facts.cores, change.cores.map(|cores| cores.get())),
        memory_mib: more(Some(facts.memory_mib), change.memory.map(|memory| memory.get())),
        swap_mib: more(Some(facts.swap_mib), change.swap.map(|swap| swap.get())),
        ..Amount::default()
    };
    let parts = [("cores", amount.cores), ("MiB memory", amount.memory_mib), ("MiB swap", amount.swap_mib)];
    let parts = parts.iter().filter(|(_, more)| *more > 0).map(|(unit, more)| format!("{more} {unit} more"));
    let what = format!("give guest {} {}", guest.name, parts.collect::<Vec<_>>().join(", "));
    Change { part: Part::Sizes, what, amount, disks: Vec::new() }
}

/// A disk that is there.
pub(super) fn of_disk(
    guest: &DesiredGuest,
    facts: &GuestFacts,
    (disk, name): (DiskRef, &str),
    (seen, wanted): (u64, DiskGib),
) -> Change {
    let mount = match disk {
        DiskRef::Rootfs => None,
        DiskRef::Mount(slot) => facts.mounts.get(&u16::from(slot)),
    };
    let volume =
        guest.volumes.iter().find(|volume| mount.is_some_and(|mount| mount.path == volume.mount.as_str()));
    let storage = match mount {
        Some(mount) => mount.volume.as_ref().and_then(|volume| volume.storage()),
        None => facts.rootfs_storage.as_deref(),
    };
    let more = gib((u64::from(wanted.get()) << 30).saturating_sub(seen));
    Change {
        part: volume.map_or(Part::Rootfs, |volume| Part::Volume(volume.name.clone())),
        what: format!("grow {name} of guest {} from {} to {wanted}", guest.name, seen >> 30),
        amount: Amount { disk_gib: more, ..Amount::default() },
        disks: vec![(storage.map(str::to_owned), more)],
    }
}

/// A volume that is to be made.
pub(super) fn of_volume(guest: &DesiredGuest, volume: &DesiredVolume, storage: &str) -> Change {
    let gib = u64::from(volume.size_gib.get());
    Change {
        part: Part::Volume(volume.name.clone()),
        what: format!("make volume {} of guest {} with {gib} GiB", volume.name, guest.name),
        amount: Amount { disk_gib: gib, volumes: 1, ..Amount::default() },
        disks: vec![(Some(storage.to_owned()), gib)],
    }
}

/// Whether a part may grow now. Nothing, where it does not grow.
pub(super) fn judge(
    context: &Context<'_>,
    (guest, facts): (&DesiredGuest, Option<&GuestFacts>),
    change: Change,
) -> Result<Option<Box<Growth>>, Refused> {
    let Change { part, what, amount, disks } = change;
    if amount == Amount::default() {
        return Ok(None);
    }
    let growing = context.growing().borrow();
    let mut known = Vec::with_capacity(disks.len());
    for (storage, gib) in disks {
        let Some(storage) = storage else {
            let why = "on which storage its disk lies is not known".to_owned();
            return Err(Refused::NoRoom { what, why: (ErrorCode::Unavailable, why) });
        };
        known.push((storage, gib));
    }
    if let Some(why) = growing.promised.lacks(context.inputs, &known, &amount) {
        return Err(Refused::NoRoom { what, why });
    }
    let lacks = growing.budget.lacks(guest.uid, &amount);
    let passed = match permitted(context.inputs, (guest, facts), &part) {
        _ if lacks.is_empty() => Passed::Budget,
        Some(job) => Passed::Signed(job),
        None => {
            let inputs = context.inputs;
            if let Some(at) = growing.budget.eases_at().filter(|at| *at > inputs.time.at) {
                let wait = at.duration_since(inputs.time.at);
                context.again(inputs.now.checked_add(wait).unwrap_or(Timestamp::MAX));
            }
            return Err(Refused::Beyond { what, lacks });
        }
    };
    let at = context.inputs.time.at;
    Ok(Some(Box::new(Growth { part, amount, passed, at, disks: known })))
}

/// Counts what this plan begins.
pub(super) fn take(context: &Context<'_>, guest: &DesiredGuest, growth: &Growth) {
    let mut growing = context.growing().borrow_mut();
    growing.promised.take(&growth.disks, &growth.amount);
    if growth.passed == Passed::Budget {
        growing.budget.take(guest.uid, growth.amount);
    }
}

/// The job that lets a part grow to what the document asks for, if operators signed for that.
fn permitted(
    inputs: &Inputs<'_>,
    (guest, facts): (&DesiredGuest, Option<&GuestFacts>),
    part: &Part,
) -> Option<JobId> {
    let (seen, intended) = (facts.map(|facts| seen(guest, facts)), intended(guest, facts));
    let covers = |permit: &&Permit| {
        let same = permit.guest == guest.uid && permit.name == guest.name;
        same && !permit.used.contains(part) && covers(permit, (seen.as_ref(), &intended), part)
    };
    inputs.records.growth.permits.iter().find(covers).map(|permit| permit.job)
}

/// Exactly what was signed for, from no less than what the signers saw.
fn covers(permit: &Permit, (seen, intended): (Option<&GuestMeasure>, &GuestMeasure), part: &Part) -> bool {
    let to = &permit.to;
    let (seen, from) = match (part, seen, &permit.from) {
        (Part::Guest, None, None) => return intended == to,
        (Part::Sizes | Part::Rootfs | Part::Volume(_), Some(seen), Some(from)) => (seen, from),
        (Part::Guest | Part::Sizes | Part::Rootfs | Part::Volume(_), _, _) => return false,
    };
    let fits =
        |seen: u64, intended: u64, from: u64, to: u64| intended <= seen || (intended == to && seen >= from);
    match part {
        Part::Guest => false,
        Part::Sizes => {
            let cores = match (seen.cores, intended.cores, from.cores, to.cores) {
                (Some(seen), Some(intended), Some(from), Some(to)) => fits(seen, intended, from, to),
                (None, _, _, _) => true,
                (Some(_), _, _, _) => seen.cores == intended.cores,
            };
            cores
                && fits(seen.memory_mib, intended.memory_mib, from.memory_mib, to.memory_mib)
                && fits(seen.swap_mib, intended.swap_mib, from.swap_mib, to.swap_mib)
        }
        Part::Rootfs => fits(seen.rootfs_gib, intended.rootfs_gib, from.rootfs_gib, to.rootfs_gib),
        Part::Volume(name) => {
            let of = |measure: &GuestMeasure| measure.volumes_gib.get(name).copied();
            match (of(seen), of(intended), of(from), of(to)) {
                (Some(seen), Some(intended), Some(from), Some(to)) => fits(seen, intended, from, to),
                (None, Some(intended), None, Some(to)) => intended == to,
                _ => false,
            }
        }
    }
}

/// As it is.
fn seen(guest: &DesiredGuest, facts: &GuestFacts) -> GuestMeasure {
    let size = |volume: &DesiredVolume| {
        let mount = facts.mounts.values().find(|mount| mount.path == volume.mount.as_str())?;
        Some((volume.name.clone(), mount.bytes? >> 30))
    };
    GuestMeasure {
        cores: facts.cores,
        memory_mib: facts.memory_mib,
        swap_mib: facts.swap_mib,
        rootfs_gib: facts.rootfs_bytes.unwrap_or_default() >> 30,
        volumes_gib: guest.volumes.iter().filter_map(size).collect(),
    }
}

/// As the document asks for it. A disk that is larger stays so.
fn intended(guest: &DesiredGuest, facts: Option<&GuestFacts>) -> GuestMeasure {
    let now = facts.map(|facts| seen(guest, facts));
    let (size, now) = (&guest.size, now.as_ref());
    let volume = |volume: &DesiredVolume| {
        let there = now.and_then(|now| now.volumes_gib.get(&volume.name)).copied().unwrap_or_default();
        (volume.name.clone(), u64::from(volume.size_gib.get()).max(there))
    };
    GuestMeasure {
        cores: Some(size.cores.get().into()),
        memory_mib: size.memory_mib.get().into(),
        swap_mib: size.swap_mib.get().into(),
        rootfs_gib: u64::from(size.rootfs_gib.get()).max(now.map_or(0, |now| now.rootfs_gib)),
        volumes_gib: guest.volumes.iter().map(volume).collect(),
    }
}

/// Says what does not grow, with the text that an operator would sign.
pub(super) fn reported(
    mut judged: Judged,
    (guest, facts): (&DesiredGuest, Option<&GuestFacts>),
    refused: Vec<Refused>,
) -> Judged {
    let mut beyond: Vec<String> = Vec::new();
    for refused in refused {
        match refused {
            Refused::NoRoom { what, why: (code, why) } => {
                judged = judged.with(code, format!("to {what}: {why}"))
            }
            Refused::Beyond { what, lacks } => {
                let lacks: Vec<String> = lacks.iter().map(ToString::to_string).collect();
                beyond.push(format!("{what} ({})", lacks.join("; ")));
            }
        }
    }
    if beyond.is_empty() {
        return judged;
    }
    let beyond = beyond.join("; ");
    let text = format!(
        "held: {beyond}; an operator signs for it, or it goes on by itself as far as growth of the last 24 hours is over \
         (`agentd status` shows what is left)"
    );
    judged.held.push(PendingApproval {
        guest: guest.uid,
        effect: beyond,
        reason: "it is more than documents may let guests grow within 24 hours",
        remedy: Remedy::Sign(draft(guest, facts)),
    });
    judged.with(ErrorCode::GrowthHeld, text)
}

/// From what is there to what is asked for.
fn draft(guest: &DesiredGuest, facts: Option<&GuestFacts>) -> Draft {
    let act = Act::AllowGrowth(args::AllowGrowth {
        guest: guest.uid,
        name: guest.name.clone(),
        from: facts.map(|facts| Box::new(seen(guest, facts))),
        to: Box::new(intended(guest, facts)),
    });
    Draft { target: Target::Host {}, act }
}
