//! Stories of removed backups.

use agentd::gate::warrant::{Allows, SignedState, Warrant};
use agentd::model::records::VolumeId;
use agentd::operation::{Deletion, Operation, PruneBackup, PruneBy};
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::act::BackupLoss;
use holdfast_protocol::protection::Tier;

use super::Story;
use crate::fixtures::{target, uid};
use crate::ground::Ground;
use crate::world_template::Template;

pub(super) fn prune() -> Vec<Story> {
    vec![
        Story {
            may_take: |held| held == file(&backups(Ground::Promised).0.0),
            ..Story::done("prune_backup", Ground::Promised, |_| pruning(Ground::Promised))
        },
        // Nothing is promised on this ground: a backup that no retention releases stays.
        Story::undone("prune_backup, unpromised", Ground::BackedUp, |_| pruning(Ground::BackedUp)),
        Story {
            may_take: |held| held == file(&backups(Ground::Promised).1.0),
            ..Story::done("prune_backup, signed", Ground::Promised, |_| signed(&BackupLoss::ALL))
        },
        // It is the newest, and no signature named that.
        Story::undone("prune_backup, not all of it signed", Ground::Promised, |_| {
            signed(&[BackupLoss::NewestProved, BackupLoss::OnlyHolder])
        }),
    ]
}

/// An archive, and the operation that took it.
type KeptArchives = (String, String);

/// Both backups of guest 1.
fn backups(ground: Ground) -> (KeptArchives, KeptArchives) {
    let template = Template::of(ground);
    let of_guest = template.book.backups.iter().filter(|kept| kept.guest == uid(1).to_string());
    let all: Vec<KeptArchives> = of_guest.map(|kept| (kept.archive.clone(), kept.taken_by.clone())).collect();
    let [first, second] = <[KeptArchives; 2]>::try_from(all).expect("two backups");
    (first, second)
}

/// As the scene names it.
fn file(archive: &str) -> String {
    archive.replace(":backup/", ":")
}

/// The removal of the first, with the second present.
fn pruning(ground: Ground) -> Operation {
    let ((archive, taken_by), (successor, _)) = backups(ground);
    Operation::PruneBackup(PruneBackup {
        target: target(1),
        archive: VolumeId::new(archive),
        storage: "backup2".parse().unwrap(),
        tier: Tier::Local,
        taken_by: taken_by.parse().unwrap(),
        successor: VolumeId::new(successor),
        judged_at: Template::of(ground).at(),
        by: PruneBy::Retention,
    })
}

/// The removal of the second, which is the newest, by a signature for it and for these losses.
fn signed(loses: &[BackupLoss]) -> Operation {
    let ground = Ground::Promised;
    let ((successor, _), (archive, taken_by)) = backups(ground);
    let target = target(1);
    let volumes = (0..3).map(|disk| VolumeId::new(format!("tank:300/vm-300-disk-{disk}.raw"))).collect();
    let seen = SignedState { uid: target.uid, vmid: target.vmid, name: target.name.clone(), volumes };
    let loses = loses.iter().copied().collect();
    let allows = Allows::DeleteBackup { archive: VolumeId::new(&archive), loses };
    let warrant = Warrant::for_tests(JobId::new(uuid::Uuid::from_u128(8)), allows, seen);
    Operation::PruneBackup(PruneBackup {
        target,
        archive: VolumeId::new(archive),
        storage: "backup2".parse().unwrap(),
        tier: Tier::Local,
        taken_by: taken_by.parse().unwrap(),
        successor: VolumeId::new(successor),
        judged_at: Template::of(ground).at(),
        by: PruneBy::Signature(Deletion::new(warrant).unwrap()),
    })
}
