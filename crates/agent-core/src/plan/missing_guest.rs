//! The plan for guests of ours that are gone.
//!
//! Gone is more than not seen. Either the node's task list shows that its number was destroyed since we made it. Or
//! none of its volumes is listed, our right to see its number was proved, and the number is free or another guest's.
//! Then it is made again from the best of its own backups (`survivor`), under another number: the old one is never
//! reclaimed, and a guest that has it is never touched. Its disks are placed by the usual rules (`disks`). It keeps its
//! hardware address where no other guest can have it (`docs/adr/0042`). One whose volumes are still listed lost its
//! configuration alone: that is reported, with what root does. Deliberately absent: conclusions from a number of a
//! guest that we may not see, which may be our own guest outside its pool.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, OperationId, Vmid};
use holdfast_protocol::operation::OperationKind;

use super::made::Made;
use super::recovery_source::{self, Nothing};
use super::schedule::conditions::times;
use super::{Action, Context, Judged, address, disks, growth, lost_host, network, passes, placement, vmid};
use crate::gate::Verdict;
use crate::model::hardware::HardwareAddress;
use crate::model::mark::Mark;
use crate::model::observed::{Detail, LossProof, Observed, ObservedGuest, Sight};
use crate::model::records::{BackupRecord, Place, Records, VolumeId};
use crate::operation::{MissingGuest, Operation, Provision, Source, Whence};

/// A guest that may be gone, with the facts to check it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub guest: GuestUid,
    pub vmid: Vmid,
    pub volumes: BTreeSet<VolumeId>,
    /// The operation that made it.
    pub by: OperationId,
    /// Whether we see another guest under its number.
    pub newcomer: Newcomer,
}

/// The guest under a number that was another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newcomer {
    /// Another guest, by mark and volumes.
    Other,
    /// A guest without our mark, on volumes of the same names: Proxmox names them by number and place, so this may be a
    /// newcomer as well as our own guest whose mark was taken off.
    SameNames,
    /// No guest that we see.
    None,
}

/// The guests that may be gone, by this observation. Usually there is none.
#[must_use]
pub fn suspects(records: &Records, observed: &Observed) -> Vec<Suspect> {
    if observed.sight != Sight::Proved {
        return Vec::new();
    }
    let suspect = |record: &crate::model::records::GuestRecord| {
        let Place::Made { vmid, volumes, by } = &record.place else { return None };
        let newcomer = match observed.guests.get(vmid).map(|seen| &seen.detail) {
            None => Newcomer::None,
            Some(Detail::Unknown(_)) => return None,
            Some(Detail::Known(facts)) => {
                // A mark that was changed by hand may still be its own.
                let anothers = match facts.mark {
                    Mark::Of(uid) => uid != record.uid,
                    Mark::None | Mark::Copy { .. } => true,
                    Mark::Broken => false,
                };
                match (anothers, facts.volumes.is_disjoint(volumes)) {
                    (false, _) => return None,
                    // Where no volumes are known, none can be missed.
                    (true, true) if !volumes.is_empty() => Newcomer::Other,
                    (true, _) => Newcomer::SameNames,
                }
            }
        };
        Some(Suspect { guest: record.uid, vmid: *vmid, volumes: volumes.clone(), by: *by, newcomer })
    };
    records.guests.iter().filter_map(suspect).collect()
}

