//! The rules of lanes: order, waiting and refusal.
//!
//! One lane for each guest: its open operation holds it, what was asked for waits in it, in the order of arrival. One
//! lane for storage work of the whole host, one for its backups, and one for heavy work (whole archives). Every lane is bounded. What comes
//! in: what is in the lanes, and what arrives. What goes out: an [`Admission`] for one that arrives ([`admit`]), and the
//! wishes whose turn it is ([`turn::turns`]). Pure. Deliberately absent: keeping the queues (`port::store::request`,
//! `execute::slots`).
//!
//! | module | what |
//! | --- | --- |
//! | [`table`] | the pre-emption table, one `match` |
//! | [`turn`] | whose turn it is |

pub mod table;
pub mod turn;

use holdfast_protocol::id::{OperationId, SnapshotName};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;

use super::Operation;
use super::step::Weight;
use crate::model::limits;
use crate::model::request::Ask;
use table::{At, Likeness, Meeting, Why, meet};

/// Work that holds a guest's lane while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// Attaches a volume.
    AttachVolume,
    /// Takes a backup.
    Backup,
    /// Destroys the guest, by a signature.
    Destroy,
    /// Deletes a snapshot, by its time or because its guest asked.
    ExpireSnapshot,
    /// Makes a disk larger.
    Grow,
    /// Hands a volume to another guest.
    ReassignVolume,
    /// Takes a guest over.
    AdoptGuest,
    /// Makes the guest.
    Provision,
    /// Takes a backup while the guest's programs stand still.
    QuiescedBackup,
    /// Removes a backup that is not kept any longer.
    PruneBackup,
    /// Changes sizes or marks.
    Reconfigure,
    /// Restores a backup beside it.
    RestoreCopy,
    /// Tries a backup of it. It holds the lane of all tests, not the guest's.
    RestoreTest,
    /// Rolls it back to a snapshot.
    RollBack,
    /// Takes a snapshot.
    Snapshot,
    Start,
    Stop,
    /// Puts a copy of it in its place.
    SwapGuest,
    /// Exchanges its controller.
    UpdateController,
}

/// What comes to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Releases a stopped app: an app never stands still while something else is waited for.
    Release,
    /// Cancels what waits.
    Cancel,
    /// Anything that takes its turn.
    Work(Work),
}

impl Work {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::AttachVolume,
        Self::Backup,
        Self::Destroy,
        Self::ExpireSnapshot,
        Self::Grow,
        Self::ReassignVolume,
        Self::AdoptGuest,
        Self::Provision,
        Self::QuiescedBackup,
        Self::PruneBackup,
        Self::Reconfigure,
        Self::RestoreCopy,
        Self::RestoreTest,
        Self::RollBack,
        Self::Snapshot,
        Self::Start,
        Self::Stop,
        Self::SwapGuest,
        Self::UpdateController,
    ];

    /// As the wire, the journal and the table name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AttachVolume => "attach_volume",
            Self::Backup => "backup",
            Self::Destroy => "destroy",
            Self::ExpireSnapshot => "expire_snapshot",
            Self::Grow => "grow",
            Self::ReassignVolume => "reassign_volume",
            Self::AdoptGuest => "adopt_guest",
            Self::Provision => "provision",
            Self::QuiescedBackup => "quiesced_backup",
            Self::PruneBackup => "prune_backup",
            Self::Reconfigure => "reconfigure",
            Self::RestoreCopy => "restore_copy",
            Self::RestoreTest => "restore_test",
            Self::RollBack => "roll_back",
            Self::Snapshot => "snapshot",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::SwapGuest => "swap_guest",
            Self::UpdateController => "update_controller",
        }
    }

    /// Whether it reads or writes a whole archive, and so counts against the host's cap on heavy work.
    #[must_use]
    pub const fn weight(self) -> Weight {
        match self {
            Self::Backup | Self::Provision | Self::QuiescedBackup | Self::RestoreCopy | Self::RestoreTest => {
                Weight::Heavy
            }
            Self::AttachVolume
            | Self::Destroy
            | Self::ExpireSnapshot
            | Self::Grow
            | Self::ReassignVolume
            | Self::AdoptGuest
            | Self::PruneBackup
            | Self::Reconfigure
            | Self::RollBack
            | Self::Snapshot
            | Self::Start
            | Self::Stop
            | Self::SwapGuest
            | Self::UpdateController => Weight::Light,
        }
    }

    /// Whether it is a backup, of which one is open on a host at a time: Proxmox runs no two on a node.
    #[must_use]
    pub const fn is_backup(self) -> bool {
        matches!(self, Self::Backup | Self::QuiescedBackup)
    }

    /// Which lane it needs beside its guest's.
    #[must_use]
    pub const fn reach(self) -> Reach {
        match self {
            // Two of them with exchanged ends would each hold what the other waits for.
            Self::ReassignVolume => Reach::HostStorage,
            Self::AttachVolume
            | Self::Backup
            | Self::Destroy
            | Self::ExpireSnapshot
            | Self::Grow
            | Self::Provision
            | Self::QuiescedBackup
            | Self::PruneBackup
            | Self::Reconfigure
            | Self::RestoreCopy
            | Self::RestoreTest
            | Self::AdoptGuest
            | Self::RollBack
            | Self::Snapshot
            | Self::Start
            | Self::Stop
            | Self::SwapGuest
            | Self::UpdateController => Reach::Guest,
        }
    }
}

