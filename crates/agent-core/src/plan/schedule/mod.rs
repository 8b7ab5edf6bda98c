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
pub mod points;
mod prune;
pub mod space;
pub mod still;
pub mod target;
pub mod tier;
mod unsettled;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::protection::{Consistency, Protection, Tier};
use holdfast_protocol::report::{GuestStatus, Running};
use jiff::Timestamp;

use super::restore_test_status::Tested;
use super::{Action, Context, Inputs, Plan, bulk, posture};
use crate::gate::{Provenance, Verdict, gate};
use crate::model::limits;
use crate::model::records::{BackupRecord, BackupWhy, GuestRecord, Place, SnapshotRecord, TakenBy};
use crate::operation::{Backup, DuePoint, Operation, Snapshot, Target};
pub(super) use facts::known;
pub use facts::{Promised, ScheduleFacts, backups_of, is_good, promised};
use points::Around;
use tier::{Controller, Facts, OutstandingPoint, State};

/// What is owed of one tier of a guest: what is promised, and what was promised before it was raised until that has produced
/// a backup. So no promise that is never carried out takes another one's place.
#[must_use]
pub fn outstanding(known: &ScheduleFacts<'_>, promised: &Promised<'_>, around: Around) -> OutstandingPoint {
    let new = outstanding_now(known, promised, around);
    let record = known.tiers.iter().find(|record| record.tier == promised.tier);
    let Some(earlier) = record.and_then(|record| record.earlier.as_deref()) else { return new };
    let produced = |backup: &BackupRecord| {
        let of_tier = backup.tier == Some(promised.tier) || promised.consistency == Consistency::Crash;
        of_tier && backup.taken_at >= earlier.until
    };
    if known.good(promised).any(produced) {
        return new;
    }
    let promised = Promised { schedule: &earlier.schedule, consistency: earlier.consistency, ..*promised };
    let old = outstanding_now(known, &promised, Around::of(promised.schedule, known.time.at));
    let begins = |outstanding: &OutstandingPoint| outstanding.last.is_some_and(|due| due.state == State::Now);
    let missed = old.last.filter(tier::DueBackup::is_missed);
    let last = if begins(&old) && !begins(&new) { old.last } else { new.last };
    let overdue = new.overdue.or(old.overdue).or(missed.map(|due| due.point));
    OutstandingPoint { last, overdue, ..new }
}

fn outstanding_now(known: &ScheduleFacts<'_>, promised: &Promised<'_>, around: Around) -> OutstandingPoint {
    let time = known.time;
    let record = known.tiers.iter().find(|record| record.tier == promised.tier);
    let latest = known.latest();
    let stands = match promised.tier {
        Tier::Snapshot => scheduled(known.snapshots).filter(|point| *point <= latest).max(),
        Tier::Local | Tier::OffSite => {
            known.backups.iter().filter_map(|backup| stands_for(backup, promised, latest)).max()
        }
    };
    let heard = known.hello.is_some_and(|hello| {
        time.at.duration_since(hello.at).abs() < limits::CONTROLLER_SILENT && known.run == Running::Running
    });
    let waits = promised.consistency == Consistency::Application && heard && !known.still.is_spent();
    tier::judge(&Facts {
        guest: known.guest,
        tier: promised.tier,
        schedule: promised.schedule,
        around,
        record,
        // Snapshots are not hurried, which are no backups.
        renumbered: promised.target.and(known.renumbered).filter(|one| one.at <= latest),
        stands,
        controller: if waits { Controller::WaitedFor } else { Controller::NotWaitedFor },
        time,
    })
}

/// The points for which snapshots stand that a schedule took.
fn scheduled(snapshots: &[SnapshotRecord]) -> impl Iterator<Item = Timestamp> {
    snapshots.iter().filter_map(|snapshot| snapshot.point)
}

/// Up to which point of a tier a backup settles what is owed. What says that it was taken later than now settles nothing.
fn stands_for(backup: &BackupRecord, promised: &Promised<'_>, latest: Timestamp) -> Option<Timestamp> {
    // A backup that was not taken for the tier holds no programs that stood still.
    let meant = backup.tier.is_some() || promised.consistency == Consistency::Crash;
    let at = backup.point.unwrap_or(backup.taken_at);
    (meant && is_good(backup, promised) && at <= latest).then_some(at)
}

