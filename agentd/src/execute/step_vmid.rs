//! The step that chooses a VMID.
//!
//! In: the request of the operation. Out: a number, reserved for its guest. The lists of backups are also searched for
//! a number that the document names. While a backup server cannot be read, a new guest waits. A guest that comes back,
//! and a copy that operators signed for, do not wait (`docs/adr/0053`).

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, Vmid};

use super::backup_vmids::{self, BackupVmids};
use super::context::{Context, Started, StepOutput};
use super::trouble::StepError;
use crate::model::limits;
use crate::model::policy::VmidRange;
use crate::operation::log::Finding;
use crate::operation::{Operation, VmidRequest};
use crate::port::pve::VmidUse;
use crate::port::store::guest::Reserved;

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    if let Operation::RestoreTest(test) = &context.progress.operation {
        return scratch(context, test.place.range).await;
    }
    let number = match &context.progress.operation {
        Operation::Provision(provision) => &provision.number,
        Operation::RestoreCopy(copy_of) => &copy_of.number,
        Operation::RebaseGuest(rebase) => &rebase.successor.number,
        other => return Err(StepError::fault(format!("a {} chooses no VMID", other.kind().as_str()))),
    };
    let uid = context.progress.operation.uid();
    let (chosen, demoted) = match number {
        VmidRequest::Exactly(vmid) => {
            let backups = backup_vmids::read(context.ports).await?;
            let demoted = unread(context, &backups)?;
            no_one_elses(context, (uid, *vmid), &backups).await?;
            if take(context, uid, *vmid).await? {
                (Some(*vmid), demoted)
            } else {
                let text =
                    format!("VMID {vmid} is taken by somebody else: it is not touched; choose another");
                return Err(StepError::give_up(ErrorCode::VmidForeign, text));
            }
        }
        VmidRequest::AnyOf { range, except } => {
            let backups = backup_vmids::read(context.ports).await?;
            let demoted = unread(context, &backups)?;
            (any(context, uid, (*range, except), &backups).await?, demoted)
        }
    };
    let chosen = chosen.ok_or_else(|| {
        StepError::give_up(
            ErrorCode::VmidRangeFull,
            "no VMID is left in the range that is free and has no backups: widen vmid_range in the settings",
        )
    })?;
    let note = Some(format!("VMID {chosen}{demoted}"));
    Ok(Started::Learnt(StepOutput { facts: vec![Finding::Vmid(chosen)], note }))
}

/// Checks that no backups exist under a VMID which the document names. Those under an earlier VMID of this guest are
/// its own.
async fn no_one_elses(
    context: &Context<'_>,
    (uid, vmid): (GuestUid, Vmid),
    backups: &BackupVmids,
) -> Result<(), StepError> {
    let Some(storage) = backups.under.get(&vmid) else {
        return Ok(());
    };
    if context.ports.store.used_vmids().await?.contains(&(vmid, uid)) {
        return Ok(());
    }
    let text = format!(
        "backups lie under VMID {vmid} on {storage}, which no record of ours knows as this guest's: its own would be kept and \
         removed together with them; name another VMID in the document, or leave it out"
    );
    Err(StepError::give_up(ErrorCode::VmidForeign, text))
}

/// What is waited for before a number is chosen, or what is reported with it.
fn unread(context: &Context<'_>, backups: &BackupVmids) -> Result<String, StepError> {
    let is_new =
        matches!(&context.progress.operation, Operation::Provision(provision) if provision.lost().is_none());
    if let Some((server, why)) = backups.unread_servers().next().filter(|_| is_new) {
        let text = format!(
            "no VMID is chosen while backup server {server} cannot be read, since backups of another guest may lie there under \
             it ({why}): bring the server back, or have its target detached"
        );
        return Err(StepError::give_up(ErrorCode::Unavailable, text));
    }
    let names: Vec<&str> = backups.unread.keys().map(|storage| storage.as_str()).collect();
    Ok(if names.is_empty() {
        String::new()
    } else {
        format!("; not known whether backups lie under it on {}", names.join(", "))
    })
}

/// Numbers for scratch guests are used again and again: no guest's identity depends on them.
async fn scratch(context: &Context<'_>, range: VmidRange) -> Result<Started, StepError> {
    for vmid in range.iter().take(limits::VMID_CANDIDATES) {
        if context.ports.pve.vmid_use(vmid).await? == VmidUse::Free {
            let note = Some(format!("VMID {vmid}"));
            return Ok(Started::Learnt(StepOutput { facts: vec![Finding::Vmid(vmid)], note }));
        }
    }
    Err(StepError::give_up(
        ErrorCode::VmidRangeFull,
        "no number is free for a test: look who has those of [scratch] vmid_range in the settings, or widen it",
    ))
}

/// Those reserved for this guest before come first, so that a repeat takes the same one: backups under these are its
/// own.
async fn any(
    context: &Context<'_>,
    uid: GuestUid,
    (range, except): (VmidRange, &[Vmid]),
    backups: &BackupVmids,
) -> Result<Option<Vmid>, StepError> {
    let used = context.ports.store.used_vmids().await?;
    let in_range = |vmid: &Vmid| *vmid >= range.first() && *vmid <= range.last();
    let own = used.iter().filter(|(_, of)| *of == uid).map(|(vmid, _)| *vmid);
    let own: Vec<Vmid> = own.filter(in_range).filter(|vmid| !except.contains(vmid)).collect();
    let closed = used.iter().map(|(vmid, _)| *vmid).chain(except.iter().copied());
    let closed: BTreeSet<Vmid> = closed.chain(backups.under.keys().copied()).collect();
    let fresh = range.iter().filter(|vmid| !closed.contains(vmid)).take(limits::VMID_CANDIDATES);
    for vmid in own.into_iter().chain(fresh) {
        if take(context, uid, vmid).await? {
            return Ok(Some(vmid));
        }
    }
    Ok(None)
}

async fn take(context: &Context<'_>, uid: GuestUid, vmid: Vmid) -> Result<bool, StepError> {
    if context.ports.pve.vmid_use(vmid).await? == VmidUse::Taken {
        return Ok(false);
    }
    Ok(context.ports.store.reserve_vmid(uid, vmid).await? == Reserved::Yes)
}
