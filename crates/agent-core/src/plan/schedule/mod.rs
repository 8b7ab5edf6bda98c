//! Due backups by promise, and what is begun for them.
//!
//! What comes in: the promises in force, what was taken and tried, and the time that schedules go by. What goes out: at
//! most one operation for each guest that has no other operation, conditions where something is missed or cannot be
//! done, and when to look again. A guest's controller, which is shown what is due, gets it from the same judgement
//! ([`outstanding`]). A guest whose other requests are held is backed up all the same. Deliberately absent: who begins
//! first on a full host (`operation::lane`).
//!
//! | module | decides |
//! | --- | --- |
//! | `early_backups` | which backup a window is for that a guest asked for |
//! | `distance` | how close two backups may be |
//! | [`facts`] | what is known of one guest |
//! | `faults` | which faults of a tier are reported as values |
//! | `keeping` | which judgements hold for later plans |
//! | [`memory`] | what the last plan judged and still holds |
//! | [`outstanding`](mod@outstanding) | what is owed, by what exists |
//! | `promises` | what is worked out once for each promise |
//! | [`points`] | which points there are around now, and by how much each guest is put off |
//! | [`tier`] | what is owed of one tier |
//! | [`prune`] | which backup or snapshot is removed next |
//! | `space` | whether a storage has room for one more backup |
//! | [`still`] | how long programs may stand still for backups |
//! | [`target`] | whether a tier's backups may go where they should, and one more snapshot be kept |
//! | [`conditions`] | what is reported to the operator |
//! | `unsettled` | from which point waits count, and what is overdue |

pub(super) mod conditions;
mod distance;
pub(super) mod early_backups;
pub mod facts;
mod faults;
mod keeping;
pub mod memory;
pub mod outstanding;
pub mod points;
mod promises;
mod prune;
pub mod space;
pub mod still;
pub mod target;
pub mod tier;
mod unsettled;

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::protection::{
    NewestBackup, PostureReport, Protection, ProtectionReport, Tier, TierTested,
};
use holdfast_protocol::report::{Condition, GuestStatus};
use jiff::Timestamp;

use super::by_guest::ByGuest;
use super::restore_test_status::Tested;
use super::{Action, Context, Inputs, Plan, bulk, posture};
use crate::gate::{Provenance, Verdict, gate};
use crate::model::records::{BackupWhy, GuestRecord, Place, TakenBy};
use crate::model::tier_fault::TierFault;
use crate::operation::{Backup, DuePoint, Operation, Snapshot, Target};
pub(super) use facts::known;
use facts::known_at;
pub use facts::{Promised, ScheduleFacts, backups_of, is_good, promised};
use keeping::Keeping;
use memory::{Both, KeptJudgement, KeptJudgements, KeptTiers, Mounts, Next, Own};
pub use outstanding::outstanding;
use outstanding::{standing, stands};
use promises::{Points, PromiseNow, Promises, TierNow};
use tier::{OutstandingPoint, State};

/// What is judged of one guest.
struct Judgement {
    conditions: Vec<Condition>,
    /// What is to be begun on it, the most urgent alone.
    action: Option<Action>,
    /// Its tiers' parts of what is kept for the next plan; none, where it is to be judged anew then.
    kept: Option<(KeptTiers, Timestamp)>,
    posture: PostureReport,
    newest: Vec<NewestBackup>,
    tested: Vec<TierTested>,
    faults: Vec<TierFault>,
}

