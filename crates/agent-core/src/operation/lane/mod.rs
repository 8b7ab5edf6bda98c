//! The rules of lanes: order, waiting and refusal.
//!
//! One lane for each guest: its open operation holds it, requests wait in it, in the order of arrival. One lane for
//! storage work of the whole host, one for its backups, and one for heavy work (whole archives). Every lane is bounded.
//! What comes in: what is in the lanes, and what arrives. What goes out: an [`Admission`] for one that arrives
//! ([`admit`]), and the requests that begin now ([`turn::turns`]). Pure. Deliberately absent: keeping the queues
//! (`port::store::request`, `execute::slots`).
//!
//! | module | what |
//! | --- | --- |
//! | [`table`] | the pre-emption table |
//! | [`turn`] | which requests begin now |

pub mod table;
pub mod turn;

use holdfast_protocol::id::{GuestUid, OperationId};
use holdfast_protocol::operation::OperationKind;
use holdfast_protocol::protection::Tier;

use super::registry::rules;
use super::restore_test;
pub use super::spec::Subject;
use crate::model::limits;
use crate::model::request::{Ask, Ordered, OrderedAct};
use table::{At, Likeness, Meeting, Why, meet};

/// What comes to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Releases a stopped app: an app never stands still while something else is waited for.
    Release,
    /// Cancels what waits.
    Cancel,
    /// Anything that waits in the queue.
    Work(OperationKind),
}

impl Incoming {
    /// Everything that can come, those that go first at the head.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Release, Self::Cancel].into_iter().chain(OperationKind::ALL.iter().copied().map(Self::Work))
    }

    /// As the table names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Cancel => "cancel",
            Self::Work(work) => work.as_str(),
        }
    }
}

impl Subject {
    /// Of what is asked for.
    #[must_use]
    pub fn of_ask(ask: &Ask) -> Self {
        let off_site = Some(Tier::OffSite);
        if matches!(ask, Ask::Backup { tier } | Ask::Ordered(Ordered { act: OrderedAct::Backup { tier }, .. }) if *tier == off_site)
        {
            return Self::OffSite;
        }
        ask.snapshot().map_or(Self::Guest, |name| Self::Snapshot(name.clone()))
    }
}

/// The lane that a request of this guest waits in: the guest's own. A restore test keeps none of its requests waiting.
#[must_use]
pub const fn waits_in(ask: &Ask, guest: GuestUid) -> GuestUid {
    match ask {
        Ask::Ordered(Ordered { act: OrderedAct::RestoreTest { .. }, .. }) => restore_test::LANE,
        Ask::Ordered(_)
        | Ask::Snapshot { .. }
        | Ask::ExpireSnapshot { .. }
        | Ask::RollBack { .. }
        | Ask::Backup { .. }
        | Ask::QuiescedBackup { .. } => guest,
    }
}

/// One that holds or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its operation, or the operation it will be.
    pub id: OperationId,
    /// What it does.
    pub work: OperationKind,
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
        /// When to send the request again.
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
const fn retry_after_s(holder: Option<OperationKind>) -> u32 {
    match holder {
        Some(work) if rules(work).weight.is_heavy() => limits::BUSY_HEAVY_S,
        Some(_) | None => limits::BUSY_LIGHT_S,
    }
}

#[cfg(test)]
mod tests;
