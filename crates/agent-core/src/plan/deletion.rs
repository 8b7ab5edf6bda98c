//! The judgement of a signed deletion of one backup.
//!
//! A backup is removed only where another one of the guest is on the same storage, since a list without any proves
//! nothing. So no job removes the last one on a storage. What else would be lost with it must have been signed for by
//! name.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::args;
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;
use holdfast_protocol::storage::report::PrunedBy;
use holdfast_trust::Accepted;

use super::Context;
use super::proved_guest::{Stays, refused};
use super::schedule::facts::backups_of;
use crate::gate::deletion::{losses, words};
use crate::gate::retention::taken_at;
use crate::gate::warrant::Warrant;
use crate::model::observed::BackupListing;
use crate::operation::{Deletion, Operation, PruneBackup, PruneBy, Target};

pub(super) fn build(
    context: &Context<'_>,
    job: &Accepted,
    args: &args::DeleteBackup,
    target: Target,
) -> Result<Operation, Stays> {
    let inputs = context.inputs;
    let fault = |error: &dyn std::error::Error| refused(ErrorCode::Internal, error.to_string());
    let backups = backups_of(inputs.records, target.uid);
    let name = args.archive.as_str();
    let goes = backups.iter().find(|one| one.archive.as_str() == name && one.missing_since.is_none());
    let goes = goes.ok_or_else(|| {
        refused(ErrorCode::NotFound, format!("{name} is no backup of it that is on record and listed"))
    })?;
    if goes.vmid != target.vmid {
        let text =
            format!("{name} lies under the former VMID {}, where this agent may delete nothing", goes.vmid);
        return Err(refused(ErrorCode::Unsupported, text));
    }
    // A test reads an archive, and holds no guest's lane.
    if inputs.records.open.iter().any(|open| open.kind == OperationKind::RestoreTest) {
        return Err(Stays::Waits);
    }
    let Some(BackupListing::Listed { protected, pruned_by, .. }) =
        inputs.observed.listings.get(&goes.storage)
    else {
        return Err(Stays::Waits);
    };
    if protected.contains(&goes.archive) {
        let text = format!("{name} is protected in Proxmox: somebody wants to keep it; lift that first");
        return Err(refused(ErrorCode::Locked, text));
    }
    if *pruned_by == Some(PrunedBy::Server) {
        let text =
            format!("the server behind {} lets this agent remove nothing: delete {name} there", goes.storage);
        return Err(refused(ErrorCode::Unsupported, text));
    }
    let copy_of = backups.iter().filter(|one| {
        one.storage == goes.storage
            && one.vmid == goes.vmid
            && one.archive != goes.archive
            && one.missing_since.is_none()
    });
    let stays = copy_of.max_by_key(|one| taken_at(one)).ok_or_else(|| {
        let text = format!(
            "{name} is the only backup of it on {}: have another one taken there first",
            goes.storage
        );
        refused(ErrorCode::Forbidden, text)
    })?;
    let lost = losses(backups, goes, &inputs.records.proofs);
    if !lost.is_subset(&args.loses) {
        let text = format!(
            "{name} stays: with it would go what was not signed for ({}); name it with --loses and sign anew",
            words(lost.difference(&args.loses))
        );
        return Err(refused(ErrorCode::Forbidden, text));
    }
    let warrant = Warrant::of(job).map_err(|error| fault(&error))?;
    let by = PruneBy::Signature(Deletion::new(warrant).map_err(|error| fault(&error))?);
    Ok(Operation::PruneBackup(PruneBackup {
        target,
        archive: goes.archive.clone(),
        storage: goes.storage.clone(),
        tier: goes.tier.unwrap_or(Tier::Local),
        taken_by: goes.taken_by,
        successor: stays.archive.clone(),
        judged_at: inputs.now,
        by,
    }))
}
