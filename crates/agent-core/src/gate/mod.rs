//! The reversibility gate.
//!
//! What comes in: an [`Effect`] on the world, the [`Provenance`] by which the request came, and what was approved. What goes
//! out: [`Verdict`]. It judges the effect, not the verb and not the road. The `match` is exhaustive and names every
//! effect; what is not in the table cannot be said. Deliberately absent: any effect of
//! its own, and a way to be switched off.
//!
//! | module | what |
//! | --- | --- |
//! | [`archive`] | may this archive be restored |
//! | [`layout`] | which networks and disks a copy of its guest gets |
//! | [`change_limit`] | how many guests may be touched at once without a signature |
//! | [`deletion`] | what is lost with a backup |
//! | [`entry`] | what a signature allows to be done to a target's entry in Proxmox |
//! | [`offsite`] | what an approval allows to be asked of a backup server |
//! | [`growth`] | by how much guests may grow in a day without a signature |
//! | [`pending_approval`] | what an operator would sign |
//! | [`adoption`] | may this guest be taken over |
//! | [`job_validation`] | may this signed job be taken |
//! | [`only_copy`] | may a storage target be let go |
//! | [`protection`] | what of a request about backups is raised, and what is held |
//! | [`restore`] | may a host take a lost one's place, and does this one stop serving |
//! | [`retention`] | which backups may go by the retention in force |
//! | [`restore_capacity`] | whether a storage has room for what is restored |
//! | [`warrant`] | what an operator signed |

pub mod adoption;
pub mod archive;
pub mod change_limit;
pub mod deletion;
pub mod entry;
pub mod growth;
pub mod job_validation;
pub mod layout;
pub mod offsite;
pub mod only_copy;
pub mod pending_approval;
pub mod protection;
pub mod restore;
pub mod restore_capacity;
pub mod retention;
pub mod warrant;

use holdfast_protocol::id::{GoldenVersion, GuestUid, OperationId};

use holdfast_protocol::job::act::ReleaseVersion;

use crate::model::policy::Sha256Hex;

/// Something that would happen to the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    // What can be taken back, or adds without taking away.
    /// Restores into a VMID that no guest has.
    RestoreFresh {
        /// The image it is made from.
        golden: GoldenVersion,
        /// What the image's bytes hash to.
        sha256: Sha256Hex,
    },
    /// Restores a guest that is gone from its own backup, into a VMID that no guest has.
    RestoreOwnBackup,
    /// Restores a backup of a guest that lives, into a VMID that no guest has, and keeps the copy.
    RestoreCopy,
    /// Restores a backup into a scratch guest without a way out, and starts it.
    TryBackup,
    /// Starts a guest.
    Start,
    /// Makes a disk larger.
    GrowDisk,
    /// Makes and attaches a volume that was not there.
    AttachNewVolume,
    /// Takes protection off a guest of ours while a volume is attached, and puts it back in the same operation.
    LiftToAttach,
    /// Takes a snapshot.
    Snapshot,
    /// Takes a backup.
    Backup,
    /// Sets our mark or protection on a guest of ours.
    Protect,
    // What this agent made itself.
    /// Destroys or changes back what an operation made, in its undo.
    UndoOwnMaking {
        /// The operation that undoes.
        undoing: OperationId,
    },
    /// Destroys a scratch guest.
    DestroyScratch,
    // What the brake counts.
    /// Stops or restarts a guest.
    StopOrRestart,
    /// Changes CPU, memory or swap, down as well as up.
    Reconfigure,
    // What takes away under a policy.
    /// Removes a snapshot.
    ExpireSnapshot(Expiry),
    /// Removes a backup by the retention policy.
    PruneBackup(Prune),
    /// Rolls a guest back to a snapshot.
    RollBack(RollBack),
    // What loses data, or its protection, or lets strange code see it.
    /// Destroys a guest.
    DestroyGuest,
    /// Destroys a copy of a guest: a restored one, or what the guest was before.
    DiscardCopy,
    /// Deletes a backup that the retention in force keeps.
    DeleteBackup,
    /// Takes a volume from one guest and gives it to another of the same customer.
    ReassignVolume,
    /// Puts a copy of a guest, an earlier state of it, in its place. The guest itself is kept.
    SwapGuest,
    /// Puts a container of a newer image in a guest's place, with the guest's volumes. The guest's root disk stays behind
    /// with what was the guest.
    RebaseGuest,
    /// Makes a disk smaller.
    ShrinkDisk,
    /// Attaches a storage target that was not approved.
    AttachUnapprovedTarget,
    /// Detaches, wipes, re-formats or re-points a storage.
    LoseTarget,
    /// Lowers retention, or switches off, thins out or narrows a backup.
    LowerProtection,
    /// Asks for more backups, longer kept, or for programs that stand still, than operators let documents ask for.
    RaiseBeyond,
    /// Replaces or overwrites a key or an escrow.
    ReplaceKey,
    /// Takes over a guest that our records do not know.
    Adopt,
    /// Puts this controller in the place of a guest's own.
    ReplaceController {
        version: ReleaseVersion,
        /// What its bytes hash to.
        sha256: Sha256Hex,
    },
    /// Runs code that no operator approved where it sees a customer's data.
    RunUnapproved,
}

