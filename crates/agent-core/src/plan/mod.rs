//! The plan: due operations from desired, observed and recorded state.
//!
//! `plan(inputs) -> Plan` is synchronous, touches nothing, asks no clock and prints well; its printout has golden files.
//! What is missing from the document is kept; what is not provably ours is not touched; what cannot be seen is not gone.
//! One operation at a time per guest, sizes before power, and nothing at all on a guest that is parked, locked or frozen
//! in doubt. The cost is linear: requests and records are both walked once, in the order of their uids.
//!
//! | module | decides |
//! | --- | --- |
//! | [`address`] | which addresses a guest may not have |
//! | [`break_glass`] | what becomes of an order to open a way into the host |
//! | `agreed` | which promises the document asks for as they are |
//! | `adopt` | what becomes of a guest that our records do not know |
//! | [`protection_details`] | what is said in addition to the posture of a tier |
//! | [`guest_requests`] | what becomes of what guests asked for |
//! | `deletion` | which backup a signature removes |
//! | [`diagnose`] | the texts of named readings |
//! | `detach` | what becomes of a signature about a storage target |
//! | `discard` | whether a signed copy may be destroyed |
//! | [`new_guest`] | what to do for a guest that is not there |
//! | `controller` | whether a guest's controller is one that was approved |
//! | [`conditions`] | what is wrong with the host, by codes of the table |
//! | `copy_of` | what is reported of copies of guests |
//! | `hand` | which mounts a volume leaves and becomes |
//! | `hold` | which of it the brake holds |
//! | [`missing_guest`] | who may be gone, and what is done about it |
//! | [`vmid`] | whether the range has a number left |
//! | [`signed_jobs`] | what becomes of what operators signed |
//! | [`protect`] | what becomes of requests about backups |
//! | [`existing_guest`] | what to do for a guest that was made |
//! | `assigned` | what guests were given of the host |
//! | `capacity` | whether storage and memory have room for growth |
//! | `growth` | which growth is done, and which waits for a signature |
//! | `golden` | which golden archives may be restored |
//! | [`expiry`] | which snapshot's time is over |
//! | [`report`] | what is reported of each guest |
//! | `rollout` | what the guests that tried a controller say about it |
//! | `stacks` | what is reported of stacks that did not come back from a backup |
//! | [`storage`] | what becomes of each storage target |
//! | `swap` | which copy takes its guest's place, and what stays behind |
//! | `rebase` | which image a guest is put on, and which of its volumes move |
//! | `placement` | where a guest's disks may be made |
//! | `disks` | where those of a lost guest are made again |
//! | [`escrow`] | which codes open which key, and what is wrong with that |
//! | [`entry`] | how a target's entry in Proxmox should be, and how it differs |
//! | [`order_report`] | what the report of a work order shows of its operation |
//! | [`offsite`] | how the answers of a backup server are judged |
//! | [`storage_entry_actions`] | what a signed job left to do to that entry |
//! | [`controller_builds`] | which builds of the guest agent the host needs |
//! | `proved_guest` | which guest a request is about, and why it does not begin |
//! | `work_orders` | what becomes of what the hub ordered |
//! | `update` | which guest exchanges its controller next |
//! | `exchange_backup` | the backup that comes before an exchange |
//! | `trial` | which backup is tried next |
//! | [`read_only_entry`] | whether an entry of Proxmox is the read-only twin of another |
//! | [`restore_test_status`] | what restore tests say of a tier |
//! | [`restore_duration`] | whether a return takes longer than it did |
//! | [`posture`] | how well each guest is protected |
//! | [`health`] | what a controller says of its guest |
//! | [`fill_level`] | how full the storages are |
//! | [`schedule`] | what is due by the promises about backups |
//! | [`recovery`] | what becomes of operations that a stopped agent left open |

