//! Choosing a number: free in the whole cluster, and never used for another guest of ours.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, Vmid};

use super::attempt::{Acted, Context, Learnt};
use super::trouble::Trouble;
use crate::model::limits;
use crate::model::planted::{Bug, planted};
use crate::model::policy::VmidRange;
use crate::operation::log::Fact;
use crate::operation::{NumberWish, Operation};
use crate::port::pve::VmidUse;
use crate::port::store::guest::Reserved;

pub(super) async fn act(context: &Context<'_>) -> Result<Acted, Trouble> {
    if let Operation::RestoreTest(test) = &context.progress.operation {
        return throwaway(context, test.place.range).await;
    }
    let number = match &context.progress.operation {
        Operation::Provision(provision) => &provision.number,
        Operation::RestoreBeside(beside) => &beside.number,
        other => return Err(Trouble::fault(format!("a {} chooses no VMID", other.kind().as_str()))),
    };
    let uid = context.progress.operation.uid();
    let chosen = match number {
        NumberWish::Exactly(vmid) => {
            if take(context, uid, *vmid).await? {
                Some(*vmid)
            } else {
                let text =
                    format!("VMID {vmid} is taken by somebody else: it is not touched; choose another");
                return Err(Trouble::give_up(ErrorCode::VmidForeign, text));
            }
        }
        NumberWish::AnyOf { range, except } => any(context, uid, *range, except).await?,
    };
    let chosen = chosen.ok_or_else(|| {
        Trouble::give_up(
            ErrorCode::VmidRangeFull,
            "no free VMID is left in the range: widen vmid_range in the settings",
        )
    })?;
    Ok(Acted::Learnt(Learnt { facts: vec![Fact::Vmid(chosen)], note: Some(format!("VMID {chosen}")) }))
}

/// Numbers for throwaway guests are used again and again: nobody's identity hangs on them.
async fn throwaway(context: &Context<'_>, range: VmidRange) -> Result<Acted, Trouble> {
    for vmid in range.iter().take(limits::VMID_CANDIDATES) {
        if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
            let note = Some(format!("VMID {vmid}"));
            return Ok(Acted::Learnt(Learnt { facts: vec![Fact::Vmid(vmid)], note }));
        }
    }
    Err(Trouble::give_up(
        ErrorCode::VmidRangeFull,
        "no number is free for a test: look who has those of [scratch] vmid_range in the settings, or widen it",
    ))
}

/// Those reserved for this guest before come first, so that a repeat takes the same.
async fn any(
    context: &Context<'_>,
    uid: GuestUid,
    range: VmidRange,
    except: &[Vmid],
) -> Result<Option<Vmid>, Trouble> {
    let used = context.ports.store.used_vmids().await?;
    let in_range = |vmid: &Vmid| *vmid >= range.first() && *vmid <= range.last();
    let own = used.iter().filter(|(_, of)| *of == uid).map(|(vmid, _)| *vmid);
    let own: Vec<Vmid> = own.filter(in_range).filter(|vmid| !except.contains(vmid)).collect();
    let others = used.iter().filter(|_| !planted(Bug::ReuseNumber));
    let closed: BTreeSet<Vmid> = others.map(|(vmid, _)| *vmid).chain(except.iter().copied()).collect();
    let fresh = range.iter().filter(|vmid| !closed.contains(vmid)).take(limits::VMID_CANDIDATES);
    for vmid in own.into_iter().chain(fresh) {
        if take(context, uid, vmid).await? {
            return Ok(Some(vmid));
        }
    }
    Ok(None)
}

async fn take(context: &Context<'_>, uid: GuestUid, vmid: Vmid) -> Result<bool, Trouble> {
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Taken {
        return Ok(false);
    }
    Ok(context.ports.store.reserve_vmid(uid, vmid).await? == Reserved::Yes)
}
