//! The next guest to update its guest agent.
//!
//! What comes in: the requests of the document, what controllers said of themselves, what was approved, what is stored
//! on the host, what did not come up ([`rollout`]). What goes out: at most one operation on the whole host, in the
//! order of the guests' uids. A build that is bad in one guest, or that silenced one, is tried in the next; two say
//! something about all. Deliberately absent: what
//! a guest does in its slot.

use std::cmp::Ordering;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{DesiredController, DesiredGuest, RunState};
use holdfast_protocol::job::act::{Act, ReleaseKind, args};
use holdfast_protocol::job::{Draft, Target as JobTarget};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::{Condition, Running};
use holdfast_protocol::version;
use jiff::SignedDuration;

use super::exchange_backup::{self, ExchangeBackup};
use super::rollout::{self, BuildState};
use super::schedule::is_quiet;
use super::{Action, Context, GuestVerdict, Plan, passes};
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::gate::{Effect, Provenance, Verdict, gate};
use crate::model::limits;
use crate::model::observed::MissingController;
use crate::model::policy::Sha256Hex;
use crate::model::records::{ControllerOutcome, ControllerVerdict, GuestRecord, HelloRecord, TakenBy};
use crate::operation::{Backup, Operation, Snapshot, Target, UpdateController};

/// What keeps a guest from the controller that is asked for it.
enum KeptBuild {
    /// Nothing to report: it has it, or its time comes.
    Silently,
    /// A person should know.
    Reported(ErrorCode, String),
    /// A backup comes first.
    BackedUpFirst(Box<Backup>),
    /// An operator can let it pass.
    Held(Box<PendingApproval>, String),
}

/// Judges every request, and plans the next update.
pub(super) fn next(context: &Context<'_>, plan: &mut Plan) {
    let inputs = context.inputs;
    let is_update = |kind: OperationKind| kind == OperationKind::UpdateController;
    // A build that is being tried, or whose way back a person must finish, is tried in no other guest meanwhile.
    let mut busy = inputs.records.open.iter().any(|open| is_update(open.kind))
        || inputs.records.parked.iter().any(|parked| is_update(parked.kind));
    for at in 0..plan.verdicts.len() {
        let Some(verdict) = plan.verdicts.get(at) else { continue };
        let wanted = verdict.wanted.and_then(|place| inputs.desired.get(place));
        let record = verdict.recorded.and_then(|place| inputs.records.guests.get(place));
        let Some((guest, record)) = wanted.zip(record) else { continue };
        let Some(goal) = &guest.controller else { continue };
        match judge(context, (guest, goal), record, verdict) {
            Ok(operation) => {
                let free = plan.actions.iter().all(|action| action.operation.uid() != guest.uid);
                if !busy && free {
                    busy = true;
                    let reason = format!("the document asks for controller {}", goal.version.as_str());
                    plan.actions.push(Action { operation, reason, growth: None });
                }
            }
            Err(KeptBuild::Silently) => {}
            Err(KeptBuild::Reported(code, message)) => report(plan, at, code, message),
            Err(KeptBuild::BackedUpFirst(backup)) => {
                let free = plan.actions.iter().all(|action| action.operation.uid() != guest.uid);
                if !busy && free {
                    busy = true;
                    let version = goal.version.as_str();
                    let reason = format!("a backup comes before the exchange for controller {version}");
                    plan.actions.push(Action { operation: Operation::Backup(*backup), reason, growth: None });
                }
            }
            Err(KeptBuild::Held(held, message)) => {
                plan.held.push(*held);
                report(plan, at, ErrorCode::ControllerUnapproved, message);
            }
        }
    }
}

fn report(plan: &mut Plan, at: usize, code: ErrorCode, message: String) {
    if let Some(verdict) = plan.verdicts.get_mut(at) {
        verdict.conditions.push(Condition { code, message });
    }
}

fn waits(message: impl Into<String>) -> KeptBuild {
    KeptBuild::Reported(ErrorCode::ControllerWaits, message.into())
}

fn judge(
    context: &Context<'_>,
    (guest, goal): (&DesiredGuest, &DesiredController),
    record: &GuestRecord,
    verdict: &GuestVerdict,
) -> Result<Operation, KeptBuild> {
    let inputs = context.inputs;
    let named = goal.version.as_str();
    let sha256 = Sha256Hex::try_from(goal.sha256.as_str().to_owned()).map_err(|_| KeptBuild::Silently)?;
    let hello = record.hello.as_ref().ok_or(KeptBuild::Silently)?;
    if hello.build.as_ref() == Some(&sha256) {
        return Err(still_bad(context, (record, hello), (named, &sha256)));
    }
    approved(context, guest, goal, &sha256)?;
    tried(context, record, (named, &sha256))?;
    if !inputs.observed.controllers.contains_key(&sha256) {
        return Err(waits(not_here(context, (named, &sha256))));
    }
    newer(goal, hello)?;
    if let Some((tried, until)) = context.waits(guest.uid, OperationKind::UpdateController) {
        return Err(waits(format!(
            "controller {named} was not put in, {} times ({}): tried again at {until:.0}",
            tried.failed, tried.message
        )));
    }
    speaks_now(context, guest, record, hello)?;
    let target = target(context, record, verdict)?;
    backed_up(context, guest, &target)?;
    let operation = Operation::UpdateController(Box::new(UpdateController {
        snapshot: snapshot(context, target)?,
        version: goal.version.clone(),
        sha256,
        pace_s: limits::hello_again_s(inputs.desired.len()),
        unwell_before: hello.reported.unwell.iter().map(|one| one.stack.clone()).collect(),
    }));
    if passes(context, &operation.effects()) != Verdict::Free {
        return Err(KeptBuild::Silently);
    }
    Ok(operation)
}

