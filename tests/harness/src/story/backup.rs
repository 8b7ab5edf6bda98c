//! Backups of guests that were made.

use agentd::model::records::BackupWhy;
use agentd::operation::{Backup, Operation};

use super::Story;
use crate::fixtures::target;
use crate::ground::Ground;

pub(super) fn take() -> Vec<Story> {
    vec![
        Story::done("backup", Ground::GuestRuns, |_| backup("backup2", BackupWhy::Asked)),
        Story::undone("backup, no storage", Ground::GuestRuns, |_| backup("nosuch", BackupWhy::Asked)),
    ]
}

/// A requested backup. A ground is made by it, too.
pub(crate) fn backup(storage: &str, why: BackupWhy) -> Operation {
    Operation::Backup(Backup {
        target: target(1),
        storage: storage.parse().unwrap(),
        why,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    })
}
