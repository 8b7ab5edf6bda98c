//! The check of a copy that is signed to replace its guest.
//!
//! What comes in: the guest, proved to be the one that was signed for, and the copy as our records and the last look have it.
//! What goes out: the operation, or why there is none. Deliberately absent: changing anything; the operation proves all of it
//! again on both.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::SeenCopy;
use holdfast_protocol::job::act::args;
use holdfast_protocol::report::Running;
use holdfast_trust::Accepted;

use super::proved_guest::{Stays, refused};
use super::signed_state::same_volumes;
use super::{Context, bulk};
use crate::gate::job_validation::whole_copy;
use crate::gate::warrant::Warrant;
use crate::model::mark::Mark;
use crate::model::observed::{Detail, GuestFacts};
use crate::model::records::{BackupWhy, Origin, RestoredCopyRecord, VolumeId};
use crate::operation::swap_guest::judge_left;
use crate::operation::{Backup, Operation, SwapGuest, Target};

pub(super) fn build(
    context: &Context<'_>,
    job: &Accepted,
    args: &args::SwapGuest,
    (guest, facts): (Target, &GuestFacts),
) -> Result<Operation, Stays> {
    let (record, copy) = copy_as_signed(context, &guest, &args.copy)?;
    if record.origin == Origin::Rebased {
        let text = format!(
            "copy {} is {} as it was before it was put on a newer image: its volumes and its token are not with it, so it is not \
             put back: start it unplugged and read what is needed from it by hand",
            record.vmid, guest.name
        );
        return Err(refused(ErrorCode::Unsupported, text));
    }
    let left = left(facts, copy);
    let named = args.leaves.iter().map(|volume| VolumeId::new(volume.as_str())).collect();
    judge_left(&named, &left).map_err(|why| refused(ErrorCode::Forbidden, why.to_string()))?;
    let (inputs, uid) = (context.inputs, guest.uid);
    let backup = inputs.policy.backup_storage.clone().map(|storage| Backup {
        target: Target { vmid: record.vmid, ..guest },
        leaves_out: bulk::leaves_out(inputs, uid, &storage),
        storage,
        why: BackupWhy::First,
        due: None,
        key: None,
    });
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
    let bridge = inputs.policy.bridge.clone();
    let swap = SwapGuest::new(warrant, record.made_by, bridge, backup).map_err(|error| fault(&error))?;
    Ok(Operation::SwapGuest(Box::new(swap)))
}

/// A stopped copy of a guest, as its signers saw it.
pub(super) fn copy_as_signed<'a>(
    context: &Context<'a>,
    guest: &Target,
    signed: &SeenCopy,
) -> Result<(&'a RestoredCopyRecord, &'a GuestFacts), Stays> {
    let (inputs, vmid) = (context.inputs, signed.vmid);
    let changed = |text: String| refused(ErrorCode::TargetChanged, text);
    let of_guest = |record: &&RestoredCopyRecord| record.guest == guest.uid;
    let copies: Vec<RestoredCopyRecord> = inputs.records.copies.iter().filter(of_guest).cloned().collect();
    whole_copy(vmid, &copies).map_err(|why| refused(why.code(), why.to_string()))?;
    let record = inputs.records.copies.iter().find(|record| record.vmid == vmid).ok_or(Stays::Waits)?;
    let seen = inputs.observed.guests.get(&vmid).ok_or(Stays::Waits)?;
    let Detail::Known(facts) = &seen.detail else { return Err(Stays::Waits) };
    if facts.mark != (Mark::Copy { of: guest.uid, by: record.made_by }) {
        return Err(changed(format!("guest {vmid} does not carry the mark of a copy of {}", guest.name)));
    }
    let fingerprint = &signed.fingerprint;
    if seen.name != fingerprint.name.as_str() {
        return Err(changed(format!("copy {vmid} is called {:?}, not {}", seen.name, fingerprint.name)));
    }
    same_volumes(fingerprint, facts)?;
    match seen.run {
        Running::Stopped => {}
        Running::Unknown => return Err(Stays::Waits),
        Running::Running => {
            let text = format!("copy {vmid} does not stand still: stop it first, and sign anew");
            return Err(refused(ErrorCode::Locked, text));
        }
    }
    if seen.lock.is_some() { Err(Stays::Waits) } else { Ok((record, facts)) }
}

/// Mounted volumes of the guest at whose paths the copy has nothing.
fn left(guest: &GuestFacts, copy: &GuestFacts) -> BTreeSet<VolumeId> {
    let paths: BTreeSet<&str> = copy.mounts.values().map(|mount| mount.path.as_str()).collect();
    let gone = guest.mounts.values().filter(|mount| !paths.contains(mount.path.as_str()));
    gone.filter_map(|mount| mount.volume.clone()).collect()
}
