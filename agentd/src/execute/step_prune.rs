//! Removing a backup by the retention in force, or by a signature.
//!
//! Everything is judged once more before the call. Our records name the archive as one that we took, and the promise in
//! force allows its removal. The clock is the one it was judged by, and the storage lists it next to a newer one. A
//! list without that newer one proves nothing, neither before nor after.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::job::act::BackupLoss;
use holdfast_protocol::operation::OperationKind;
use jiff::SignedDuration;

use super::context::{Checked, Context, Started, StepOutput};
use super::trouble::StepError;
use crate::gate::deletion::{losses, words};
use crate::gate::retention::judge;
use crate::gate::warrant::road;
use crate::gate::{Approved, Effect, Provenance, Prune, Verdict, gate};
use crate::model::clock_trust::Synchrony;
use crate::model::records::VolumeId;
use crate::operation::log::Finding;
use crate::operation::{Deletion, Operation, PruneBackup, PruneBy};
use crate::plan::schedule::{backups_of, promised};
use crate::port::pve::prune::{ListedArchive, OwnBackup};
use crate::port::pve::read::StoredVolume;
use crate::port::pve::{ContentKind, Role};

/// What was judged longer ago is judged anew, in another operation.
const JUDGED_FOR: SignedDuration = SignedDuration::from_hours(1);

fn spec<'a>(context: &'a Context<'_>) -> Result<&'a PruneBackup, StepError> {
    match &context.progress.operation {
        Operation::PruneBackup(prune) => Ok(prune),
        other => Err(StepError::fault(format!("a {} prunes nothing", other.kind().as_str()))),
    }
}

/// What the storage lists of the guest's backups.
async fn list(context: &Context<'_>) -> Result<Vec<StoredVolume>, StepError> {
    let PruneBackup { target, storage, .. } = spec(context)?;
    let (pve, vmid) = (&context.ports.pve, Some(target.vmid));
    Ok(pve.storage_content(Role::Operate, storage, ContentKind::Backup, vmid).await?)
}

fn find(context: &Context<'_>, list: &[StoredVolume]) -> Result<ListedArchive, StepError> {
    let PruneBackup { target, storage, archive, successor, .. } = spec(context)?;
    Ok(OwnBackup::find(target.vmid, storage, (archive, successor), list))
}

pub(super) async fn probe(context: &Context<'_>) -> Result<Checked, StepError> {
    match find(context, &list(context).await?)? {
        ListedArchive::Gone => Ok(Checked::Happened(StepOutput::fact(Finding::BackupGone))),
        ListedArchive::Listed(_) | ListedArchive::Protected => Ok(Checked::Not),
        ListedArchive::Unproved => {
            let text = format!(
                "{} does not list the backup that is to stay: nothing is concluded from its list, and nothing removed",
                spec(context)?.storage
            );
            Err(StepError::again(ErrorCode::BackupMissing, text))
        }
    }
}

pub(super) async fn act(context: &Context<'_>) -> Result<Started, StepError> {
    let prune = spec(context)?;
    timely(context, prune).await?;
    let list = list(context).await?;
    match find(context, &list)? {
        ListedArchive::Listed(own) => {
            may_go(context, prune, &protected(&list)).await?;
            Ok(Started::Task(context.ports.pve.remove_backup(&own).await?))
        }
        ListedArchive::Gone => Ok(Started::Done),
        ListedArchive::Protected => {
            let text = format!(
                "{} is protected in Proxmox: somebody wants to keep it, and it is kept",
                prune.archive
            );
            Err(StepError::give_up(ErrorCode::Locked, text))
        }
        ListedArchive::Unproved => {
            let text = "the backup that is to stay is not listed any more: nothing is removed";
            Err(StepError::give_up(ErrorCode::BackupMissing, text))
        }
    }
}

fn protected(list: &[StoredVolume]) -> BTreeSet<VolumeId> {
    list.iter().filter(|row| row.protected).map(|row| VolumeId::new(&row.volid)).collect()
}

/// Nothing is pruned by a clock that is not synchronised, that is behind, or that jumped since the decision.
async fn timely(context: &Context<'_>, prune: &PruneBackup) -> Result<(), StepError> {
    // A removal by signature does not depend on a clock.
    if matches!(prune.by, PruneBy::Signature(_)) {
        return Ok(());
    }
    let age = context.ports.clock.now().duration_since(prune.judged_at).abs();
    if clock_is_kept(context).await? && age <= JUDGED_FOR {
        return Ok(());
    }
    let text =
        "the clock is not the one by which this was judged: nothing is removed until it is looked at again";
    Err(StepError::give_up(ErrorCode::ClockBehind, text))
}