pub mod address;
mod adopt;
mod agreed;
mod alike;
mod assigned;
pub mod break_glass;
pub mod bulk;
mod by_guest;
mod capacity;
pub mod conditions;
mod context;
mod controller;
pub mod controller_builds;
mod deletion;
mod detach;
mod detached;
pub mod diagnose;
mod discard;
mod disks;
pub mod entry;
pub mod escrow;
mod exchange_backup;
mod existing_guest;
mod expiry;
pub mod fields;
pub mod fill_level;
mod filter;
mod fixed;
mod golden;
mod growth;
pub mod guest_requests;
mod health;
pub mod host_maintenance;
pub mod inherited;
mod lost_host;
mod made;
pub mod maintenance;
mod memory;
pub mod missing_guest;
mod network;
mod new_guest;
pub mod offsite;
pub mod order_report;
mod placement;
pub mod posture;
mod print;
pub mod protect;
pub mod protection_details;
mod proved_guest;
mod questions;
mod rate_limit;
pub mod read_only_entry;
mod rebase;
pub mod recovery;
pub mod recovery_source;
pub mod report;
pub mod rescue_advice;
pub mod restore_certificate;
pub mod restore_duration;
mod restore_test_schedule;
pub mod restore_test_status;
mod restored_copy;
mod rollout;
pub mod schedule;
pub mod signed_jobs;
mod signed_state;
mod silence;
mod stacks;
pub mod storage;
pub mod storage_entry_actions;
mod swap;
mod update;
mod vmid;
mod volume_reassignment;
mod work_orders;

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredGuest, OvercommitLevels, UseLevels};
use holdfast_protocol::generation::{ContentHash, Generation};
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::{BackupPolicy, ProtectionReport};
use holdfast_protocol::report::{Condition, GuestStatus, Running};
use holdfast_protocol::storage::StorageTarget;
use jiff::Timestamp;

use crate::gate::change_limit::{BulkHeld, Release};
use crate::gate::pending_approval::PendingApproval;
use crate::gate::{Effect, Provenance, Verdict, gate};
use crate::model::clock_trust::TrustedTime;
use crate::model::growth::Growth;
use crate::model::limits;
use crate::model::mark::Mark;
use crate::model::observed::{Detail, Observed};
use crate::model::policy::Policy;
use crate::model::records::{GuestRecord, Place, Records};
use crate::model::tier_fault::TierFault;
use crate::operation::Operation;
use context::Context;
use guest_requests::RequestDecision;

/// Everything a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The document's number.
    pub generation: Generation,
    /// What its content hashes to; nothing without one.
    pub content: Option<ContentHash>,
    /// What it names.
    pub desired: &'a [DesiredGuest],
    /// The backup policies that they can be under.
    pub policies: &'a [BackupPolicy],
    /// Its storage targets, as they are asked for.
    pub manifest: &'a [StorageTarget],
    /// From how much use on there is a condition, for guests that do not say it.
    pub levels: UseLevels,
    /// From how much promised to guests on the host counts as over-committed.
    pub overcommit: OvercommitLevels,
    /// What is seen.
    pub observed: &'a Observed,
    /// What is written down.
    pub records: &'a Records,
    /// What root named on this host.
    pub policy: &'a Policy,
    /// What an operator signed for, beyond the brake.
    pub release: Option<&'a Release>,
    pub now: Timestamp,
    /// The time that schedules go by.
    pub time: TrustedTime,
}

/// What should be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// For which document.
    pub generation: Generation,
    /// Operations to open, in order.
    pub actions: Vec<Action>,
    /// What becomes of what guests asked for.
    pub asked: Vec<RequestDecision>,
    /// Requests that wait for a signature.
    pub held: Vec<PendingApproval>,
    /// A bulk change that the brake holds.
    pub braked: Option<BulkHeld>,
    /// One for each guest, named by the document or not, ours or not.
    pub verdicts: Vec<GuestVerdict>,
    /// Guests that were seen healthy: their starts no longer count against them.
    pub healthy: Vec<GuestUid>,
    /// Copies of guests whose numbers are free now, by the operations that made them.
    pub gone_copies: Vec<OperationId>,
    /// What is raised of what guests are promised about their backups.
    pub raises: Vec<protect::Raise>,
    /// When to plan again although nothing changes: the end of the shortest wait.
    pub again_at: Option<Timestamp>,
}

/// One operation to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub operation: Operation,
    /// Why, in words.
    pub reason: String,
    /// What its guest grows by.
    pub growth: Option<Box<Growth>>,
}

/// The verdict on one guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestVerdict {
    /// Its place in the document.
    pub wanted: Option<usize>,
    /// Its place in the records.
    pub recorded: Option<usize>,
    pub vmid: Option<Vmid>,
    /// Its relation to us.
    pub status: GuestStatus,
    /// What a person should know.
    pub conditions: Vec<Condition>,
    /// How it is protected, where anything of that is in force or asked for.
    pub protection: Option<Arc<ProtectionReport>>,
    /// What is wrong with the tiers of its protection.
    pub faults: Vec<TierFault>,
}

/// What a judge of one guest says, in addition to its status.
#[derive(Debug)]
struct Judged {
    status: GuestStatus,
    conditions: Vec<Condition>,
    /// Mostly there is none, and this is handed from judge to judge.
    action: Option<Box<Action>>,
    held: Vec<PendingApproval>,
}

impl Judged {
    fn new(status: GuestStatus) -> Self {
        Self { status, conditions: Vec::new(), action: None, held: Vec::new() }
    }

