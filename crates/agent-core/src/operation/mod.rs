//! Operations on guests: lists of typed steps.
//!
//! What comes in: a decision of the plan. What goes out: steps, events, and where the operation stands. All of it is
//! pure and is written to the journal as JSON with a version. Deliberately absent: doing anything.
//!
//! | module | what |
//! | --- | --- |
//! | [`adopt`] | a guest that our records do not know, by a signature |
//! | [`attach`] | a volume for a guest that was made |
//! | [`destroy`] | the end of a guest, by a signature |
//! | [`reassign_volume`] | a volume for another guest, by a signature |
//! | [`provision`] | making a guest |
//! | [`sizes`] | *reconfigure*, *grow* |
//! | [`snapshot`] | *snapshot*, *expire_snapshot* |
//! | [`roll_back`] | *roll_back* |
//! | [`restore_copy`] | a copy of a guest, by a signature |
//! | [`restore_test`] | a backup, tried |
//! | [`swap_guest`] | a copy in the place of its guest, by a signature |
//! | [`backup`] | *backup* |
//! | [`quiesced_backup`] | *quiesced_backup* |
//! | [`update_controller`] | *update_controller* |
//! | [`window`] | its quiesce window: what may follow what, and the label of its backup |
//! | [`prune`] | *prune_backup* |
//! | [`lane`] | who may begin, who waits behind whom |
//! | [`step`] | what each step is: its undo, its probe, its bound |
//! | [`log`] | events, and `next(status, event)`, the only definition of what may follow what |
//! | [`progress`] | the fold of a log: facts found, and the view for people |

pub mod adopt;
mod applied;
pub mod attach;
pub mod backup;
pub mod destroy;
pub mod lane;
pub mod log;
pub mod progress;
pub mod provision;
pub mod prune;
pub mod quiesced_backup;
pub mod reassign_volume;
pub mod restore_copy;
pub mod restore_test;
pub mod roll_back;
pub mod sizes;
pub mod snapshot;
pub mod step;
pub mod swap_guest;
pub mod update_controller;
pub mod window;

use holdfast_protocol::id::{GuestName, GuestUid, Vmid};
use holdfast_protocol::operation::OperationKind;
use serde::{Deserialize, Serialize};

pub use adopt::Adopt;
pub use applied::AppliedBy;
pub use attach::AttachVolume;
pub use backup::{Backup, Begun, DuePoint};
pub use destroy::Destroy;
pub use provision::{Image, MissingGuest, Provision, Source, VmidRequest, Whence};
pub use prune::{Deletion, PruneBackup, PruneBy};
pub use quiesced_backup::QuiescedBackup;
pub use reassign_volume::HandOver;
pub use restore_copy::RestoreCopy;
pub use restore_test::RestoreTest;
pub use roll_back::{BulkRule, RollBack};
pub use sizes::{DiskRef, Grow, KeepProtection, Reconfigure};
pub use snapshot::{ExpireSnapshot, ExpiryWhy, Snapshot};
use step::{Exhausted, Step};
pub use swap_guest::SwapGuest;
pub use update_controller::UpdateController;

/// The version of specs and events in the journal.
pub const JOURNAL_VERSION: u32 = 1;

/// One operation, with everything it needs to know. Nothing is looked up in the document again once it is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Makes a guest by restoring the golden archive.
    Provision(Box<Provision>),
    /// Starts a guest.
    Start(Target),
    /// Stops a guest.
    Stop(Target),
    /// Changes CPU, memory, swap, or puts protection back.
    Reconfigure(Reconfigure),
    /// Makes one disk larger.
    Grow(Grow),
    /// Makes a volume and mounts it in a guest that was made.
    AttachVolume(Box<AttachVolume>),
    /// Takes a snapshot.
    Snapshot(Snapshot),
    /// Removes a snapshot of ours.
    ExpireSnapshot(ExpireSnapshot),
    /// Rolls a guest back to a snapshot of ours.
    RollBack(RollBack),
    /// Takes a backup.
    Backup(Backup),
    /// Takes a backup within a quiesce window.
    QuiescedBackup(QuiescedBackup),
    /// Removes a backup that the retention in force no longer keeps.
    PruneBackup(PruneBackup),
    /// Destroys a guest, by a signature.
    Destroy(Box<Destroy>),
    /// Restores a backup of a guest beside it.
    RestoreCopy(Box<RestoreCopy>),
    /// Tries a backup.
    RestoreTest(Box<RestoreTest>),
    /// Hands a volume to another guest, by a signature.
    ReassignVolume(Box<HandOver>),
    /// Takes over a guest that our records do not know, by a signature.
    AdoptGuest(Box<Adopt>),
    /// Puts a copy of a guest in its place, by a signature.
    SwapGuest(Box<SwapGuest>),
    /// Exchanges the controller in a guest.
    UpdateController(Box<UpdateController>),
}