/// The points of every promise, looked for once for all guests that share it.
#[derive(Default)]
pub(super) struct Points(BTreeMap<(usize, Tier), Around>);

impl Points {
    fn of(&mut self, promise: &Arc<Protection>, promised: &Promised<'_>, now: Timestamp) -> Around {
        let key = (Arc::as_ptr(promise).addr(), promised.tier);
        *self.0.entry(key).or_insert_with(|| Around::of(promised.schedule, now))
    }
}

/// Judges every guest that has a verdict and a promise.
pub(super) fn all(context: &Context<'_>, plan: &mut Plan) {
    let inputs = context.inputs;
    if inputs.records.protections.is_empty() {
        return;
    }
    let busy: BTreeSet<GuestUid> = plan.actions.iter().map(|action| action.operation.uid()).collect();
    let mut points = Points::default();
    for verdict in &mut plan.verdicts {
        let record = verdict.recorded.and_then(|place| inputs.records.guests.get(place));
        let Some((record, vmid)) = record.and_then(|record| Some((record, made(record)?))) else { continue };
        let Some(promise) = inputs.records.protections.get(&record.uid) else { continue };
        let known = known(inputs, record);
        let (mut begins, mut goes, mut tiers) = (None, None, Vec::new());
        let target = || Target { uid: record.uid, name: record.name.clone(), vmid };
        for promised in promised(promise) {
            let around = points.of(promise, &promised, inputs.time.at);
            let outstanding = outstanding(&known, &promised, around);
            again(context, &outstanding);
            let open =
                target::judge(inputs, &promised).and_then(|()| target::has_room(inputs, &known, &promised));
            verdict.conditions.extend(conditions::tier(&promised, &outstanding, &known));
            match open {
                Ok(()) => {
                    begins = begins.or_else(|| operation(inputs, (record, vmid), &promised, &outstanding))
                }
                Err(condition) => verdict.conditions.push(condition),
            }
            goes = goes.or_else(|| prune::next(context, &known, &promised, target));
            tiers.push((promised, outstanding));
        }
        verdict.conditions.extend(still::reported(known.still, &promised(promise)));
        goes = goes.or_else(|| prune::snapshot(context, &known, promise, target));
        let wanted = verdict.wanted.and_then(|place| inputs.desired.get(place));
        let seen = inputs.observed.guests.get(&vmid);
        let bulk = bulk::judge((promise, &tiers), &known, (wanted, seen));
        verdict.conditions.extend(bulk.conditions());
        let posture = posture::judge(&tiers, &known, inputs.observed, bulk);
        let tested = tiers.iter().filter_map(|(promised, _)| Tested::of(promised, &known).report());
        let protection = verdict.protection.get_or_insert_default();
        (protection.posture, protection.tested) = (Some(posture), tested.collect());
        let free = is_quiet(context, verdict.status, record) && !busy.contains(&record.uid);
        let passes = |action: &Action| {
            let allowed = |effect| gate(effect, Provenance::Schedule, &context.approved) == Verdict::Free;
            action.operation.effects().iter().all(allowed)
        };
        plan.actions.extend(begins.or(goes).filter(|action| free && passes(action)));
    }
}

fn made(record: &GuestRecord) -> Option<Vmid> {
    match record.place {
        Place::Made { vmid, .. } => Some(vmid),
        Place::Nowhere | Place::Making { .. } | Place::Gone { .. } => None,
    }
}

/// Whether something can be begun on the guest: it is provably ours, it is not locked, and no operation on it is open
/// or parked.
pub(super) fn is_quiet(context: &Context<'_>, status: GuestStatus, record: &GuestRecord) -> bool {
    // Its judge has looked at mark and volumes: a guest that is not ours has another status.
    let ours = matches!(status, GuestStatus::Managed | GuestStatus::Unmanaged | GuestStatus::Broken);
    let free = !context.open.contains(&record.uid) && !context.parked.contains_key(&record.uid);
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