    fn with(mut self, code: ErrorCode, message: impl Into<String>) -> Self {
        self.conditions.push(Condition { code, message: message.into() });
        self
    }
}

/// Decides what should be done next.
#[must_use]
pub fn plan(inputs: &Inputs<'_>) -> Plan {
    plan_with(inputs, &mut Memory::default())
}

/// The same plan, which judges less where little changed since the one that left this memory.
#[must_use]
pub fn plan_with(inputs: &Inputs<'_>, memory: &mut Memory) -> Plan {
    let context = Context::new(inputs);
    let mut plan = Plan {
        generation: inputs.generation,
        actions: Vec::new(),
        asked: guest_requests::judge(&context),
        held: Vec::new(),
        braked: None,
        verdicts: Vec::with_capacity(inputs.desired.len()),
        healthy: healthy(inputs),
        gone_copies: Vec::new(),
        raises: Vec::new(),
        again_at: None,
    };
    // The uids are copied out, so that sorting does not reach into every guest again and again.
    let in_order = |(place, guest): (usize, &DesiredGuest)| (guest.uid, place);
    let mut wanted: Vec<(GuestUid, usize)> = inputs.desired.iter().enumerate().map(in_order).collect();
    wanted.sort_unstable();
    let wanted = wanted.iter().filter_map(|(_, place)| Some((*place, inputs.desired.get(*place)?)));
    let mut wanted = wanted.peekable();
    let mut recorded = inputs.records.guests.iter().enumerate().peekable();
    loop {
        let order = match (wanted.peek(), recorded.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((_, guest)), Some((_, record))) => guest.uid.cmp(&record.uid),
        };
        let guest = if order.is_le() { wanted.next() } else { None };
        let record = if order.is_ge() { recorded.next() } else { None };
        let judged = judge(&context, guest.map(|(_, guest)| guest), record.map(|(_, record)| record));
        // A former guest that is nowhere and not in the document is not reported.
        let Some(judged) = judged else { continue };
        plan.actions.extend(judged.action.map(|action| *action));
        plan.held.extend(judged.held);
        let down = record.and_then(|(_, record)| stacks::down(&inputs.records.stacks_down, record));
        let silent = record.and_then(|(_, record)| controller::silent(inputs.records, record));
        let health = record.map(|(_, record)| health::reported(record)).unwrap_or_default();
        plan.verdicts.push(GuestVerdict {
            wanted: guest.map(|(place, _)| place),
            recorded: record.map(|(place, _)| place),
            vmid: record.and_then(|(_, record)| record.place.vmid()),
            status: judged.status,
            conditions: judged.conditions.into_iter().chain(down).chain(silent).chain(health).collect(),
            protection: None,
            faults: Vec::new(),
        });
    }
    inherited::in_order(inputs, &mut plan.actions);
    protect::all(inputs, &mut plan, &mut memory.agreed);
    rate_limit::bulk(inputs, &mut plan);
    schedule::all(&context, &mut plan, &mut memory.judged);
    restore_test_schedule::next(&context, &mut plan, &mut memory.judged);
    update::next(&context, &mut plan);
    restored_copy::verdicts(inputs, &mut plan);
    strangers(inputs, &mut plan);
    plan.again_at = context.again_at.get();
    plan
}

fn judge(
    context: &Context<'_>,
    guest: Option<&DesiredGuest>,
    record: Option<&GuestRecord>,
) -> Option<Judged> {
    let uid = guest.map(|guest| guest.uid).or_else(|| record.map(|record| record.uid))?;
    let place = record.map_or(&Place::Nowhere, |record| &record.place);
    if let Some(parked) = context.parked.get(&uid) {
        let text = format!("{} was parked: {}", parked.kind.as_str(), parked.message);
        return Some(Judged::new(GuestStatus::Parked).with(ErrorCode::Parked, text));
    }
    if context.open.contains(&uid) {
        let made = matches!(place, Place::Made { .. });
        let status = match (guest, made) {
            (None, _) => GuestStatus::Unmanaged,
            (Some(_), true) => GuestStatus::Managed,
            (Some(_), false) => GuestStatus::Absent,
        };
        return Some(Judged::new(status));
    }
    match (guest, place) {
        (Some(guest), Place::Nowhere) => Some(new_guest::judge(context, guest)),
        (None, Place::Nowhere | Place::Gone { .. }) => None,
        (Some(guest), Place::Gone { by }) => Some(Judged::new(GuestStatus::Absent).with(
            ErrorCode::Forbidden,
            format!(
                "{} was destroyed by a signature (operation {by}) and is not made again: take it out of the document, or name a guest with a new uid",
                guest.name
            ),
        )),
        (_, Place::Making { .. }) => Some(Judged::new(GuestStatus::Parked).with(
            ErrorCode::Parked,
            "its making stopped half-way and no operation is open for it: look at it on the node",
        )),
        (guest, Place::Made { vmid, volumes, .. }) => record.map(|record| {
            let made = made::Made { guest, record, vmid: *vmid, volumes };
            if lost_host::is_away(context.inputs, record) {
                inherited::judge(context, &made)
            } else {
                existing_guest::judge(context, &made)
            }
        }),
    }
}

