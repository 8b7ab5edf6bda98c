//! Unknown guests: the job draft for adoption, and its outcome.
//!
//! What comes in: the guest as it is seen, in our pool, and what was signed for. What goes out: the operation, or why
//! there is none; and the draft for the operator who signs. The number must be one that a document could have got for
//! this guest: of the range, or named for it. Deliberately absent: taking over by a mark alone. Anyone who may write on
//! the node can write a mark.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::{GuestName, GuestUid, Vmid};
use holdfast_protocol::job::act::{Act, args};
use holdfast_protocol::job::{Fingerprint, Target as Aim};
use holdfast_trust::Accepted;

use super::proved_guest::{Stays, refused};
use super::signed_state::{action, at_rest, same_volumes};
use super::{Action, Context, Inputs};
use crate::gate::adoption::judge_bridges;
use crate::gate::job_validation::stranger;
use crate::gate::pending_approval::{PendingApproval, Remedy, upon};
use crate::gate::warrant::Warrant;
use crate::model::mark::Mark;
use crate::model::observed::{Detail, GuestFacts, Sight};
use crate::operation::{Adopt, Operation};

pub(super) fn begin(inputs: &Inputs<'_>, job: &Accepted) -> Result<Action, Stays> {
    let context = Context::new(inputs);
    let aim = &job.payload().target;
    let Aim::Guest { uid, vmid: Some(vmid), fingerprint } = aim else {
        return Err(refused(ErrorCode::TargetKind, "the job names no guest by its number"));
    };
    at_rest(&context, *uid)?;
    let place = inputs.records.guests.binary_search_by_key(uid, |record| record.uid);
    let record = place.ok().and_then(|place| inputs.records.guests.get(place));
    stranger(aim, record.map(|record| &record.place))
        .map_err(|why| refused(ErrorCode::TargetChanged, why.to_string()))?;
    if let Some(why) = number(&context, *uid, *vmid) {
        return Err(refused(ErrorCode::VmidForeign, why));
    }
    let facts = seen(&context, *vmid, fingerprint)?;
    if let Some(why) = obstacle(&context, *uid, facts) {
        return Err(why);
    }
    same_volumes(fingerprint, facts)?;
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
    let adopt = Adopt::new(warrant, inputs.policy.bridge.clone()).map_err(|error| fault(&error))?;
    action(&context, job, Operation::AdoptGuest(Box::new(adopt)))
}

/// The guest under that number, by its name. In our pool, or it would not be seen.
fn seen<'a>(context: &Context<'a>, vmid: Vmid, fingerprint: &Fingerprint) -> Result<&'a GuestFacts, Stays> {
    let observed = context.inputs.observed;
    let Some(seen) = observed.guests.get(&vmid) else {
        if observed.sight != Sight::Proved {
            return Err(Stays::Waits);
        }
        let pool = &context.inputs.policy.pool;
        let text = format!(
            "no guest {vmid} is in the pool {pool}: root puts it there (`pvesh set /pools/{pool} --vms {vmid}`), then sign anew"
        );
        return Err(refused(ErrorCode::NotFound, text));
    };
    let Detail::Known(facts) = &seen.detail else { return Err(Stays::Waits) };
    if seen.lock.is_some() {
        return Err(Stays::Waits);
    }
    if seen.name == fingerprint.name.as_str() {
        return Ok(facts);
    }
    let text = format!("it is called {:?}, not {}: look again and sign anew", seen.name, fingerprint.name);
    Err(refused(ErrorCode::TargetChanged, text))
}

/// Why this number is not one for this guest.
fn number(context: &Context<'_>, uid: GuestUid, vmid: Vmid) -> Option<String> {
    let inputs = context.inputs;
    if let Some(other) = context.recorded(vmid).filter(|other| *other != uid) {
        return Some(format!("VMID {vmid} is our guest {other}'s"));
    }
    if inputs.records.copies.iter().any(|copy| copy.vmid == vmid) {
        return Some(format!(
            "guest {vmid} is a copy that was restored beside its guest: it is no guest of its own"
        ));
    }
    let range = inputs.policy.range;
    let in_range = vmid >= range.first() && vmid <= range.last();
    let named = inputs.desired.iter().any(|guest| guest.uid == uid && guest.vmid == Some(vmid));
    (!in_range && !named).then(|| {
        format!("VMID {vmid} is outside the agent's range, and no document names it for this guest: name it there first")
    })
}

/// Why this guest is not taken over, whatever signature there is.
fn obstacle(context: &Context<'_>, uid: GuestUid, facts: &GuestFacts) -> Option<Stays> {
    match facts.mark {
        Mark::None => {}
        Mark::Of(other) if other == uid => {}
        Mark::Of(_) | Mark::Copy { .. } | Mark::Broken => {
            let text = "it carries another mark: it is another guest's, a copy's, or was changed by hand";
            return Some(refused(ErrorCode::ForeignGuest, text));
        }
    }
    if let Some(why) = &facts.alien {
        return Some(refused(ErrorCode::Forbidden, why.clone()));
    }
    let bridges = judge_bridges(&facts.bridges, &context.inputs.policy.bridge);
    bridges.err().map(|why| refused(ErrorCode::Forbidden, why.to_string()))
}

/// What an operator would sign to take over the guest under a number as the one that the document names.
pub(super) fn held(context: &Context<'_>, guest: &DesiredGuest, vmid: Vmid) -> Option<PendingApproval> {
    let seen = context.inputs.observed.guests.get(&vmid)?;
    let Detail::Known(facts) = &seen.detail else { return None };
    let remedy = match (seen.name.parse::<GuestName>(), obstacle(context, guest.uid, facts)) {
        (_, Some(_)) => {
            Remedy::ByHand("no signature takes this one over: look at it on the node, or name another number")
        }
        (Err(_), None) => Remedy::ByHand("its name is none that a job can carry: rename it on the node"),
        (Ok(name), None) => {
            let (customer, golden) = (guest.customer.clone(), guest.golden.clone());
            let act = Act::AdoptGuest(args::AdoptGuest { customer, golden });
            let volumes = facts.volumes.iter().map(ToString::to_string).collect();
            Remedy::Sign(upon(act, (guest.uid, vmid), (name, None), volumes))
        }
    };
    Some(PendingApproval {
        guest: guest.uid,
        effect: format!("take over guest {vmid} ({}) as {} of {}", seen.name, guest.name, guest.customer),
        reason: "our records do not know this guest",
        remedy,
    })
}
