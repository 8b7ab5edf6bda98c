//! The loss for a guest when one of its backups is deleted.
//!
//! What comes in: the guest's backups as the records have them, the one to delete, and which of them were proved. What
//! goes out: the losses that the signature must name. A backup that is missing from its storage does not count. Pure,
//! and called twice: when a removal is planned, and again before it is sent.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::OperationId;
use holdfast_protocol::job::act::BackupLoss;
use jiff::Timestamp;

use super::retention::taken_at;
use crate::model::records::BackupRecord;

/// What is lost with a backup, besides the backup itself.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::records::{BackupWhy, HeldMounts, VolumeId};

    fn op(n: u8) -> OperationId {
        OperationId::new(uuid::Uuid::from_u128(n.into()))
    }

    /// A backup of this hour that holds these mounts.
    fn backup(hour: u8, holds: &[&str]) -> BackupRecord {
        let taken_at = Timestamp::from_second(1_800_000_000 + i64::from(hour) * 3_600).unwrap();
        BackupRecord {
            archive: VolumeId::new(format!("backup2:backup/{hour}")),
            guest: "018f3c1e-6b1f-7c1d-9d0a-000000000001".parse().unwrap(),
            vmid: 300.try_into().unwrap(),
            storage: "backup2".parse().unwrap(),
            bytes: 9,
            taken_at,
            taken_by: op(hour),
            why: BackupWhy::Schedule,
            tier: None,
            point: None,
            sealed: None,
            missing_since: None,
            took: None,
            label: None,
            mounts: Some(HeldMounts {
                holds: holds.iter().map(|path| (*path).to_owned()).collect(),
                left_out: Vec::new(),
            }),
            hardware: None,
            disks: None,
        }
    }

    fn lost(backups: &[BackupRecord], goes: usize, proved: &[u8]) -> String {
        let proofs = proved.iter().map(|hour| (op(*hour), Timestamp::UNIX_EPOCH)).collect();
        words(&losses(backups, &backups[goes], &proofs))
    }

    #[test]
    fn the_newest_and_the_newest_proved_are_losses_and_others_are_none() {
        let backups = [backup(1, &[]), backup(2, &[]), backup(3, &[])];
        assert_eq!([0, 1, 2].map(|goes| lost(&backups, goes, &[1, 2])), ["", "newest-proved", "newest"]);
        assert_eq!(lost(&backups, 2, &[1, 3]), "newest, newest-proved");
        assert_eq!(lost(&backups, 0, &[]), "");
    }

    #[test]
    fn a_missing_backup_is_no_newer_one() {
        let mut backups = [backup(1, &[]), backup(2, &[])];
        backups[1].missing_since = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(lost(&backups, 0, &[1, 2]), "newest, newest-proved");
    }

    #[test]
    fn what_no_other_listed_backup_holds_is_a_loss() {
        let mut backups =
            [backup(1, &["/srv/db", "/srv/www"]), backup(2, &["/srv/db"]), backup(3, &["/srv/www"])];
        assert_eq!([0, 1].map(|goes| lost(&backups, goes, &[])), ["", ""]);
        backups[2].missing_since = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(lost(&backups, 0, &[]), "only-holder", "the other holder is missing");
        let alone = [backup(1, &["/srv/db"]), backup(2, &[])];
        assert_eq!([0, 1].map(|goes| lost(&alone, goes, &[])), ["only-holder", "newest"]);
    }
}
