//! A guest that the document names and that is not there.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::report::GuestStatus;

use super::placement::Placement;
use super::schedule::conditions::times;
use super::{Action, Context, Judged, address, adopt, golden, growth, network, passes, placement, vmid};
use crate::gate::Verdict;
use crate::gate::pending_approval::{PendingApproval, Remedy};
use crate::model::observed::VmidFact;
use crate::operation::{Image, Operation, Provision, Source, VmidRequest};

pub(super) fn judge(context: &Context<'_>, guest: &DesiredGuest) -> Judged {
    let judged = Judged::new(GuestStatus::Absent);
    let policy = context.inputs.policy;
    if let Some(vmid) = context.marked(guest.uid) {
        let text = format!(
            "guest {vmid} says it is this one, but our records do not know it: an operator must adopt it"
        );
        let mut judged = judged.with(ErrorCode::ForeignGuest, text);
        judged.held.extend(adopt::held(context, guest, vmid));
        return judged;
    }
    let placed = match placed(context, guest) {
        Ok(placed) => placed,
        Err((code, text)) => return judged.with(code, text),
    };
    let number = match intended(context, guest) {
        Ok(number) => number,
        Err((code, text)) => {
            let mut judged = judged.with(code, text);
            let strangers = guest.vmid.filter(|vmid| context.recorded(*vmid).is_none());
            judged.held.extend(strangers.and_then(|vmid| adopt::held(context, guest, vmid)));
            return judged;
        }
    };
    let (golden, sha256) = match golden::archive(context, &guest.golden) {
        Ok(found) => found,
        Err((code, text)) => {
            let mut judged = judged.with(code, text);
            judged.held.extend((code == ErrorCode::GoldenUnapproved).then(|| unnamed(guest)));
            return judged;
        }
    };
    if let Some(text) = golden::too_large(context.inputs, guest) {
        return judged.with(ErrorCode::Range, text);
    }
    let change = growth::of_new(guest, &placed);
    let operation = Operation::Provision(Box::new(Provision {
        guest: guest.clone(),
        number,
        source: Source::Image(Image {
            archive: golden.archive.clone(),
            sha256: sha256.clone(),
            file: golden.file.clone(),
        }),
        pool: policy.pool.clone(),
        storage: placed.root,
        volume_storages: placed.volumes,
        bulk_storage: policy.bulk_storage.clone(),
        backup_storage: policy.backup_storage.clone(),
    }));
    match passes(context, &operation.effects()) {
        Verdict::Free => {}
        Verdict::NeedsSignature(reason) => {
            let text =
                format!("golden {}, sha256 {}, is not approved on this box", guest.golden, sha256.as_str());
            let mut judged = judged.with(ErrorCode::GoldenUnapproved, text);
            judged.held.push(golden::held(guest, &sha256, reason));
            return judged;
        }
        Verdict::Forbidden(why) => return judged.with(ErrorCode::Forbidden, why),
    }
    if let Some((tried, until)) = context.waits(guest.uid, OperationKind::Provision) {
        let text =
            format!("making it failed {}, next try at {until:.0}: {}", times(tried.failed), tried.message);
        return judged.with(ErrorCode::Unavailable, text);
    }
    let growth = match growth::judge(context, (guest, None), change) {
        Ok(growth) => growth,
        Err(refused) => return growth::reported(judged, (guest, None), vec![refused]),
    };
    if let Some(growth) = &growth {
        growth::take(context, guest, growth);
    }
    if let Operation::Provision(provision) = &operation {
        vmid::promise(context, guest.uid, &provision.number);
    }
    let reason = "the document names it and it is not there".to_owned();
    Judged { action: Some(Box::new(Action { operation, reason, growth })), ..judged }
}

/// Where its disks are made; or what this host cannot give it, whatever its number.
fn placed(context: &Context<'_>, guest: &DesiredGuest) -> Result<Placement, (ErrorCode, String)> {
    let policy = context.inputs.policy;
    if guest.network.bridge != policy.bridge {
        let text = format!(
            "the agent was given the bridge {}, not {}: correct the document, or the settings on the box",
            policy.bridge, guest.network.bridge
        );
        return Err((ErrorCode::Forbidden, text));
    }
    if let Some(why) = network::too_large(context.inputs, guest) {
        return Err((ErrorCode::Range, format!("{why}; it is not made until then")));
    }
    if let Some(why) = address::taken(context.inputs, guest) {
        return Err((ErrorCode::AddressTaken, format!("{why}; it is not made until then")));
    }
    placement::whole(context.inputs, guest)
}

fn intended(context: &Context<'_>, guest: &DesiredGuest) -> Result<VmidRequest, (ErrorCode, String)> {
    let inputs = context.inputs;
    let Some(vmid) = guest.vmid else {
        return vmid::any(context, guest.uid, None);
    };
    let foreign = |owner: String| {
        let text = format!(
            "VMID {vmid} is {owner}: it is not touched; take the number out of the document or choose another"
        );
        Err((ErrorCode::VmidForeign, text))
    };
    if let Some(other) = context.recorded(vmid).filter(|other| *other != guest.uid) {
        return foreign(format!("our guest {other}'s"));
    }
    if let Some(seen) = inputs.observed.guests.get(&vmid) {
        return foreign(format!("taken by {:?}, which is not ours", seen.name));
    }
    match inputs.observed.vmids.get(&vmid) {
        Some(VmidFact::Free) => Ok(VmidRequest::Exactly(vmid)),
        Some(VmidFact::Taken) => foreign("taken by a guest that we may not see".to_owned()),
        Some(VmidFact::Unknown) | None => {
            let text = format!("whether VMID {vmid} is free is not known: it is asked again");
            Err((ErrorCode::Unavailable, text))
        }
    }
}

/// No operator can sign for bytes that do not exist.
fn unnamed(guest: &DesiredGuest) -> PendingApproval {
    PendingApproval {
        guest: guest.uid,
        effect: format!("make guest {} from golden {}", guest.name, guest.golden),
        reason: "no archive of this golden is named on this box",
        remedy: Remedy::ByHand("root on this box names its archive in [[golden]] of agent.toml"),
    }
}
