//! Stories of quiesced backups.

use agentd::model::policy::QuiesceBound;
use agentd::model::records::BackupWhy;
use agentd::operation::{Backup, Operation, QuiescedBackup};

use super::{KillFrom, Story};
use crate::fixtures::target;
use crate::ground::Ground;
use crate::windows::Windows;

pub(super) fn take() -> Vec<Story> {
    let played =
        Story::done("quiesced_backup", Ground::GuestRuns, |_| backup("backup2", QuiesceBound::usual()));
    let alone = Story {
        label: Some("crash"),
        ..Story::done(ALONE, Ground::GuestRuns, |_| backup("backup2", shortest()))
    };
    // The copy is begun in time and fixed only when the bound has passed. The controller's timer has started everything
    // by then, and no controller reports it.
    let slow = Story {
        windows: Windows::NeverRelease,
        slow: Some(("vzdump", "locked", 80_000)),
        kills: KillFrom::TheFailure,
        ..Story::done(TOO_SLOW, Ground::GuestRuns, |_| backup("backup2", shortest()))
    };
    let nowhere = Story::undone("quiesced_backup, no storage", Ground::GuestRuns, |_| {
        backup("nosuch", QuiesceBound::usual())
    });
    let stands = Story::undone("quiesced_backup, it stands", Ground::GuestStands, |_| {
        backup("backup2", QuiesceBound::usual())
    });
    vec![
        Story { windows: Windows::Play, label: Some("application"), ..played },
        alone,
        Story { label: Some("crash"), ..slow },
        Story { windows: Windows::Play, ..nowhere },
        stands,
    ]
}

/// A controller that never comes.
const ALONE: &str = "quiesced_backup, alone";
/// A copy that is fixed too late.
pub(crate) const TOO_SLOW: &str = "quiesced_backup, too slow";

fn shortest() -> QuiesceBound {
    QuiesceBound::MIN_S.try_into().unwrap()
}

fn backup(storage: &str, bound: QuiesceBound) -> Operation {
    let storage = storage.parse().unwrap();
    let backup = Backup {
        target: target(1),
        storage,
        why: BackupWhy::Asked,
        due: None,
        key: None,
        leaves_out: Vec::new(),
    };
    Operation::QuiescedBackup(QuiescedBackup { backup, bound })
}
