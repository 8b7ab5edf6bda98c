//! Promises of the document: raised at once, or held.
//!
//! For each guest that was made: what is in force, by our records, is held against what the document asks for. A guest
//! that the document does not name, or that is not there yet, changes nothing. Deliberately absent: the rules
//! (`gate/protection`), and taking backups.

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::{BulkBackup, DesiredGuest, VolumeKind};
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::Draft;
use holdfast_protocol::job::act::args::LoosenPolicy;
use holdfast_protocol::job::act::{Act, args};
use holdfast_protocol::protection::{Protection, ProtectionReport};
use holdfast_protocol::report::Condition;
use holdfast_trust::Accepted;

use super::agreed::{Agreed, AgreedGuests, guarded, is_silent};
use super::by_guest::ByGuest;
use super::escrow::{self, NotReplaced};
use super::proved_guest::{Stays, refused};
use super::signed_state::proved;
use super::{Context, GuestVerdict, Inputs, Plan};
use crate::gate::pending_approval::{PendingApproval, Remedy, upon};
use crate::gate::protection::{Guarded, Loosened};
use crate::model::observed::Detail;
use crate::model::records::{GuestRecord, Place};

/// A promise to put into force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raise {
    /// For which guest.
    pub guest: GuestUid,
    /// What was in force when this was decided.
    pub from: Option<Arc<Protection>>,
    /// What shall be.
    pub to: Protection,
    /// What is raised, in words.
    pub what: String,
}

/// Whether anything was ever promised or is asked for. Most of a plan's time would go into finding nothing, guest by guest.
fn is_any(inputs: &Inputs<'_>) -> bool {
    let goals = |guest: &DesiredGuest| {
        let backed_up = |kind: &VolumeKind| matches!(kind, VolumeKind::Bulk(BulkBackup::BackupTo(_)));
        guest.policy.is_some() || guest.volumes.iter().any(|volume| backed_up(&volume.kind))
    };
    !inputs.records.protections.is_empty() || inputs.desired.iter().any(goals)
}

/// Judges every guest that has a verdict. A guest with a promise that nothing changes about gets no report here: what is in
/// force is reported with its posture.
pub(super) fn all(inputs: &Inputs<'_>, plan: &mut Plan, memory: &mut AgreedGuests) {
    if !is_any(inputs) {
        return;
    }
    let (mut agreed, mut all_in_force) =
        (Agreed::begin(inputs, memory), ByGuest::new(&inputs.records.protections));
    for verdict in &mut plan.verdicts {
        let Some(record) = verdict.recorded.and_then(|place| inputs.records.guests.get(place)) else {
            continue;
        };
        let in_force = all_in_force.next(record.uid);
        let wanted = verdict.wanted.and_then(|place| inputs.desired.get(place));
        let is_settled = |(promise, guest)| agreed.is_settled(promise, guest);
        if in_force.zip(wanted).is_some_and(is_settled) {
            continue;
        }
        let Some((guest, guarded)) = wanted.and_then(|guest| Some((guest, judge(inputs, record, guest)?)))
        else {
            continue;
        };
        if in_force.is_some_and(|promise| is_silent(&guarded, promise)) {
            continue;
        }
        plan.held.extend(held(inputs, record, guest, &guarded));
        add_conditions(verdict, &guarded);
        verdict.protection = Some(report(in_force, &guarded));
        if !guarded.raised.is_empty() {
            let what: Vec<String> = guarded.raised.iter().map(ToString::to_string).collect();
            plan.raises.push(Raise {
                guest: record.uid,
                from: in_force.cloned(),
                to: guarded.next,
                what: what.join("; "),
            });
        }
    }
    agreed.end(memory);
}

/// What becomes of a document's request about a guest that was made; nothing, where it neither has nor gets a promise.
pub(super) fn judge(inputs: &Inputs<'_>, record: &GuestRecord, guest: &DesiredGuest) -> Option<Guarded> {
    if !matches!(record.place, Place::Made { .. }) {
        return None;
    }
    let in_force = inputs.records.protections.get(&record.uid).map(Arc::as_ref);
    let goal = match (in_force, Protection::of_document(guest, inputs.policies)) {
        (None, None) => return None,
        (_, Some(goal)) => goal,
        // Nothing of it would be backed up any more; what its volumes are is still said.
        (Some(_), None) => Protection::of_volumes(guest),
    };
    Some(guarded(inputs, in_force, &goal))
}

/// Whether a promise may be lowered now: what is in force and what is asked for are both what the signers saw.
pub(super) fn loosens(inputs: &Inputs<'_>, job: &Accepted, signed: &LoosenPolicy) -> Result<(), Stays> {
    let (target, _) = proved(&Context::new(inputs), &job.payload().target)?;
    let changed = |why: &str| refused(ErrorCode::TargetChanged, format!("{why}: look again and sign anew"));
    let (in_force, none) = (inputs.records.protections.get(&target.uid), Protection::default());
    if in_force.map_or(&none, Arc::as_ref) != signed.from.as_ref() {
        return Err(changed("what is promised about its backups is not what the operator saw"));
    }
    let guest = inputs.desired.iter().find(|guest| guest.uid == target.uid);
    let place = inputs.records.guests.binary_search_by_key(&target.uid, |record| record.uid);
    let record = place.ok().and_then(|place| inputs.records.guests.get(place));
    let intended = guest.zip(record).and_then(|(guest, record)| judge(inputs, record, guest));
    if intended.map(|guarded| guarded.intended).as_ref() != Some(signed.to.as_ref()) {
        return Err(changed("the document no longer requests what the operator saw"));
    }
    keys_in_order(inputs, &signed.from, &signed.to)
        .map_err(|error| refused(ErrorCode::EscrowMissing, error.to_string()))
}