/// Which snapshot would be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// One that the agent made, past its time.
    OwnPastItsTime,
    /// One that the agent made because this guest had asked for it, which asks for its removal now.
    OwnAsked(GuestUid),
    /// One that the agent took by a schedule, and that the retention in force no longer keeps.
    OwnOutsidePolicy,
    Other,
}

/// Which backup would be pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// One of ours that the retention in force no longer keeps, with a newer one next to it.
    OutsidePolicy,
    /// The newest proved one.
    NewestProved,
    /// One that the retention in force keeps.
    Kept,
    /// The last one that protects.
    Last,
    /// The newest that holds a mount of which the newest backup has nothing.
    OnlyHolder,
}

/// Which guest would be rolled back, and at whose request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollBack {
    /// The guest itself, to a snapshot made through its own local API; nothing outside any backup is in it.
    Itself(GuestUid),
    /// The same, but it has bulk volumes and its specification does not allow that.
    ItselfWithBulk,
    Other,
}

/// The road by which a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// The desired document.
    Document,
    /// A guest's own local API.
    LocalApi(GuestUid),
    /// The agent's own schedule.
    Schedule,
    /// A job whose signature was checked.
    SignedJob,
    /// An order of the hub without a signature. It passes what no schedule would need a signature for, and of that only
    /// what orders are for.
    WorkOrder,
    /// Recovery after a crash or a failed step, by the journal of this operation.
    Journal(OperationId),
    /// The agent's record of scratch guests.
    ScratchRecord,
    /// A new version of the agent, about itself.
    Update,
    /// The making anew of a whole host from its backups.
    Restore,
}

/// What was approved beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approved {
    /// Goldens named in the settings or released by a signature: these bytes under this version, and no others.
    pub goldens: std::collections::BTreeSet<(GoldenVersion, Sha256Hex)>,
    /// Controllers released by a signature.
    pub controllers: std::collections::BTreeSet<(ReleaseVersion, Sha256Hex)>,
}

impl Approved {
    /// Whether guests may be made of these bytes under this version.
    #[must_use]
    pub fn has(&self, golden: &GoldenVersion, sha256: &Sha256Hex) -> bool {
        self.goldens.iter().any(|(version, bytes)| (version, bytes) == (golden, sha256))
    }
}

/// May it happen?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Free,
    /// When an operator signs for it.
    NeedsSignature(&'static str),
    Forbidden(&'static str),
}

/// Judges one effect.
#[must_use]
pub fn gate(effect: &Effect, provenance: Provenance, approved: &Approved) -> Verdict {
    match base(effect, provenance, approved) {
        Verdict::Free if provenance == Provenance::WorkOrder && !is_for_orders(effect) => {
            Verdict::Forbidden("no work order does this: sign a job for it")
        }
        // A checked signature is for exactly its target; the provenance says that it was checked.
        Verdict::NeedsSignature(_) if provenance == Provenance::SignedJob => Verdict::Free,
        verdict => verdict,
    }
}

/// What a stolen hub may order. Each of these has a limit of its own.
const fn is_for_orders(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Backup | Effect::Snapshot | Effect::TryBackup | Effect::StopOrRestart | Effect::Start
    )
}