/// How far work reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its guest, or the guests it names.
    Guest,
    /// The host's storages as well: one at a time on a host.
    HostStorage,
}

impl From<OperationKind> for Work {
    fn from(kind: OperationKind) -> Self {
        match kind {
            OperationKind::AttachVolume => Self::AttachVolume,
            OperationKind::Backup => Self::Backup,
            OperationKind::ExpireSnapshot => Self::ExpireSnapshot,
            OperationKind::Destroy => Self::Destroy,
            OperationKind::Grow => Self::Grow,
            OperationKind::ReassignVolume => Self::ReassignVolume,
            OperationKind::AdoptGuest => Self::AdoptGuest,
            OperationKind::Provision => Self::Provision,
            OperationKind::QuiescedBackup => Self::QuiescedBackup,
            OperationKind::PruneBackup => Self::PruneBackup,
            OperationKind::Reconfigure => Self::Reconfigure,
            OperationKind::RestoreCopy => Self::RestoreCopy,
            OperationKind::RestoreTest => Self::RestoreTest,
            OperationKind::RollBack => Self::RollBack,
            OperationKind::Snapshot => Self::Snapshot,
            OperationKind::Start => Self::Start,
            OperationKind::Stop => Self::Stop,
            OperationKind::SwapGuest => Self::SwapGuest,
            OperationKind::UpdateController => Self::UpdateController,
        }
    }
}

impl Incoming {
    /// Everything that can come, those that go first at the head.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Release, Self::Cancel].into_iter().chain(Work::ALL.iter().copied().map(Self::Work))
    }

    /// As the table names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Cancel => "cancel",
            Self::Work(work) => work.name(),
        }
    }
}

/// What work is about, beside its guest. Two of the same subject are about the same thing, whatever they do to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The guest as a whole.
    Guest,
    /// Its off-site backups: one that is asked for is not the local one that is under way.
    OffSite,
    /// A snapshot of it, by name.
    Snapshot(SnapshotName),
}

impl Subject {
    /// Of what is asked for.
    #[must_use]
    pub fn of_ask(ask: &Ask) -> Self {
        if let Ask::Backup { tier: Some(Tier::OffSite) } = ask {
            return Self::OffSite;
        }
        ask.snapshot().map_or(Self::Guest, |name| Self::Snapshot(name.clone()))
    }