/// Judges every guest that has a verdict and a promise. What the last plan judged and still holds is not judged again.
pub(super) fn all(context: &Context<'_>, plan: &mut Plan, memory: &mut KeptJudgements) {
    let inputs = context.inputs;
    if inputs.records.protections.is_empty() {
        *memory = KeptJudgements::default();
        return;
    }
    let busy: BTreeSet<GuestUid> = plan.actions.iter().map(|action| action.operation.uid()).collect();
    let (mut promises, mut points) = (Promises::new(inputs), Points::new(inputs.time.at));
    let (mut walk, mut in_force) = (memory.begin(inputs), ByGuest::new(&inputs.records.protections));
    for verdict in &mut plan.verdicts {
        let Some(record) = verdict.recorded.and_then(|place| inputs.records.guests.get(place)) else {
            continue;
        };
        let Some(promise) = in_force.next(record.uid) else { continue };
        let Some(vmid) = made(record) else {
            verdict.protection.get_or_insert_with(|| plain(promise));
            continue;
        };
        let now = promises.of(promise, &mut points);
        let seen = inputs.observed.guests.get(&vmid);
        let both = (verdict.wanted.and_then(|place| inputs.desired.get(place)), seen);
        let Next { places, kept } = walk.next(record);
        let known = known_at(inputs, (record, seen), &places);
        // What is reported of a promise that is asked for otherwise is made anew each time.
        let asked_alike = verdict.protection.is_none();
        if let Some(kept) = kept {
            let owed = |owed: &OutstandingPoint| again(context, owed);
            match walk.holding(kept, (now, &known), (both, &mut points), owed) {
                Some(kept) if asked_alike => {
                    verdict.conditions.extend(kept.conditions.iter().cloned());
                    verdict.faults.clone_from(&kept.faults);
                    verdict.protection = Some(Arc::clone(&kept.protection));
                    continue;
                }
                Some(_) => walk.forget(kept),
                None => {}
            }
        }
        let judged = judge(context, (record, vmid), (now, &known), (both, &mut points));
        verdict.conditions.extend(judged.conditions.iter().cloned());
        verdict.faults.clone_from(&judged.faults);
        let protection = verdict.protection.get_or_insert_with(|| plain(promise));
        let report = Arc::make_mut(protection);
        (report.posture, report.tested) = (Some(judged.posture), judged.tested);
        report.newest = judged.newest;
        if let Some((tiers, until)) = judged.kept.filter(|_| asked_alike) {
            let (promise, protection) = (Arc::clone(promise), Arc::clone(protection));
            let (own, mounts) = (Own::of(&known), Mounts::of(now, both));
            let (conditions, faults) = (judged.conditions, judged.faults);
            let guest = record.uid;
            walk.keep(KeptJudgement {
                guest,
                promise,
                places,
                own,
                tiers,
                mounts,
                until,
                conditions,
                faults,
                protection,
                next_tests: None,
            });
        }
        let free = is_quiet(context, verdict.status, record) && !busy.contains(&record.uid);
        let passes = |action: &Action| {
            let allowed = |effect| gate(effect, Provenance::Schedule, &context.approved) == Verdict::Free;
            action.operation.effects().iter().all(allowed)
        };
        plan.actions.extend(judged.action.filter(|action| free && passes(action)));
    }
    memory.end(walk);
}

/// What is reported of a guest under a promise, before it is judged.
fn plain(promise: &Arc<Protection>) -> Arc<ProtectionReport> {
    let in_force = Some(Protection::clone(promise));
    Arc::new(ProtectionReport { in_force, ..ProtectionReport::default() })
}

fn judge<'a>(
    context: &Context<'a>,
    (record, vmid): (&GuestRecord, Vmid),
    (now, known): (&PromiseNow<'a>, &ScheduleFacts<'a>),
    (both, points): (Both<'_>, &mut Points<'a>),
) -> Judgement {
    let inputs = context.inputs;
    let (mut begins, mut goes, mut conditions) = (None, None, Vec::new());
    let (mut tiers, mut tested, mut kept) = (Vec::new(), Vec::new(), Keeping::new(context, known));
    let (mut faults, mut newest) = (Vec::new(), Vec::new());
    let target = || Target { uid: record.uid, name: record.name.clone(), vmid };
    for TierNow { promised, around, open, .. } in &now.tiers {
        let stands = stands(known, promised);
        let outstanding = standing(known, promised, (*around, stands), |schedule| points.of(schedule));
        again(context, &outstanding);
        let open = open.clone().and_then(|()| target::has_room(inputs, known, promised));
        conditions.extend(conditions::tier(promised, &outstanding, known));
        let of_tier = Tested::of(promised, known);
        faults.extend(faults::tier((promised, known), (stands, &outstanding), &of_tier));
        kept.tier(known, (promised, &of_tier), (stands, outstanding), &open);
        match open {
            Ok(()) => {
                begins = begins.or_else(|| operation(inputs, (record, vmid), promised, &outstanding));
            }
            Err(condition) => conditions.push(condition),
        }
        goes = goes.or_else(|| prune::next(context, known, promised, target));
        tested.extend(of_tier.report());
        newest.extend(newest_backup(known, promised));
        tiers.push((*promised, outstanding));
    }
    conditions.extend(still::reported(known.still, tiers.iter().map(|(promised, _)| promised)));
    goes = goes.or_else(|| prune::snapshot(context, known, now.promise, target));
    let bulk = bulk::judge((now.promise, &tiers), known, both);
    conditions.extend(bulk.conditions());
    let posture = posture::judge(&tiers, known, inputs.observed, bulk);
    let action = begins.or(goes);
    Judgement { conditions, kept: kept.unless(action.as_ref()), action, posture, newest, tested, faults }
}