/// What is done about it, in addition to what was reported already.
pub(super) fn judge(context: &Context<'_>, made: &Made<'_>, judged: Judged) -> Judged {
    let (uid, vmid) = (made.record.uid, made.vmid);
    if let Some(volumes) = context.inputs.observed.orphaned.get(&uid) {
        return judged.with(ErrorCode::NeedsSignature, without_configuration(context, made, volumes));
    }
    let Some(loss) = context.inputs.observed.lost.get(&uid) else {
        return judged;
    };
    let Some(guest) = made.guest else {
        let text = "it is gone with its volumes, and the document does not name it: nothing is done";
        return judged.with(ErrorCode::NotFound, text);
    };
    let promise = context.inputs.records.protections.get(&uid).map(AsRef::as_ref);
    let choice = match recovery_source::choose(&loss.remains, promise, &context.inputs.observed.listings) {
        Ok(choice) => choice,
        Err(nothing) => {
            let numbers = std::iter::once(vmid).chain(context.inputs.records.former_vmids(uid, Some(vmid)));
            let (code, text) = nothing_made(nothing, lost_host::whence(context.inputs, made.record), numbers);
            return judged.with(code, text);
        }
    };
    let backup = choice.backup;
    if let Some((tried, until)) = context.waits(uid, OperationKind::Provision) {
        let text = format!(
            "it is gone; making it again failed {}, next try at {until:.0}: {}",
            times(tried.failed),
            tried.message
        );
        return judged.with(ErrorCode::Unavailable, text);
    }
    let policy = context.inputs.policy;
    if let Some(why) = address::taken(context.inputs, guest) {
        return judged.with(ErrorCode::AddressTaken, format!("it is gone, and {why}; it comes back then"));
    }
    let placed = match placement::whole(context.inputs, guest) {
        Ok(placed) => placed,
        Err((code, text)) => return judged.with(code, format!("it is gone, and {text}")),
    };
    let Place::Made { by, .. } = &made.record.place else { return judged };
    // What a list showed under a former VMID may be another guest's, and is never pruned: it is not written to either.
    let former = loss.remains.iter().map(|one| one.backup.vmid);
    let number = match vmid::any(context, guest.uid, former.chain([vmid])) {
        Ok(number) => number,
        Err((code, text)) => return judged.with(code, format!("it is gone, and {text}")),
    };
    let whence = lost_host::whence(context.inputs, made.record);
    let (source, volumes) = (backup.archive.clone(), made.volumes.clone());
    let hardware = kept_address(context.inputs.observed, loss.proof, backup, (vmid, whence));
    let disks = match disks::again(context.inputs, guest, backup) {
        Ok(disks) => disks,
        Err((code, text)) => return judged.with(code, format!("it is gone, and {text}")),
    };
    let reported = disks::reported(context.inputs, guest, (backup, disks.as_ref()), (vmid, made.volumes));
    let operation = Operation::Provision(Box::new(Provision {
        guest: network::carried(context.inputs, guest),
        number,
        source: Source::Backup(Box::new(MissingGuest {
            backup: source,
            vmid,
            volumes,
            by: *by,
            whence,
            hardware,
            disks,
        })),
        pool: policy.pool.clone(),
        storage: placed.root,
        volume_storages: placed.volumes,
        bulk_storage: policy.bulk_storage.clone(),
        backup_storage: policy.backup_storage.clone(),
    }));
    if let Verdict::NeedsSignature(why) | Verdict::Forbidden(why) = passes(context, &operation.effects()) {
        return judged.with(ErrorCode::Forbidden, why);
    }
    if let Operation::Provision(provision) = &operation {
        vmid::promise(context, guest.uid, &provision.number);
    }
    let mut reason =
        format!("it is gone from VMID {vmid} with its volumes: it is made again from {}", backup.archive);
    if !choice.passed_over.is_empty() {
        reason.push_str(&format!("; {}", choice.passed_over.join("; ")));
    }
    reason.push_str(&match &hardware {
        Some(hardware) => format!("; it keeps its hardware address {hardware}"),
        None => "; its hardware address is a new one".to_owned(),
    });
    reason.push_str(&reported);
    let growth = Some(Box::new(growth::of_lost(context.inputs, guest)));
    Judged { action: Some(Box::new(Action { operation, reason, growth })), ..judged }
}

/// The hardware address under which its backup was taken, where no other guest can have it: the very container that had
/// it was destroyed on this host, and no guest that we see has it now. One that may live on, here or elsewhere, would
/// take the other's frames from it, and neither would say so (`docs/adr/0042`).
fn kept_address(
    observed: &Observed,
    proof: LossProof,
    backup: &BackupRecord,
    (vmid, whence): (Vmid, Whence),
) -> Option<HardwareAddress> {
    let address = backup.hardware?;
    let is_dead = proof == LossProof::Destroyed && whence == Whence::ThisBox && backup.vmid == vmid;
    let has_it = |seen: &ObservedGuest| match &seen.detail {
        Detail::Known(facts) => facts.hardware.contains(&address),
        Detail::Unknown(_) => true,
    };
    (is_dead && !observed.guests.values().any(has_it)).then_some(address)
}

/// Its configuration went, and its disks did not: what a backup holds would be older than they are. Either way out is a
/// person's.
fn without_configuration(context: &Context<'_>, made: &Made<'_>, remaining: &BTreeSet<VolumeId>) -> String {
    let vmid = made.vmid;
    let volumes: Vec<&str> = remaining.iter().map(VolumeId::as_str).collect();
    let backups = context.inputs.records.backups.iter().filter(|backup| backup.guest == made.record.uid);
    let copy = backups
        .filter(|backup| backup.missing_since.is_none())
        .max_by_key(|backup| backup.taken_at)
        .map(|backup| format!(" (a copy of it is in {})", backup.archive))
        .unwrap_or_default();
    format!(
        "the configuration of guest {vmid} is gone, but not its data: {} still there, and nothing is made in its place; put \
         /etc/pve/lxc/{vmid}.conf back on the node{copy}; or, should a backup be wanted instead, free what is there with \
         `pvesm free VOLUME`",
        are(&volumes)
    )
}

fn are(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

/// Why nothing is made in its place.
fn nothing_made(
    nothing: Nothing,
    whence: Whence,
    numbers: impl Iterator<Item = Vmid>,
) -> (ErrorCode, String) {
    match nothing {
        Nothing::NoBackup if whence == Whence::LostBox => (
            ErrorCode::Unavailable,
            format!(
                "no backup of it was found: it comes back once an off-site target is attached here whose entry in Proxmox has \
                 the key that was signed for, and lists one under a VMID that it had ({})",
                numbers.map(|vmid| vmid.to_string()).collect::<Vec<_>>().join(", ")
            ),
        ),
        Nothing::NoBackup => (
            ErrorCode::NeedsSignature,
            "it is gone with its volumes, and no backup of it is on record: nothing is made in its place; restore it by \
             hand, or name a new guest in the document"
                .to_owned(),
        ),
        Nothing::Dark(why) => (
            ErrorCode::Unavailable,
            format!(
                "it is gone, and is made again once one of its backups can be had: {}; bring the storage back",
                why.join("; ")
            ),
        ),
        Nothing::Unfit(why) => (
            ErrorCode::NeedsSignature,
            format!(
                "it is gone with its volumes, and none of its backups will do: {}; nothing is made in its place; restore it by \
                 hand, or name a new guest in the document",
                why.join("; ")
            ),
        ),
    }
}
