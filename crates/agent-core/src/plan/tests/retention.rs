//! Tests of what retention removes, and of what keeps it from removing.

use std::sync::Arc;

use holdfast_protocol::protection::Tier;
use holdfast_protocol::storage::report::PrunedBy;

use super::schedule::{Life, daily, life, time};
use super::*;
use crate::model::observed::BackupListing;
use crate::model::records::{Attempts, BackupRecord, OpenOperation};
use crate::operation::{Operation, PruneBackup};

/// A guest of which three backups are kept, and which has five, the newest of last night.
fn full() -> Life {
    let mut life = life(daily(), "crash", "2026-06-01T12:00:00Z");
    life.now = time("2026-06-10T12:00:00Z");
    for day in 6..=10 {
        let point = time(&format!("2026-06-{day:02}T00:30:00Z"));
        life.keep(Some(point), Some(Tier::Local), point);
    }
    list(&mut life, None);
    life
}

/// What Proxmox lists.
fn list(life: &mut Life, pruned_by: Option<PrunedBy>) {
    let listing = BackupListing::Listed { protected: BTreeSet::new(), verified: BTreeMap::new(), pruned_by };
    life.world.observed.listings.insert("backup2".parse().unwrap(), listing);
}

fn backups(life: &mut Life) -> &mut Vec<BackupRecord> {
    Arc::make_mut(&mut life.world.records.backups)
}

/// What is removed, if anything is.
fn pruned(life: &Life) -> Option<PruneBackup> {
    let plan = life.plan();
    assert!(plan.actions.len() <= 1, "{plan}");
    match plan.actions.into_iter().next()?.operation {
        Operation::PruneBackup(prune) => Some(prune),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_oldest_goes_by_the_newest_that_stays() {
    let mut life = full();
    let all = backups(&mut life).clone();
    let first = pruned(&life).unwrap();
    assert_eq!((&first.archive, &first.successor), (&all[0].archive, &all[4].archive));
    backups(&mut life).remove(0);
    assert_eq!(pruned(&life).unwrap().archive, all[1].archive);
    backups(&mut life).remove(0);
    assert_eq!(pruned(&life), None, "three are kept");
}

#[test]
fn nothing_goes_by_a_clock_that_is_not_steady() {
    let life = full();
    let time = TrustedTime { at: life.now, since: life.since, steady: Steady::No };
    let plan = plan(&Inputs { now: life.now, time, ..life.world.inputs() });
    assert!(plan.actions.is_empty(), "{plan}");
}

#[test]
fn nothing_goes_while_an_archive_is_tested() {
    let mut life = full();
    let open = |kind| OpenOperation { id: op(9), kind, guest: uid(2) };
    life.world.records.open.push(open(OperationKind::Backup));
    assert!(pruned(&life).is_some(), "another guest's backup keeps nothing");
    life.world.records.open.push(open(OperationKind::RestoreTest));
    assert_eq!(pruned(&life), None);
}

#[test]
fn what_the_storage_does_not_show_or_removes_by_itself_stays() {
    let mut silent = full();
    silent.world.observed.listings.clear();
    assert_eq!(pruned(&silent), None);
    let mut by_server = full();
    list(&mut by_server, Some(PrunedBy::Server));
    assert_eq!(pruned(&by_server), None);
    let mut by_agent = full();
    list(&mut by_agent, Some(PrunedBy::Agent));
    assert!(pruned(&by_agent).is_some());
}

#[test]
fn what_has_another_number_or_lies_elsewhere_stays() {
    let mut renumbered = full();
    backups(&mut renumbered)[0].vmid = vmid(398);
    let second = backups(&mut renumbered)[1].archive.clone();
    assert_eq!(pruned(&renumbered).unwrap().archive, second);

    // An earlier target of the tier, which answers as well.
    let mut moved = full();
    backups(&mut moved)[0].storage = "backup1".parse().unwrap();
    let listing = moved.world.observed.listings.values().next().unwrap().clone();
    moved.world.observed.listings.insert("backup1".parse().unwrap(), listing);
    let second = backups(&mut moved)[1].archive.clone();
    assert_eq!(pruned(&moved).unwrap().archive, second);

    // The guest has another number by now, and every backup the old one.
    let mut returned = full();
    backups(&mut returned).iter_mut().for_each(|backup| backup.vmid = vmid(398));
    assert_eq!(pruned(&returned), None);
}

#[test]
fn a_removal_that_failed_waits() {
    let mut life = full();
    let failed = |last| Attempts {
        guest: uid(1),
        kind: OperationKind::PruneBackup,
        failed: 1,
        last,
        message: "the storage is busy".to_owned(),
    };
    life.world.records.attempts.push(failed(life.now));
    assert_eq!(pruned(&life), None);
    life.world.records.attempts[0] = failed(time("2026-06-09T12:00:00Z"));
    assert!(pruned(&life).is_some(), "after its wait it is tried again");
}