/// Of those that their storage lists.
fn newest_backup(known: &ScheduleFacts<'_>, promised: &Promised<'_>) -> Option<NewestBackup> {
    let target = promised.target?;
    let of_tier =
        known.backups.iter().filter(|one| one.is_of(promised.tier, target) && one.missing_since.is_none());
    let newest = of_tier.max_by_key(|one| one.taken_at)?;
    let took_ms = newest.took.and_then(|took| u64::try_from(took.as_millis()).ok());
    Some(NewestBackup { tier: promised.tier, taken_at: newest.taken_at, bytes: newest.bytes, took_ms })
}

fn made(record: &GuestRecord) -> Option<Vmid> {
    match record.place {
        Place::Made { vmid, .. } => Some(vmid),
        Place::Nowhere | Place::Making { .. } | Place::Gone { .. } => None,
    }
}

/// Whether something can be begun on the guest: it is provably ours, it is not locked, it runs no controller on trial,
/// and no operation on it is open or parked.
pub(super) fn is_quiet(context: &Context<'_>, status: GuestStatus, record: &GuestRecord) -> bool {
    // Its judge has looked at mark and volumes: a guest that is not ours has another status.
    let ours = matches!(status, GuestStatus::Managed | GuestStatus::Unmanaged | GuestStatus::Broken);
    let free = !context.open.contains(&record.uid) && !context.parked.contains_key(&record.uid);
    let free = free && !context.is_on_trial(record.uid);
    let vmid = record.place.vmid();
    let seen = vmid.and_then(|vmid| context.inputs.observed.guests.get(&vmid));
    ours && free && seen.is_some_and(|seen| seen.lock.is_none())
}

fn operation(
    inputs: &Inputs<'_>,
    (record, vmid): (&GuestRecord, Vmid),
    promised: &Promised<'_>,
    outstanding: &OutstandingPoint,
) -> Option<Action> {
    let due = outstanding.last.filter(|due| due.state == State::Now)?;
    let target = Target { uid: record.uid, name: record.name.clone(), vmid };
    let point =
        Some(DuePoint { tier: promised.tier, point: due.point, begun: due.begun, at: inputs.time.at });
    let operation = match promised.tier {
        Tier::Snapshot => Operation::Snapshot(Snapshot {
            target,
            name: due.point.strftime("scheduled-%Y%m%dT%H%M%SZ").to_string().parse().ok()?,
            taken_by: TakenBy::Schedule,
            expires_at: None,
            due: point,
        }),
        Tier::Local | Tier::OffSite => Operation::Backup(Backup {
            target,
            storage: promised.target?.clone(),
            why: BackupWhy::Schedule,
            due: point,
            key: promised.key.cloned(),
            leaves_out: bulk::leaves_out(inputs, record.uid, promised.target?),
        }),
    };
    Some(Action { operation, reason: conditions::reason(promised.tier, &due), growth: None })
}

/// Looks again when something of the tier changes by itself. Its times are those that schedules go by.
fn again(context: &Context<'_>, outstanding: &OutstandingPoint) {
    let inputs = context.inputs;
    let of_state = outstanding.last.and_then(|due| match due.state {
        // At the end of the window it is missed, which is reported.
        State::Later(at) | State::Waits(at) | State::Again(at) if due.ends > inputs.time.at => {
            Some(at.min(due.ends))
        }
        State::Later(at) | State::Waits(at) | State::Again(at) => Some(at),
        State::Settled | State::Now | State::GivenUp => None,
    });
    for at in of_state.into_iter().chain(outstanding.next) {
        let wait = at.duration_since(inputs.time.at);
        context.again(inputs.now.checked_add(wait).unwrap_or(Timestamp::MAX));
    }
}