    /// Of an operation.
    #[must_use]
    pub fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Snapshot(snapshot) => Self::Snapshot(snapshot.name.clone()),
            Operation::ExpireSnapshot(expiry) => Self::Snapshot(expiry.name.clone()),
            Operation::RollBack(back) => Self::Snapshot(back.snapshot.clone()),
            Operation::UpdateController(update) => Self::Snapshot(update.snapshot.name.clone()),
            Operation::Backup(backup) if backup.key.is_some() => Self::OffSite,
            Operation::Backup(_)
            | Operation::Provision(_)
            | Operation::Start(_)
            | Operation::Stop(_)
            | Operation::Reconfigure(_)
            | Operation::Grow(_)
            | Operation::AttachVolume(_)
            | Operation::QuiescedBackup(_)
            | Operation::PruneBackup(_)
            | Operation::Destroy(_)
            | Operation::RestoreCopy(_)
            | Operation::RestoreTest(_)
            | Operation::ReassignVolume(_)
            | Operation::AdoptGuest(_)
            | Operation::SwapGuest(_) => Self::Guest,
        }
    }
}

/// One that holds or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its operation, or the operation it will be.
    pub id: OperationId,
    /// What it does.
    pub work: Work,
    pub subject: Subject,
}

/// What one guest's lane holds, and how full the host's queue is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// The open operation.
    pub holds: Option<Entry>,
    /// What waits, first come first.
    pub waits: Vec<Entry>,
    /// How many wait on the whole host, in this lane and all others.
    pub host_waits: usize,
}

/// What becomes of one that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is taken, with so many before it.
    Admitted {
        /// 0 is at once.
        place: usize,
    },
    /// It is the same as this one, which is its answer.
    Joins(OperationId),
    /// It is not taken.
    Refused(Why),
    /// It is taken, and these end for it.
    Preempts {
        /// What ends, none of it begun.
        ended: Vec<OperationId>,
        /// So many stay before it.
        place: usize,
    },
    /// The lane is full.
    Busy {
        /// When to ask again.
        retry_after_s: u32,
    },
}

/// Judges one that arrives by all that is in the lane. A refusal weighs more than a full lane, and joining needs no place.
#[must_use]
pub fn admit(lane: &Lane, incoming: Incoming, subject: &Subject) -> Admission {
    let mut ended = Vec::new();
    let holder = lane.holds.iter().map(|entry| (entry, At::Holds));
    for (there, at) in holder.chain(lane.waits.iter().map(|entry| (entry, At::Waits))) {
        let likeness = if there.subject == *subject { Likeness::Same } else { Likeness::Other };
        match meet(incoming, there.work, at, likeness) {
            Meeting::First | Meeting::Waits => {}
            Meeting::Joins => return Admission::Joins(there.id),
            Meeting::Refused(why) => return Admission::Refused(why),
            Meeting::Preempts => ended.push(there.id),
        }
    }
    let waiting = lane.waits.len().saturating_sub(ended.len());
    let place = match incoming {
        Incoming::Release | Incoming::Cancel => return Admission::Admitted { place: 0 },
        Incoming::Work(_) => waiting + usize::from(lane.holds.is_some()),
    };
    let host_waiting = lane.host_waits.saturating_sub(ended.len());
    if waiting >= limits::LANE_WAITING_MAX || host_waiting >= limits::HOST_WAITING_MAX {
        return Admission::Busy {
            retry_after_s: retry_after_s(lane.holds.as_ref().map(|holder| holder.work)),
        };
    }
    if ended.is_empty() { Admission::Admitted { place } } else { Admission::Preempts { ended, place } }
}

/// When a place may be free again: behind heavy work a minute is early, behind anything else ten seconds are enough.
const fn retry_after_s(holder: Option<Work>) -> u32 {
    match holder {
        Some(work) if matches!(work.weight(), Weight::Heavy) => limits::BUSY_HEAVY_S,
        Some(_) | None => limits::BUSY_LIGHT_S,
    }
}

#[cfg(test)]
mod tests;
