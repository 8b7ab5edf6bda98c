//! The next backup or scheduled snapshot to remove.
//!
//! Nothing is removed by a clock that is not steady, from a storage that did not answer, or where Proxmox refuses to
//! delete it. Nor is anything removed from a backup server that lets our token remove nothing: such a server prunes by
//! itself, which is reported. The rules are those of `gate/retention`, which are applied again before the removal is
//! sent.

use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Protection;
use holdfast_protocol::storage::report::PrunedBy;

use super::{Promised, ScheduleFacts};
use crate::gate::Prune;
use crate::gate::retention::{judge, snapshots, taken_at};
use crate::model::clock_trust::Steady;
use crate::model::observed::BackupListing;
use crate::model::records::BackupRecord;
use crate::operation::{ExpireSnapshot, ExpiryWhy, Operation, PruneBackup, PruneBy, Target};
use crate::plan::{Action, Context};

pub(super) fn next(
    context: &Context<'_>,
    known: &ScheduleFacts<'_>,
    promised: &Promised<'_>,
    target: impl FnOnce() -> Target,
) -> Option<Action> {
    let inputs = context.inputs;
    let kept = promised.kept()?;
    // A test reads an archive, and holds no guest's lane.
    let tested = inputs.records.open.iter().any(|open| open.kind == OperationKind::RestoreTest);
    if known.time.steady == Steady::No || tested {
        return None;
    }
    let Some(BackupListing::Listed { protected, .. }) = inputs.observed.listings.get(kept.target) else {
        return None;
    };
    let effects = judge(known.backups, &kept, &inputs.records.proofs, protected, known.time.at);
    let with = || known.backups.iter().zip(&effects);
    let stays = with().find(|(_, effect)| **effect == Some(Prune::Last)).map(|(backup, _)| backup)?;
    let may = |backup: &BackupRecord| {
        let listing = inputs.observed.listings.get(&backup.storage);
        let listed = matches!(listing, Some(BackupListing::Listed { protected, pruned_by, .. })
                if !protected.contains(&backup.archive) && *pruned_by != Some(PrunedBy::Server));
        // Under another number our token is not shown it; and a list proves something only about its own storage.
        listed && backup.vmid == stays.vmid && backup.storage == stays.storage
    };
    let going = with().filter(|(backup, effect)| **effect == Some(Prune::OutsidePolicy) && may(backup));
    let (oldest, _) = going.min_by_key(|(backup, _)| taken_at(backup))?;
    let target = target();
    if oldest.vmid != target.vmid || context.waits(known.guest, OperationKind::PruneBackup).is_some() {
        return None;
    }
    let operation = Operation::PruneBackup(PruneBackup {
        target,
        archive: oldest.archive.clone(),
        storage: oldest.storage.clone(),
        tier: promised.tier,
        taken_by: oldest.taken_by,
        successor: stays.archive.clone(),
        judged_at: inputs.now,
        by: PruneBy::Retention,
    });
    let reason =
        format!("the retention in force ({}) keeps {} no longer", promised.retention, oldest.archive);
    Some(Action { operation, reason, growth: None })
}

/// The snapshot to remove next, of those that the schedule took and no other.
pub(super) fn snapshot(
    context: &Context<'_>,
    known: &ScheduleFacts<'_>,
    promise: &Protection,
    target: impl FnOnce() -> Target,
) -> Option<Action> {
    if known.time.steady == Steady::No {
        return None;
    }
    let tier = promise.tiers.snapshot.as_ref();
    let oldest = snapshots(known.snapshots, tier, known.time.at).into_iter().next()?;
    let target = target();
    if oldest.vmid != target.vmid || context.waits(known.guest, OperationKind::ExpireSnapshot).is_some() {
        return None;
    }
    let reason = match tier {
        Some(tier) => format!("the retention in force ({}) keeps {} no longer", tier.retention, oldest.name),
        None => format!("no snapshots are promised any more, so {} is not kept", oldest.name),
    };
    let (name, made_by, why) = (oldest.name.clone(), oldest.made_by, ExpiryWhy::OutsidePolicy);
    let operation = Operation::ExpireSnapshot(ExpireSnapshot { target, name, made_by, why });
    Some(Action { operation, reason, growth: None })
}