/// A guest that runs what is asked for, although it said that it is not well under it, and did not go back: its previous
/// controller knew no way back inside the guest. It hears of the verdict with its next hello.
fn still_bad(
    context: &Context<'_>,
    (record, hello): (&GuestRecord, &HelloRecord),
    (named, sha256): (&str, &Sha256Hex),
) -> KeptBuild {
    let inputs = context.inputs;
    let pace = SignedDuration::from_secs(i64::from(limits::hello_again_s(inputs.desired.len())));
    let own = inputs.records.controller_verdicts.iter().find(|one| {
        one.outcome == ControllerOutcome::Bad && one.sha256 == *sha256 && one.guest == record.uid
    });
    let Some(own) = own.filter(|own| hello.at.duration_since(own.at) > pace * 2) else {
        return KeptBuild::Silently;
    };
    let text = format!(
        "controller {named} did not come up here ({}), and the guest runs it still: {}",
        own.why,
        by_hand(record)
    );
    KeptBuild::Reported(ErrorCode::ControllerBad, text)
}

/// How a person puts the previous controller back. No write of the customer's is touched by that.
fn by_hand(record: &GuestRecord) -> String {
    let vmid = record.place.vmid().map_or_else(|| "VMID".to_owned(), |vmid| vmid.to_string());
    format!(
        "the one before comes back with `pct exec {vmid} -- mv /usr/bin/guestd.old /usr/bin/guestd` and \
         `pct exec {vmid} -- systemctl restart guestd`"
    )
}

/// Why its bytes are not on this host, and what helps.
fn not_here(context: &Context<'_>, (named, sha256): (&str, &Sha256Hex)) -> String {
    let what = format!("controller {named}, sha256 {}", sha256.as_str());
    let by_hand = format!("`agentd release import FILE --version {named}` on this host");
    match context.inputs.observed.missing_controllers.get(sha256) {
        None => format!("{what}, is not on this host yet: it is fetched from the hub"),
        Some(MissingController::NotAtHub) => format!(
            "{what}, is not on this host, and the hub has no release with these bytes: `holdfast release upload` at the \
             hub, or {by_hand}"
        ),
        Some(MissingController::Failed(why)) => {
            format!("{what}, could not be fetched from the hub ({why}): it is tried again; or {by_hand}")
        }
    }
}

/// What the guests that tried it say.
fn tried(
    context: &Context<'_>,
    record: &GuestRecord,
    (named, sha256): (&str, &Sha256Hex),
) -> Result<(), KeptBuild> {
    let records = &context.inputs.records;
    let name = |verdict: &ControllerVerdict| {
        let of = records.guests.iter().find(|guest| guest.uid == verdict.guest);
        of.map_or_else(|| verdict.guest.to_string(), |guest| guest.name.to_string())
    };
    let both = |one: &ControllerVerdict, other: &ControllerVerdict| {
        format!("{} ({}) and {} ({})", name(one), one.why, name(other), other.why)
    };
    let (code, message) = match rollout::judge(
        &records.controller_verdicts,
        &records.guests,
        sha256,
        record.uid,
    ) {
        BuildState::Clear => return Ok(()),
        BuildState::BadHere(own) => (
            ErrorCode::ControllerBad,
            format!(
                "controller {named} did not come up here ({}), and the guest has its previous one: it is not tried here again, \
                     and other guests get it; ask for another, or sign for it once more",
                own.why
            ),
        ),
        BuildState::BadForAll(one, other) => (
            ErrorCode::ControllerBad,
            format!(
                "controller {named} did not come up in guests {}: nobody on this box gets it; ask for another, or sign \
                     for it once more",
                both(one, other)
            ),
        ),
        BuildState::SilentHere(own) if rollout::is_heard_since(own, record) => (
            ErrorCode::ControllerWaits,
            format!(
                "controller {named} was not heard here after it was fetched, and the one before is back: it is not \
                     tried here again; ask for another, or sign for it once more"
            ),
        ),
        BuildState::SilentHere(own) => (ErrorCode::ControllerSilent, silent_text(named, own, record)),
        BuildState::Paused(one, other) => (
            ErrorCode::ControllerWaits,
            format!(
                "controller {named} waits: guests {} are in trouble with it; look at them first, then ask for another or \
                     sign for it once more",
                both(one, other)
            ),
        ),
    };
    Err(KeptBuild::Reported(code, message))
}

