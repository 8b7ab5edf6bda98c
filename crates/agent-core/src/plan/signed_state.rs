//! The comparison of a guest with what operators signed for.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::job::{Fingerprint, Target as Aim};
use holdfast_trust::Accepted;

use super::proved_guest::{Stays, provably_ours, refused};
use super::{Action, Context};
use crate::gate::job_validation::same_guest;
use crate::gate::{Provenance, Verdict, gate};
use crate::model::observed::{Detail, GuestFacts, ObservedGuest};
use crate::operation::{Operation, Target};

/// Passes an operation's effects through the gate, by the road of a signed job.
pub(super) fn action(context: &Context<'_>, job: &Accepted, operation: Operation) -> Result<Action, Stays> {
    for effect in &operation.effects() {
        match gate(effect, Provenance::SignedJob, &context.approved) {
            Verdict::Free => {}
            Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => {
                return Err(refused(ErrorCode::Forbidden, why));
            }
        }
    }
    Ok(Action { operation, reason: reason(job), growth: None })
}

/// Who signed, and why.
pub(super) fn reason(job: &Accepted) -> String {
    let names: Vec<&str> = job.signers().iter().map(|name| name.as_str()).collect();
    format!("signed by {}: {}", names.join(", "), job.payload().reason.as_str())
}

/// Whether anything is under way on a guest, or was left for a person.
pub(super) fn at_rest(context: &Context<'_>, uid: GuestUid) -> Result<(), Stays> {
    if let Some(parked) = context.parked.get(&uid) {
        let text = format!("{} of this guest was parked: look at it first", parked.kind.as_str());
        return Err(refused(ErrorCode::Parked, text));
    }
    if context.open.contains(&uid) { Err(Stays::Waits) } else { Ok(()) }
}

/// A guest of ours, as its signers saw it, with what is seen of it now.
pub(super) fn proved<'a>(
    context: &Context<'a>,
    aim: &Aim,
) -> Result<(Target, (&'a ObservedGuest, &'a GuestFacts)), Stays> {
    let Aim::Guest { uid, fingerprint, .. } = aim else {
        return Err(refused(ErrorCode::TargetKind, "the job names no guest"));
    };
    at_rest(context, *uid)?;
    let target = provably_ours(context, *uid)?;
    let changed = |why: String| refused(ErrorCode::TargetChanged, why);
    let record = context.inputs.records.guests.iter().find(|record| record.uid == *uid);
    let known = record.map(|record| (&target.name, &record.customer, target.vmid));
    same_guest(aim, known).map_err(|why| changed(why.to_string()))?;
    let seen = context.inputs.observed.guests.get(&target.vmid).ok_or(Stays::Waits)?;
    let Detail::Known(facts) = &seen.detail else { return Err(Stays::Waits) };
    same_volumes(fingerprint, facts)?;
    Ok((target, (seen, facts)))
}

/// Its volumes, all of them and no others.
pub(super) fn same_volumes(fingerprint: &Fingerprint, facts: &GuestFacts) -> Result<(), Stays> {
    let volumes = facts.volumes.iter().map(ToString::to_string).collect();
    if fingerprint.volumes == volumes {
        return Ok(());
    }
    let text = "its volumes are not those that the operator saw: look again and sign anew";
    Err(refused(ErrorCode::TargetChanged, text))
}
