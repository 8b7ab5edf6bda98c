//! Backups that the retention in force no longer keeps.

use agentd::model::record::VolumeId;
use agentd::operation::{Operation, PruneBackup};
use holdfast_protocol::protection::Tier;

use super::Story;
use crate::ground::{Ground, Template};
use crate::kit::{target, uid};

pub(super) fn prune() -> Vec<Story> {
    vec![
        Story {
            may_take: |held| held == file(&backups(Ground::Promised).0.0),
            ..Story::done("prune_backup", Ground::Promised, |_| pruning(Ground::Promised))
        },
        // Nothing is promised on this ground: what no retention lets go stays.
        Story::undone("prune_backup, unpromised", Ground::BackedUp, |_| pruning(Ground::BackedUp)),
    ]
}

/// An archive, and the operation that took it.
type Kept = (String, String);

/// Both backups of guest 1.
fn backups(ground: Ground) -> (Kept, Kept) {
    let template = Template::of(ground);
    let of_guest = template.book.backups.iter().filter(|kept| kept.guest == uid(1).to_string());
    let all: Vec<Kept> = of_guest.map(|kept| (kept.archive.clone(), kept.taken_by.clone())).collect();
    let [first, second] = <[Kept; 2]>::try_from(all).expect("two backups");
    (first, second)
}

/// As the scene names it.
fn file(archive: &str) -> String {
    archive.replace(":backup/", ":")
}

/// The removal of the first, beside the second.
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
    })
}