/// A guest that was made, by all we know it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Our identity for it.
    pub uid: GuestUid,
    /// Its name when the operation was opened.
    pub name: GuestName,
    pub vmid: Vmid,
}

impl Target {
    const fn about(&self) -> (GuestUid, &GuestName, Option<Vmid>) {
        (self.uid, &self.name, Some(self.vmid))
    }
}

impl Operation {
    /// What it does.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Provision(_) => OperationKind::Provision,
            Self::Start(_) => OperationKind::Start,
            Self::Stop(_) => OperationKind::Stop,
            Self::Reconfigure(_) => OperationKind::Reconfigure,
            Self::Grow(_) => OperationKind::Grow,
            Self::AttachVolume(_) => OperationKind::AttachVolume,
            Self::Snapshot(_) => OperationKind::Snapshot,
            Self::ExpireSnapshot(_) => OperationKind::ExpireSnapshot,
            Self::RollBack(_) => OperationKind::RollBack,
            Self::Backup(_) => OperationKind::Backup,
            Self::QuiescedBackup(_) => OperationKind::QuiescedBackup,
            Self::PruneBackup(_) => OperationKind::PruneBackup,
            Self::Destroy(_) => OperationKind::Destroy,
            Self::RestoreCopy(_) => OperationKind::RestoreCopy,
            Self::RestoreTest(_) => OperationKind::RestoreTest,
            Self::ReassignVolume(_) => OperationKind::ReassignVolume,
            Self::AdoptGuest(_) => OperationKind::AdoptGuest,
            Self::SwapGuest(_) => OperationKind::SwapGuest,
            Self::UpdateController(_) => OperationKind::UpdateController,
        }
    }

    /// To which guest.
    #[must_use]
    pub fn uid(&self) -> GuestUid {
        self.about().0
    }

    /// Whose lane it holds: its guest's, but tests have one of their own.
    #[must_use]
    pub fn lane(&self) -> GuestUid {
        match self {
            Self::RestoreTest(_) => restore_test::LANE,
            other => other.uid(),
        }
    }

    /// The other guest that it holds, when there are two. No other operation may touch that one either (I6).
    #[must_use]
    pub fn other(&self) -> Option<GuestUid> {
        match self {
            Self::ReassignVolume(hand) => Some(hand.to().uid),
            Self::Provision(_)
            | Self::Start(_)
            | Self::Stop(_)
            | Self::Reconfigure(_)
            | Self::Grow(_)
            | Self::AttachVolume(_)
            | Self::Snapshot(_)
            | Self::ExpireSnapshot(_)
            | Self::RollBack(_)
            | Self::Backup(_)
            | Self::QuiescedBackup(_)
            | Self::PruneBackup(_)
            | Self::Destroy(_)
            | Self::RestoreCopy(_)
            | Self::RestoreTest(_)
            | Self::AdoptGuest(_)
            | Self::SwapGuest(_)
            | Self::UpdateController(_) => None,
        }
    }

    /// That guest's name.
    #[must_use]
    pub fn name(&self) -> &GuestName {
        self.about().1
    }

    /// The guest's number, where it has one before the operation begins.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        self.about().2
    }

    fn about(&self) -> (GuestUid, &GuestName, Option<Vmid>) {
        match self {
            Self::Provision(provision) => (provision.guest.uid, &provision.guest.name, None),
            Self::Start(target) | Self::Stop(target) => target.about(),
            Self::Reconfigure(change) => change.target.about(),
            Self::Grow(grow) => grow.target.about(),
            Self::AttachVolume(attach) => attach.target.about(),
            Self::Snapshot(snapshot) => snapshot.target.about(),
            Self::ExpireSnapshot(expiry) => expiry.target.about(),
            Self::RollBack(back) => back.target.about(),
            Self::Backup(backup) => backup.target.about(),
            Self::QuiescedBackup(quiesced) => quiesced.backup.target.about(),
            Self::PruneBackup(prune) => prune.target.about(),
            Self::Destroy(destroy) => destroy.about(),
            Self::RestoreCopy(copy_of) => copy_of.about(),
            Self::RestoreTest(test) => test.about(),
            Self::ReassignVolume(hand) => hand.about(),
            Self::AdoptGuest(adopt) => adopt.about(),
            Self::SwapGuest(swap) => swap.about(),
            Self::UpdateController(update) => update.about(),
        }
    }

    /// The point of a schedule that it is begun for.
    #[must_use]
    pub fn due(&self) -> Option<&DuePoint> {
        match self {
            Self::Snapshot(snapshot) => snapshot.due.as_ref(),
            other => other.backup()?.due.as_ref(),
        }
    }

    /// The backup that it takes, where that is what it is for, or what it ends with.
    #[must_use]
    pub const fn backup(&self) -> Option<&Backup> {
        match self {
            Self::Backup(backup) => Some(backup),
            Self::QuiescedBackup(quiesced) => Some(&quiesced.backup),
            Self::SwapGuest(swap) => swap.backup.as_ref(),
            Self::Provision(_)
            | Self::Start(_)
            | Self::Stop(_)
            | Self::Reconfigure(_)
            | Self::Grow(_)
            | Self::AttachVolume(_)
            | Self::Snapshot(_)
            | Self::ExpireSnapshot(_)
            | Self::RollBack(_)
            | Self::PruneBackup(_)
            | Self::Destroy(_)
            | Self::RestoreCopy(_)
            | Self::RestoreTest(_)
            | Self::ReassignVolume(_)
            | Self::AdoptGuest(_)
            | Self::UpdateController(_) => None,
        }
    }

    /// Its steps, in order. The same operation always has the same steps, so a step's place names it in the journal.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        match self {
            Self::Provision(provision) => provision.steps(),
            Self::Start(_) => vec![Step::Start, Step::ConfirmRunning],
            Self::Stop(_) => vec![Step::ShutDown, Step::ConfirmStopped],
            Self::Reconfigure(_) => vec![Step::Configure],
            Self::Grow(_) => vec![Step::GrowDisk],
            Self::AttachVolume(_) => AttachVolume::steps(),
            Self::Snapshot(_) => vec![Step::CheckRoom, Step::TakeSnapshot],
            Self::ExpireSnapshot(_) => vec![Step::RemoveSnapshot],
            Self::RollBack(_) => RollBack::steps(),
            Self::Backup(_) => vec![Step::TakeBackup],
            Self::QuiescedBackup(_) => QuiescedBackup::steps(),
            Self::PruneBackup(_) => vec![Step::RemoveBackup],
            Self::Destroy(_) => Destroy::steps(),
            Self::RestoreCopy(_) => RestoreCopy::steps(),
            Self::RestoreTest(test) => test.steps(),
            Self::ReassignVolume(_) => HandOver::steps(),
            Self::AdoptGuest(_) => Adopt::steps(),
            Self::SwapGuest(swap) => swap.steps(),
            Self::UpdateController(_) => UpdateController::steps(),
        }
    }

    /// What follows when no try of one of its steps is left. A way back that fails is a person's: what it would take back
    /// first is the snapshot, which is all there is to come back to. A lost guest that was started again serves.
    #[must_use]
    pub fn exhausted(&self, step: Step) -> Exhausted {
        match self {
            Self::UpdateController(_) if UpdateController::is_way_back(step) => Exhausted::Park,
            // It has run, so it holds newer data than its backup: whether its controller speaks or not, it stays.
            Self::Provision(provision)
                if provision.lost().is_some() && matches!(step, Step::AwaitHello | Step::ReadBack) =>
            {
                Exhausted::Continue
            }
            _ => step.facts().exhausted,
        }
    }
}
