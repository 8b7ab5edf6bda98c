//! The register of stories, one per kind of operation.
//!
//! In: a kind. Out: its stories, on the way there and on the way back; in addition those of the whole agent. A new
//! operation gets a file of its own here, with its ground, the operation, and the end it must reach however often it is
//! killed.

mod adopt;
pub(crate) mod backup;
mod destroy;
mod discard_copy;
mod job;
mod power;
mod provision;
mod prune;
mod quiesced_backup;
mod reassign_volume;
mod rebase_guest;
pub(crate) mod restore_copy;
mod restore_test;
mod size;
pub(crate) mod snapshot;
mod swap_guest;
mod update_controller;
mod volume;
mod whole;

use agentd::operation::Operation;
use agentd::operation::log::Status;
use holdfast_protocol::operation::OperationKind;

use crate::controllers::Speech;
use crate::fixtures::Kit;
use crate::ground::Ground;
use crate::whole::Goals;
use crate::windows::Windows;

/// The whole agent's operations are killed everywhere in stories of their own.
const SECONDS_OF_THE_WHOLE: usize = 191;

/// Where killing begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillFrom {
    TheBeginning,
    /// From the outcome of the step that fails: what comes before it is another story's.
    TheFailure,
}

/// The action of a story, and which part of the agent does it.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// One operation, by the engine.
    Operation(fn(&Kit) -> Operation),
    /// The requests of a document and of guests, by the whole agent.
    Goals(fn() -> Goals),
}

/// A story that is played once undisturbed, and then killed at each of its points.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    /// Its name in the table.
    pub name: &'static str,
    /// The state before the story.
    pub ground: Ground,
    /// The action.
    pub does: Does,
    /// Whether controllers speak.
    pub speech: Speech,
    /// What they do in quiesce windows.
    pub windows: Windows,
    /// A worker that stays in a phase: its task, the phase, and for how many milliseconds.
    pub slow: Option<(&'static str, &'static str, u64)>,
    /// The label of its backup in the end, where that is part of it.
    pub label: Option<&'static str>,
    /// How it ends, killed or not.
    pub end: Status,
    /// How it ends when the end of its tasks is unknown, although their work is done.
    pub unclear: Status,
    /// Where killing begins.
    pub kills: KillFrom,
    /// One point in this many is a second kill.
    pub second_one_in: usize,
    /// A step whose requests are refused in every life, where no request makes it fail.
    pub refused: Option<&'static str>,
    /// The holdings of a customer that it is allowed to remove, by their name in the [`crate::scene::Scene`].
    pub may_take: fn(&str) -> bool,
    /// Volumes of a customer that it may rename: each is there afterwards, under whatever name.
    pub may_rename: fn(&str) -> bool,
    /// The number of the foreign guest that it is allowed to label as ours.
    pub takes_over: Option<u32>,
    /// Two that must never run at the same time.
    pub never_both: Option<[u32; 2]>,
    /// How many operations it has, where that is the point of it.
    pub operations: Option<usize>,
}

impl Story {
    /// A story that ends as requested and removes nothing.
    #[must_use]
    pub const fn done(name: &'static str, ground: Ground, operation: fn(&Kit) -> Operation) -> Self {
        Self {
            name,
            ground,
            does: Does::Operation(operation),
            speech: Speech::Hello,
            windows: Windows::NoOne,
            slow: None,
            label: None,
            end: Status::Done,
            unclear: Status::Done,
            kills: KillFrom::TheBeginning,
            second_one_in: 1,
            refused: None,
            may_take: |_| false,
            may_rename: |_| false,
            takes_over: None,
            never_both: None,
            operations: None,
        }
    }

    /// A story of the whole agent.
    #[must_use]
    pub const fn whole(name: &'static str, ground: Ground, goals: fn() -> Goals) -> Self {
        Self {
            name,
            ground,
            does: Does::Goals(goals),
            speech: Speech::Hello,
            windows: Windows::NoOne,
            slow: None,
            label: None,
            end: Status::Done,
            unclear: Status::Done,
            kills: KillFrom::TheBeginning,
            second_one_in: SECONDS_OF_THE_WHOLE,
            refused: None,
            may_take: |_| false,
            may_rename: |_| false,
            takes_over: None,
            never_both: None,
            operations: None,
        }
    }

    /// A story of the way back.
    #[must_use]
    pub const fn undone(name: &'static str, ground: Ground, operation: fn(&Kit) -> Operation) -> Self {
        Self {
            end: Status::Undone,
            unclear: Status::Undone,
            kills: KillFrom::TheFailure,
            ..Self::done(name, ground, operation)
        }
    }
}

/// The stories of a kind.
#[must_use]
pub fn stories(kind: OperationKind) -> Vec<Story> {
    match kind {
        OperationKind::AdoptGuest => adopt::adopt(),
        OperationKind::Provision => provision::stories(),
        OperationKind::PruneBackup => prune::prune(),
        OperationKind::Start => power::start(),
        OperationKind::Stop => power::stop(),
        OperationKind::RestartGuest => power::restart(),
        OperationKind::UpdateController => update_controller::stories(),
        OperationKind::Reconfigure => size::reconfigure(),
        OperationKind::RestoreCopy => restore_copy::stories(),
        OperationKind::RestoreTest => restore_test::stories(),
        OperationKind::Grow => size::grow(),
        OperationKind::AttachVolume => volume::attach(),
        OperationKind::Snapshot => snapshot::take(),
        OperationKind::ExpireSnapshot => snapshot::expire(),
        OperationKind::RollBack => snapshot::roll_back(),
        OperationKind::Backup => backup::take(),
        OperationKind::QuiescedBackup => quiesced_backup::take(),
        OperationKind::Destroy => destroy::destroy(),
        OperationKind::DiscardCopy => discard_copy::discard(),
        OperationKind::ReassignVolume => reassign_volume::hand_over(),
        OperationKind::RebaseGuest => rebase_guest::stories(),
        OperationKind::SwapGuest => swap_guest::stories(),
    }
}

/// All stories: of each kind, and of the whole agent.
#[must_use]
pub fn all() -> Vec<Story> {
    OperationKind::ALL
        .iter()
        .flat_map(|kind| stories(*kind))
        .chain(whole::stories())
        .chain(job::stories())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_story_of_its_own_name() {
        for kind in OperationKind::ALL {
            assert!(stories(*kind).iter().any(|story| story.name == kind.as_str()), "{}", kind.as_str());
        }
        let names: std::collections::BTreeSet<_> = all().iter().map(|story| story.name).collect();
        assert_eq!(names.len(), all().len(), "names are one each");
    }
}