/// Guests with starts on their account that have been up for a healthy time since. The account is short or empty.
fn healthy(inputs: &Inputs<'_>) -> Vec<GuestUid> {
    let up = |record: &GuestRecord| {
        let Place::Made { vmid, .. } = &record.place else { return false };
        inputs.observed.guests.get(vmid).is_some_and(|seen| {
            let ours = matches!(&seen.detail, Detail::Known(facts) if facts.mark == Mark::Of(record.uid));
            ours && seen.run == Running::Running && seen.up_s >= limits::HEALTHY_S
        })
    };
    let guests = &inputs.records.guests;
    let started = inputs.records.attempts.iter().filter(|tried| tried.kind == OperationKind::Start);
    started
        .filter(|tried| {
            let place = guests.binary_search_by_key(&tried.guest, |record| record.uid);
            place.ok().and_then(|place| guests.get(place)).is_some_and(up)
        })
        .map(|tried| tried.guest)
        .collect()
}

/// Guests on the node that no record of ours names: never touched, but reported.
fn strangers(inputs: &Inputs<'_>, plan: &mut Plan) {
    let mut ours: Vec<Vmid> = plan.verdicts.iter().filter_map(|verdict| verdict.vmid).collect();
    ours.sort_unstable();
    let mut ours = ours.into_iter().peekable();
    for (vmid, guest) in &inputs.observed.guests {
        while ours.next_if(|known| known < vmid).is_some() {}
        if ours.peek() == Some(vmid) {
            continue;
        }
        let mark = match &guest.detail {
            Detail::Known(facts) => facts.mark,
            Detail::Unknown(_) => Mark::None,
        };
        let guests = &inputs.records.guests;
        let counterpart = match mark {
            Mark::Of(uid) => guests.binary_search_by_key(&uid, |record| record.uid).ok(),
            _ => None,
        };
        let counterpart = counterpart.and_then(|place| guests.get(place));
        // One observation, one advice: the remedy is shown with the guest that was handed over. Its VMID is the lost
        // host's, and any other guest may have that number here.
        let away = counterpart.filter(|record| lost_host::is_away(inputs, record)).map(|record| &record.name);
        let message = match (mark, counterpart.map(|record| (&record.name, &record.place))) {
            (Mark::None, _) => None,
            (Mark::Of(_) | Mark::Copy { .. } | Mark::Broken, _) if away.is_some() => away.map(|name| {
                format!(
                    "guest {vmid} carries the mark of {name}, which was handed over as lost: it is not touched, and what to do \
                     is told with {name}"
                )
            }),
            (_, Some((name, Place::Made { vmid: ours, .. }))) => Some(format!(
                "guest {vmid} carries the mark of {name}, which is guest {ours} by our records: if {name} was lost and made \
                 again, this may be the lost one that came back. It is not touched; never let both run. To keep {ours}, destroy \
                 {vmid} on the node; to keep {vmid}, take the mark off it, name it under a new uid in the document, and let \
                 an operator sign to take it over"
            )),
            _ => Some(format!(
                "guest {vmid} carries a mark of ours, but our records do not know it: it is not touched; name its uid in the \
                 document, and what an operator signs to take it over is told"
            )),
        };
        let conditions =
            message.map(|message| Condition { code: ErrorCode::ForeignGuest, message }).into_iter().collect();
        let status = GuestStatus::Foreign;
        plan.verdicts.push(GuestVerdict {
            wanted: None,
            recorded: None,
            vmid: Some(*vmid),
            status,
            conditions,
            protection: None,
            faults: Vec::new(),
        });
    }
}

/// Passes an operation's effects through the gate, by the road of the document.
fn passes(context: &Context<'_>, effects: &[Effect]) -> Verdict {
    let verdicts = effects.iter().map(|effect| gate(effect, Provenance::Document, &context.approved));
    verdicts.fold(Verdict::Free, |worst, verdict| match (&worst, &verdict) {
        (Verdict::Forbidden(_), _) | (_, Verdict::Free) => worst,
        _ => verdict,
    })
}

pub use golden::{
    missing as missing_goldens, old as old_goldens, waiting as waiting_goldens, wanted as wanted_goldens,
};
pub use memory::Memory;
pub use questions::{Questions, questions};

#[cfg(test)]
mod tests;