/// Where a person looks, and how the guest gets the controller back that it had. No data of the customer is touched by that.
fn silent_text(named: &str, own: &ControllerVerdict, record: &GuestRecord) -> String {
    let vmid = record.place.vmid().map_or_else(|| "VMID".to_owned(), |vmid| vmid.to_string());
    format!(
        "controller {named}: {}. The guest did not put its previous one back by itself either: look with `pct exec {vmid} -- \
         systemctl status guestd`; {}",
        own.why,
        by_hand(record)
    )
}

fn approved(
    context: &Context<'_>,
    guest: &DesiredGuest,
    goal: &DesiredController,
    sha256: &Sha256Hex,
) -> Result<(), KeptBuild> {
    let effect = Effect::ReplaceController { version: goal.version.clone(), sha256: sha256.clone() };
    let Verdict::NeedsSignature(reason) = gate(&effect, Provenance::Document, &context.approved) else {
        return Ok(());
    };
    let (version, sha256) = (goal.version.clone(), goal.sha256.clone());
    let what = format!("controller {}, sha256 {}", version.as_str(), sha256.as_str());
    let act = Act::ApproveRelease(args::ApproveRelease { kind: ReleaseKind::Controller, version, sha256 });
    let held = PendingApproval {
        guest: guest.uid,
        effect: format!("run {what}, in guest {}", guest.name),
        reason,
        remedy: Remedy::Sign(Draft { target: JobTarget::Host {}, act }),
    };
    Err(KeptBuild::Held(
        Box::new(held),
        format!("it should have {what}, which nobody approved: an operator signs for it"),
    ))
}

/// The hub alone moves no controller back: an older one may have a fault that is known.
fn newer(goal: &DesiredController, hello: &HelloRecord) -> Result<(), KeptBuild> {
    let (named, runs) = (goal.version.as_str(), hello.version.as_str());
    match version::order(named, runs) {
        Some(Ordering::Greater | Ordering::Equal) => Ok(()),
        Some(Ordering::Less) => Err(waits(format!(
            "controller {named} is older than {runs}, which runs: no document moves one back; exchange it by hand in the guest"
        ))),
        None => Err(waits(format!(
            "whether controller {named} is newer than {runs}, which runs, is not known: only dotted numbers have an order"
        ))),
    }
}

/// Its slot would pass unused otherwise.
fn speaks_now(
    context: &Context<'_>,
    guest: &DesiredGuest,
    record: &GuestRecord,
    hello: &HelloRecord,
) -> Result<(), KeptBuild> {
    let inputs = context.inputs;
    let seen = record.place.vmid().and_then(|vmid| inputs.observed.guests.get(&vmid));
    let runs = guest.run == RunState::Running && seen.is_some_and(|seen| seen.run == Running::Running);
    let heard = inputs.now.duration_since(hello.at).abs() < limits::CONTROLLER_SILENT;
    if runs && heard && hello.build.is_some() { Ok(()) } else { Err(KeptBuild::Silently) }
}

fn target(context: &Context<'_>, record: &GuestRecord, verdict: &GuestVerdict) -> Result<Target, KeptBuild> {
    // The requests of its guest come first, a quiesce window above all.
    let asks = context.inputs.records.requests.iter().any(|request| request.guest == record.uid);
    if asks || !is_quiet(context, verdict.status, record) {
        return Err(KeptBuild::Silently);
    }
    let vmid = record.place.vmid().ok_or(KeptBuild::Silently)?;
    Ok(Target { uid: record.uid, name: record.name.clone(), vmid })
}

/// The backup that the document asks for is there.
fn backed_up(context: &Context<'_>, guest: &DesiredGuest, target: &Target) -> Result<(), KeptBuild> {
    match exchange_backup::judge(context, guest, target) {
        ExchangeBackup::There => Ok(()),
        ExchangeBackup::Waits(message) => Err(waits(format!("its controller is exchanged later: {message}"))),
        ExchangeBackup::First(backup) => {
            let allowed =
                passes(context, &Operation::Backup(Backup::clone(&backup)).effects()) == Verdict::Free;
            Err(if allowed { KeptBuild::BackedUpFirst(backup) } else { KeptBuild::Silently })
        }
    }
}

fn snapshot(context: &Context<'_>, target: Target) -> Result<Snapshot, KeptBuild> {
    let now = context.inputs.now;
    let keep = SignedDuration::from_secs(i64::from(limits::SNAPSHOT_KEEP_S));
    let name = now.strftime("update-%Y%m%dT%H%M%SZ").to_string().parse().map_err(|_| KeptBuild::Silently)?;
    Ok(Snapshot {
        target,
        name,
        taken_by: TakenBy::Agent,
        expires_at: Some(now.checked_add(keep).unwrap_or(jiff::Timestamp::MAX)),
        due: None,
    })
}