fn base(effect: &Effect, provenance: Provenance, approved: &Approved) -> Verdict {
    use Verdict::{Forbidden, Free, NeedsSignature};
    match effect {
        Effect::RestoreFresh { golden, sha256 } if approved.has(golden, sha256) => Free,
        Effect::RestoreFresh { .. } => NeedsSignature("no operator approved this golden image"),
        Effect::RestoreOwnBackup
        | Effect::RestoreCopy
        | Effect::TryBackup
        | Effect::Start
        | Effect::GrowDisk
        | Effect::AttachNewVolume
        | Effect::LiftToAttach
        | Effect::Snapshot
        | Effect::Backup
        | Effect::Protect
        | Effect::StopOrRestart
        | Effect::Reconfigure => Free,
        Effect::UndoOwnMaking { undoing } if provenance == Provenance::Journal(*undoing) => Free,
        Effect::UndoOwnMaking { .. } => {
            Forbidden("only the operation that made it may undo it, by its own journal")
        }
        Effect::DestroyScratch if provenance == Provenance::ScratchRecord => Free,
        Effect::DestroyScratch => Forbidden("scratch is only ever the agent's own record's word"),
        Effect::ExpireSnapshot(Expiry::OwnPastItsTime | Expiry::OwnOutsidePolicy)
        | Effect::PruneBackup(Prune::OutsidePolicy) => Free,
        Effect::ExpireSnapshot(Expiry::OwnAsked(guest)) if provenance == Provenance::LocalApi(*guest) => Free,
        Effect::ExpireSnapshot(Expiry::Other | Expiry::OwnAsked(_)) => {
            NeedsSignature("the snapshot is not ours, or its time has not come")
        }
        Effect::PruneBackup(Prune::NewestProved) => NeedsSignature("it is the newest proved backup"),
        Effect::PruneBackup(Prune::Kept) => NeedsSignature("the retention in force keeps it"),
        Effect::PruneBackup(Prune::Last) => NeedsSignature("it is the last backup that protects"),
        Effect::PruneBackup(Prune::OnlyHolder) => NeedsSignature("newer backups lack a volume that it holds"),
        Effect::RollBack(RollBack::Itself(guest)) if provenance == Provenance::LocalApi(*guest) => Free,
        Effect::RollBack(_) => NeedsSignature("what was written since the snapshot would be lost"),
        Effect::DestroyGuest | Effect::ShrinkDisk => NeedsSignature("customer data would be lost"),
        Effect::DiscardCopy => NeedsSignature("what was kept of a guest would be lost"),
        Effect::DeleteBackup => NeedsSignature("a backup would be lost that is kept"),
        Effect::ReassignVolume => NeedsSignature("a guest would lose a volume to another"),
        Effect::SwapGuest => NeedsSignature("a guest would go back to an earlier state"),
        Effect::RebaseGuest => NeedsSignature("what is on a guest's root disk would stay behind"),
        Effect::AttachUnapprovedTarget => NeedsSignature("no operator approved this storage target"),
        Effect::LoseTarget => NeedsSignature("what lies on the storage would be out of reach or lost"),
        Effect::LowerProtection => NeedsSignature("customer data would be less protected"),
        Effect::RaiseBeyond => {
            NeedsSignature("it is more than the operators' policy lets documents ask of backups")
        }
        Effect::ReplaceKey => NeedsSignature("backups made with the old key may become unreadable"),
        Effect::Adopt => NeedsSignature("our records do not know this guest"),
        Effect::ReplaceController { version, sha256 }
            if approved.controllers.contains(&(version.clone(), sha256.clone())) =>
        {
            Free
        }
        Effect::ReplaceController { .. } | Effect::RunUnapproved => {
            NeedsSignature("no operator approved this code")
        }
    }
}

#[cfg(test)]
mod tests;
