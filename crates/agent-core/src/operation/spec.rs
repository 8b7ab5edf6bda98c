//! What every operation says of itself.
//!
//! An operation is one file: its data, and its [`Spec`]. Its kind, its weight and its reach are its row of [`super::registry`].
//! No method has a default but [`Spec::exhausted`], whose default is the step's own row.

use holdfast_protocol::id::{GuestName, GuestUid, SnapshotName, Vmid};
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::backup::{Backup, DuePoint};
use super::step::{Exhausted, Step, Weight};
use crate::gate::Effect;

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
    pub(super) const fn guest(&self) -> Guest<'_> {
        Guest { uid: self.uid, name: &self.name, vmid: Some(self.vmid) }
    }
}

/// The guest that an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest<'a> {
    pub uid: GuestUid,
    pub name: &'a GuestName,
    /// Its number, where it has one before the operation begins.
    pub vmid: Option<Vmid>,
}

/// Whose lanes an operation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Its guest's.
    Guest,
    /// Its guest's, and this other one's. No other operation may touch that one either (I6).
    Also(GuestUid),
    /// The one of all restore tests, not its guest's.
    Tests,
}

/// What an operation is about, besides its guest. Two of the same subject are about the same thing, whatever they do to
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The guest as a whole.
    Guest,
    /// Its off-site backups: one that is asked for is not the local one that is under way.
    OffSite,
    /// A snapshot of it, by name.
    Snapshot(SnapshotName),
}

/// What an operation takes, where that is what it is for, or what it ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes<'a> {
    Nothing,
    /// A snapshot, for this point of a schedule where there is one.
    Snapshot(Option<&'a DuePoint>),
    Backup(&'a Backup),
}

/// Whether an operation counts against the change limit of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeLimit {
    /// It stops, restarts or resizes a guest by a document.
    Counts,
    /// It takes nothing away, or was asked for by its guest or by a signature.
    Exempt,
}

/// Whether operations of a kind count against the change limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Never,
    /// Each, or some: [`super::Operation::change_limit`] says which.
    Possibly,
}

/// How far work reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its guest, or the guests it names.
    Guest,
    /// The host's storages as well: one at a time on a host.
    HostStorage,
}

/// What holds of every operation of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether it reads or writes a whole archive, and so counts against the host's cap on heavy work. Of those that take a
    /// backup one is open on a host at a time: Proxmox runs no two on a node.
    pub weight: Weight,
    /// Which lane it needs besides its guest's.
    pub reach: Reach,
    /// Whether one of them may count against the change limit: only of those is it read later what they were.
    pub counted: Counted,
}

/// The guest that an operation is about, and what it does to lanes. A literal of all fields: nothing can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    pub guest: Guest<'a>,
    pub holds: Holds,
    pub takes: Takes<'a>,
}

/// An operation's own texts.
pub trait Spec {
    fn facts(&self) -> Facts<'_>;

    fn subject(&self) -> Subject;

    /// Its steps, in order. The same operation always has the same steps.
    fn steps(&self) -> Vec<Step>;

    /// Every effect that it has, for the gate, whatever its origin.
    fn effects(&self) -> Vec<Effect>;

    /// The fields of the document that it carries out; none, where it changes none that is held to the document.
    fn applied(&self) -> Option<AppliedBy>;

    /// What follows when no try of one of its steps is left.
    fn exhausted(&self, step: Step) -> Exhausted {
        step.facts().exhausted
    }
}

impl<T: Spec + ?Sized> Spec for Box<T> {
    fn facts(&self) -> Facts<'_> {
        (**self).facts()
    }

    fn subject(&self) -> Subject {
        (**self).subject()
    }

    fn steps(&self) -> Vec<Step> {
        (**self).steps()
    }

    fn effects(&self) -> Vec<Effect> {
        (**self).effects()
    }

    fn applied(&self) -> Option<AppliedBy> {
        (**self).applied()
    }

    fn exhausted(&self, step: Step) -> Exhausted {
        (**self).exhausted(step)
    }
}