/// Whether the clock is synchronised and not behind any time that was seen.
pub(super) async fn clock_is_kept(context: &Context<'_>) -> Result<bool, StepError> {
    let clock = &context.ports.clock;
    let status =
        context.ports.store.trust_state().await.map_err(|error| StepError::fault(error.to_string()))?;
    Ok(clock.synchrony().await == Synchrony::Kept && clock.now() >= status.latest)
}

/// The signature must be for this archive, and for everything that is lost with it now.
fn signed(
    prune: &PruneBackup,
    deletion: &Deletion,
    lost: Option<BTreeSet<BackupLoss>>,
) -> Result<(), StepError> {
    let warrant = deletion.warrant();
    let (archive, loses) = warrant.deletes().map_err(|error| StepError::fault(error.to_string()))?;
    let target = warrant.target();
    let same =
        *archive == prune.archive && (target.uid, target.vmid) == (prune.target.uid, prune.target.vmid);
    let kept = |why: String| {
        Err(StepError::give_up(ErrorCode::Forbidden, format!("{} is kept: {why}", prune.archive)))
    };
    match lost {
        None => kept("our records do not name it".to_owned()),
        Some(_) if !same => kept("another one was signed for".to_owned()),
        Some(lost) if !lost.is_subset(loses) => {
            let more = words(lost.difference(loses));
            kept(format!("with it would go what was not signed for ({more}): sign anew"))
        }
        Some(_) => match gate(&Effect::DeleteBackup, road(warrant), &Approved::default()) {
            Verdict::Free => Ok(()),
            Verdict::NeedsSignature(why) | Verdict::Forbidden(why) => kept(why.to_owned()),
        },
    }
}

/// Our own records must know the archive, and the promise in force now must allow its removal.
async fn may_go(
    context: &Context<'_>,
    prune: &PruneBackup,
    protected: &BTreeSet<VolumeId>,
) -> Result<(), StepError> {
    let ports = context.ports;
    let records = ports.store.records(Generation::NONE, ports.clock.now()).await;
    let records = records.map_err(|error| StepError::fault(error.to_string()))?;
    let uid = prune.target.uid;
    let backups = backups_of(&records, uid);
    let going = backups.iter().position(|backup| {
        backup.archive == prune.archive
            && backup.taken_by == prune.taken_by
            && backup.storage == prune.storage
    });
    if let PruneBy::Signature(deletion) = &prune.by {
        if records.open.iter().any(|open| open.kind == OperationKind::RestoreTest) {
            let text = format!(
                "{} is kept: a restore test reads backups now; sign anew when it is over",
                prune.archive
            );
            return Err(StepError::give_up(ErrorCode::Locked, text));
        }
        let goes = going.and_then(|place| backups.get(place));
        return signed(prune, deletion, goes.map(|goes| losses(backups, goes, &records.proofs)));
    }
    let promise = records.protections.get(&uid);
    let tier = promise.and_then(|promise| promised(promise).into_iter().find(|own| own.tier == prune.tier));
    let kept = tier.as_ref().and_then(|tier| tier.kept());
    let effect = going.zip(kept).and_then(|(place, kept)| {
        judge(backups, &kept, &records.proofs, protected, ports.clock.now()).into_iter().nth(place)?
    });
    // The path is the schedule's, the effect is as it is now: a retention that was raised meanwhile keeps it.
    let own = context.progress.operation.effects();
    let now = effect.map(Effect::PruneBackup);
    let free = |effect: &Effect| gate(effect, Provenance::Schedule, &Approved::default()) == Verdict::Free;
    if now.as_ref().is_some_and(free) && own.iter().all(free) {
        return Ok(());
    }
    let why = match effect {
        Some(Prune::NewestProved) => "it is the newest that was proved",
        Some(Prune::Last) => "it is the last one that protects",
        Some(Prune::Kept) => "the retention in force keeps it",
        Some(Prune::OnlyHolder) => "newer backups lack a volume that it holds",
        Some(Prune::OutsidePolicy) | None => "our records do not name it as one that may go",
    };
    Err(StepError::give_up(ErrorCode::Forbidden, format!("{} is kept: {why}", prune.archive)))
}
