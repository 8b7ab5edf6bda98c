//! Every kind of operation, one row each.

use holdfast_protocol::id::{GuestName, GuestUid, Vmid};
use holdfast_protocol::operation::OperationKind;
use serde::{Deserialize, Serialize};

use super::adopt::Adopt;
use super::applied::AppliedBy;
use super::attach::AttachVolume;
use super::backup::{Backup, DuePoint};
use super::destroy::Destroy;
use super::discard_copy::DiscardCopy;
use super::power::{RestartGuest, Start, Stop};
use super::provision::Provision;
use super::prune::PruneBackup;
use super::quiesced_backup::QuiescedBackup;
use super::reassign_volume::HandOver;
use super::rebase_guest::RebaseGuest;
use super::restore_copy::RestoreCopy;
use super::restore_test::{self, RestoreTest};
use super::roll_back::RollBack;
use super::sizes::{Grow, Reconfigure};
use super::snapshot::{ExpireSnapshot, Snapshot};
use super::spec::{ChangeLimit, Counted, Holds, Reach, Rules, Spec, Subject, Takes};
use super::step::{Exhausted, Step, Weight};
use super::swap_guest::SwapGuest;
use super::update_controller::UpdateController;
use crate::gate::Effect;

/// The guest that an operation makes or takes over.
#[derive(Clone, Copy, Debug)]
pub enum Makes<'a> {
    /// It works on a guest that was made.
    Nothing,
    /// A guest of the document.
    Guest(&'a Provision),
    /// A guest that is there, and that our records do not know.
    Adopted(&'a Adopt),
    /// A copy that is kept next to its guest.
    Copy(&'a RestoreCopy),
    /// A container that takes the place of its guest.
    Successor(&'a RebaseGuest),
    /// A copy that is removed with its test.
    Scratch(&'a RestoreTest),
}

macro_rules! makes {
    (Nothing, $spec:ident) => {{
        let _ = $spec;
        Makes::Nothing
    }};
    ($what:ident, $spec:ident) => {
        Makes::$what($spec)
    };
}

macro_rules! limit {
    (never, $spec:ident) => {{
        let _ = $spec;
        ChangeLimit::Exempt
    }};
    (always, $spec:ident) => {{
        let _ = $spec;
        ChangeLimit::Counts
    }};
    (sometimes, $spec:ident) => {
        $spec.change_limit()
    };
}

macro_rules! counted {
    (never) => {
        Counted::Never
    };
    ($how:ident) => {
        Counted::Possibly
    };
}

/// Makes the enum of all operations, and what is known by the kind alone.
macro_rules! operations {
    ($($(#[$doc:meta])* $kind:ident($spec:ty): $weight:ident, $reach:ident, makes $makes:ident, counts $counts:ident;)+) => {
        /// One operation, with everything it needs to know. Nothing is looked up in the document again once it is open.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Operation {
            $($(#[$doc])* $kind($spec),)+
        }

        impl Operation {
            /// What it does.
            #[must_use]
            pub const fn kind(&self) -> OperationKind {
                match self {
                    $(Self::$kind(_) => OperationKind::$kind,)+
                }
            }

            /// The guest that it makes or takes over.
            #[must_use]
            pub fn makes(&self) -> Makes<'_> {
                match self {
                    $(Self::$kind(spec) => makes!($makes, spec),)+
                }
            }

            /// Whether it counts against the change limit of documents.
            #[must_use]
            pub const fn change_limit(&self) -> ChangeLimit {
                match self {
                    $(Self::$kind(spec) => limit!($counts, spec),)+
                }
            }

            fn spec(&self) -> &dyn Spec {
                match self {
                    $(Self::$kind(spec) => spec,)+
                }
            }
        }

        /// What holds of every operation of a kind.
        #[must_use]
        pub const fn rules(kind: OperationKind) -> Rules {
            match kind {
                $(OperationKind::$kind => Rules {
                    weight: Weight::$weight,
                    reach: Reach::$reach,
                    counted: counted!($counts),
                },)+
            }
        }
    };
}

operations! {
    /// Makes a guest by restoring the golden archive.
    Provision(Box<Provision>): Heavy, Guest, makes Guest, counts never;
    /// Starts a guest.
    Start(Start): Light, Guest, makes Nothing, counts never;
    /// Stops a guest.
    Stop(Stop): Light, Guest, makes Nothing, counts always;
    /// Shuts a running guest down and starts it again. Work orders have a limit of their own.
    RestartGuest(RestartGuest): Light, Guest, makes Nothing, counts never;
    /// Changes CPU, memory, swap, or puts protection back.
    Reconfigure(Reconfigure): Light, Guest, makes Nothing, counts sometimes;
    /// Makes one disk larger.
    Grow(Grow): Light, Guest, makes Nothing, counts never;
    /// Makes a volume and mounts it in a guest that was made.
    AttachVolume(Box<AttachVolume>): Light, Guest, makes Nothing, counts never;
    /// Takes a snapshot.
    Snapshot(Snapshot): Light, Guest, makes Nothing, counts never;
    /// Removes a snapshot of ours.
    ExpireSnapshot(ExpireSnapshot): Light, Guest, makes Nothing, counts never;
    /// Rolls a guest back to a snapshot of ours.
    RollBack(RollBack): Light, Guest, makes Nothing, counts never;
    /// Takes a backup.
    Backup(Backup): Backup, Guest, makes Nothing, counts never;
    /// Takes a backup within a quiesce window.
    QuiescedBackup(QuiescedBackup): Backup, Guest, makes Nothing, counts never;
    /// Removes a backup that the retention in force no longer keeps.
    PruneBackup(PruneBackup): Light, Guest, makes Nothing, counts never;
    /// Destroys a guest, by a signature.
    Destroy(Box<Destroy>): Light, Guest, makes Nothing, counts never;
    /// Destroys a copy of a guest, by a signature.
    DiscardCopy(Box<DiscardCopy>): Light, Guest, makes Nothing, counts never;
    /// Restores a backup of a guest next to it.
    RestoreCopy(Box<RestoreCopy>): Heavy, Guest, makes Copy, counts never;
    /// Tries a backup.
    RestoreTest(Box<RestoreTest>): Heavy, Guest, makes Scratch, counts never;
    /// Hands a volume to another guest, by a signature. Two with exchanged ends would each hold what the other waits for.
    ReassignVolume(Box<HandOver>): Light, HostStorage, makes Nothing, counts never;
    /// Puts a guest on a newer golden image, by a signature.
    RebaseGuest(Box<RebaseGuest>): Heavy, Guest, makes Successor, counts never;
    /// Takes over a guest that our records do not know, by a signature.
    AdoptGuest(Box<Adopt>): Light, Guest, makes Adopted, counts never;
    /// Puts a copy of a guest in its place, by a signature.
    SwapGuest(Box<SwapGuest>): Light, Guest, makes Nothing, counts never;
    /// Exchanges the controller in a guest.
    UpdateController(Box<UpdateController>): Light, Guest, makes Nothing, counts never;
}

impl Operation {
    /// To which guest.
    #[must_use]
    pub fn uid(&self) -> GuestUid {
        self.spec().facts().guest.uid
    }

    /// That guest's name.
    #[must_use]
    pub fn name(&self) -> &GuestName {
        self.spec().facts().guest.name
    }

    /// The guest's number, where it has one before the operation begins.
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        self.spec().facts().guest.vmid
    }

    /// Whose lane it holds: its guest's, but tests have one of their own.
    #[must_use]
    pub fn lane(&self) -> GuestUid {
        match self.spec().facts().holds {
            Holds::Guest | Holds::Also(_) => self.uid(),
            Holds::Tests => restore_test::LANE,
        }
    }

    /// The other guest that it holds, when there are two. No other operation may touch that one either (I6).
    #[must_use]
    pub fn other(&self) -> Option<GuestUid> {
        match self.spec().facts().holds {
            Holds::Also(other) => Some(other),
            Holds::Guest | Holds::Tests => None,
        }
    }

    /// What it is about, besides its guest.
    #[must_use]
    pub fn subject(&self) -> Subject {
        self.spec().subject()
    }

    /// The backup that it takes, where that is what it is for, or what it ends with.
    #[must_use]
    pub fn backup(&self) -> Option<&Backup> {
        match self.spec().facts().takes {
            Takes::Backup(backup) => Some(backup),
            Takes::Nothing | Takes::Snapshot(_) => None,
        }
    }

    /// The point of a schedule that it is begun for.
    #[must_use]
    pub fn due(&self) -> Option<&DuePoint> {
        match self.spec().facts().takes {
            Takes::Backup(backup) => backup.due.as_ref(),
            Takes::Snapshot(due) => due,
            Takes::Nothing => None,
        }
    }

    /// Its steps, in order. The same operation always has the same steps.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.spec().steps()
    }

    /// Every effect that it has, for the gate.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        self.spec().effects()
    }

    /// The fields that it carries out; none, where it changes none that is held to the document.
    #[must_use]
    pub fn applied(&self) -> Option<AppliedBy> {
        self.spec().applied()
    }

    /// What follows when no try of one of its steps is left.
    #[must_use]
    pub fn exhausted(&self, step: Step) -> Exhausted {
        self.spec().exhausted(step)
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