/// Whether what changes of the key leaves it one that a recovery code opens, where the one in use is.
fn keys_in_order(inputs: &Inputs<'_>, from: &Protection, to: &Protection) -> Result<(), NotReplaced> {
    match (&from.tiers.off_site, &to.tiers.off_site) {
        (Some(from), Some(to)) => escrow::may_replace(&inputs.records.codes, &from.key, &to.key),
        (None, _) | (_, None) => Ok(()),
    }
}

/// What is in force, what is requested in addition, and what of that is held.
fn report(in_force: Option<&Arc<Protection>>, guarded: &Guarded) -> Arc<ProtectionReport> {
    let in_force = in_force.map(|promise| Protection::clone(promise));
    let desired = Some(&guarded.intended).filter(|goal| in_force.as_ref() != Some(*goal)).cloned();
    let mut report = ProtectionReport { in_force, desired, ..ProtectionReport::default() };
    report.held.extend(guarded.loosened.iter().chain(&guarded.beyond).map(|held| held.change.to_string()));
    report.held.extend(guarded.unapproved.iter().map(|held| format!("{} to {}", held.part, held.target)));
    Arc::new(report)
}

fn words(held: &[Loosened]) -> String {
    held.iter().map(|held| held.change.to_string()).collect::<Vec<_>>().join("; ")
}

fn add_conditions(verdict: &mut GuestVerdict, guarded: &Guarded) {
    if !guarded.loosened.is_empty() {
        let message = format!(
            "it would be less protected ({}): what is in force stays until an operator signs",
            words(&guarded.loosened)
        );
        verdict.conditions.push(Condition { code: ErrorCode::NeedsSignature, message });
    }
    if !guarded.beyond.is_empty() {
        let message = format!(
            "more is asked of its backups than the operators' policy lets a document ask for ({}): what is in force stays until \
             an operator signs",
            words(&guarded.beyond)
        );
        verdict.conditions.push(Condition { code: ErrorCode::NeedsSignature, message });
    }
    for held in &guarded.unapproved {
        let message = format!(
            "{} is not backed up to {}: {}; an operator signs `attach_storage` for it, or root names it as backup_storage in \
             agent.toml",
            held.part, held.target, held.reason
        );
        verdict.conditions.push(Condition { code: ErrorCode::NeedsSignature, message });
    }
}

/// What waits: one signature for all that would be weaker or is more than a document may ask for, and root's approval
/// for each new target.
fn held(
    inputs: &Inputs<'_>,
    record: &GuestRecord,
    guest: &DesiredGuest,
    guarded: &Guarded,
) -> Vec<PendingApproval> {
    let mut held = Vec::new();
    if let Some(first) = guarded.loosened.first().or(guarded.beyond.first()) {
        let remedy = match keys_in_order(inputs, &guarded.next, &guarded.intended) {
            Err(_) => Remedy::ByHand(
                "no recovery code opens the new key: attach its target and run `agentd escrow create` on this box first",
            ),
            Ok(()) => draft(inputs, record, guarded).map_or(
                Remedy::ByHand("its volumes cannot be seen now, so nobody can say what is signed for: wait"),
                Remedy::Sign,
            ),
        };
        let less = (!guarded.loosened.is_empty())
            .then(|| format!("protect guest {} less: {}", guest.name, words(&guarded.loosened)));
        let more = (!guarded.beyond.is_empty())
            .then(|| format!("ask more of the backups of guest {}: {}", guest.name, words(&guarded.beyond)));
        let effect = less.into_iter().chain(more).collect::<Vec<_>>().join("; and ");
        held.push(PendingApproval { guest: record.uid, effect, reason: first.reason, remedy });
    }
    held.extend(guarded.unapproved.iter().map(|goal| PendingApproval {
        guest: record.uid,
        effect: format!("back up guest {} ({}) to {}", guest.name, goal.part, goal.target),
        reason: goal.reason,
        remedy: Remedy::ByHand(
            "an operator signs `attach_storage` for it, or root on this host names it as backup_storage in agent.toml",
        ),
    }));
    held
}

/// From what will be in force to what is asked for, on the guest as it is seen.
fn draft(inputs: &Inputs<'_>, record: &GuestRecord, guarded: &Guarded) -> Option<Draft> {
    let vmid = record.place.vmid()?;
    let Detail::Known(facts) = &inputs.observed.guests.get(&vmid)?.detail else { return None };
    let volumes = facts.volumes.iter().map(ToString::to_string).collect();
    let (from, to) = (Box::new(guarded.next.clone()), Box::new(guarded.intended.clone()));
    let act = Act::LoosenPolicy(args::LoosenPolicy { from, to });
    Some(upon(act, (record.uid, vmid), (record.name.clone(), Some(record.customer.clone())), volumes))
}
