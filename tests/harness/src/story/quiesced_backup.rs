//! Backups whose guest's programs stand still, with a controller that plays the window.

use agentd::model::policy::QuiesceBound;
use agentd::model::record::BackupWhy;
use agentd::operation::{Backup, Operation, QuiescedBackup};

use super::Story;
use crate::ground::Ground;
use crate::kit::target;

pub(super) fn take() -> Vec<Story> {
    vec![
        Story::done("quiesced_backup", Ground::GuestRuns, |_| backup("backup2")),
        Story::undone("quiesced_backup, no storage", Ground::GuestRuns, |_| backup("nosuch")),
        Story::undone("quiesced_backup, it stands", Ground::GuestStands, |_| backup("backup2")),
    ]
}

fn backup(storage: &str) -> Operation {
    let storage = storage.parse().unwrap();
    let backup = Backup { target: target(1), storage, why: BackupWhy::Asked, due: None, key: None };
    Operation::QuiescedBackup(QuiescedBackup { backup, bound: QuiesceBound::usual() })
}
