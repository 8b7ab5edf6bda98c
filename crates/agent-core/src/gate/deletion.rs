//! The loss for a guest when one of its backups is deleted.
//!
//! What comes in: the guest's backups as the records have them, the one that goes, and which of them were proved. What goes
//! out: what whoever signs for it must have named. What is missing from its storage counts as no backup. Pure, and asked
//! twice: when a removal is planned, and again before it is sent.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::act::BackupLoss;
use jiff::Timestamp;

use super::retention::taken_at;
use crate::model::record::BackupRecord;

/// What is lost with a backup, beside itself.
#[must_use]
pub fn losses(
    backups: &[BackupRecord],
    goes: &BackupRecord,
    proofs: &BTreeMap<OperationId, Timestamp>,
) -> BTreeSet<BackupLoss> {
    let listed = || backups.iter().filter(|backup| backup.missing_since.is_none());
    let is_it = |newest: Option<&BackupRecord>| newest.is_some_and(|one| one.archive == goes.archive);
    let newest = listed().max_by_key(|backup| taken_at(backup));
    let proved =
        listed().filter(|backup| proofs.contains_key(&backup.taken_by)).max_by_key(|backup| taken_at(backup));
    let held = |path: &String| {
        let others = listed().filter(|backup| backup.archive != goes.archive);
        others.filter_map(|backup| backup.mounts.as_ref()).any(|mounts| mounts.holds.contains(path))
    };
    let holds = goes.mounts.iter().flat_map(|mounts| &mounts.holds);
    [
        (BackupLoss::Newest, is_it(newest)),
        (BackupLoss::NewestProved, is_it(proved)),
        (BackupLoss::OnlyHolder, holds.into_iter().any(|path| !held(path))),
    ]
    .into_iter()
    .filter_map(|(loss, is_lost)| is_lost.then_some(loss))
    .collect()
}

/// Losses in words, as `holdfast sign --loses` takes them.
#[must_use]
pub fn words<'a>(losses: impl IntoIterator<Item = &'a BackupLoss>) -> String {
    losses.into_iter().map(|loss| loss.as_str()).collect::<Vec<_>>().join(", ")
}
