//! The waiting operations that may begin now.
//!
//! By arrival: one mutating operation on each guest, one on the host's storages, one backup on the host, and two caps.
//! One cap is on all operations, the other on heavy ones, so that a night of restores leaves places for a start. A
//! waiting operation also keeps those behind it in its own lanes waiting. So no operation is overtaken in a lane, and
//! none waits for ever. There is one exception: a backup that waits only for the other guests' backups before it delays
//! nothing else of its own guest. A night of backups is hours long, and a copy that hangs is longer: a guest is
//! started, stopped and updated meanwhile. Deliberately absent: what the requests are.

use std::collections::BTreeSet;

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::operation::OperationKind;

use super::super::registry::rules;
use super::super::spec::Reach;
use crate::model::limits;

/// When something arrived, as a number that only grows. Requests count by their row; a request of the document arrived when
/// the agent first saw that it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arrival(u64);

impl Arrival {
    /// Of the request with this number.
    #[must_use]
    pub const fn of_request(serial: u64) -> Self {
        Self(serial.saturating_mul(2))
    }

    /// Of a request that was first seen when this was the last request.
    #[must_use]
    pub const fn after_request(serial: u64) -> Self {
        Self(serial.saturating_mul(2).saturating_add(1))
    }
}

/// OperationKind on its guests: one, or two for what moves between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which guests' lanes it needs.
    pub guests: Vec<GuestUid>,
    /// What it does.
    pub work: OperationKind,
}

/// One that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What it needs.
    pub claim: Claim,
    /// When it came.
    pub arrival: Arrival,
}

/// What is taken on a host.
#[derive(Clone, Debug, Default)]
struct Occupied {
    guests: BTreeSet<GuestUid>,
    storage: usize,
    backups: usize,
    heavy: usize,
    all: usize,
}

/// What keeps a request waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Its guests, the host's storages, or a full host.
    InItsLanes,
    /// Nothing but the backup at work for another guest.
    ForABackup,
}

impl Occupied {
    fn take(&mut self, claim: &Claim) {
        self.guests.extend(claim.guests.iter().copied());
        self.storage += usize::from(rules(claim.work).reach == Reach::HostStorage);
        self.backups += usize::from(rules(claim.work).weight.is_backup());
        self.heavy += usize::from(rules(claim.work).weight.is_heavy());
        self.all += 1;
    }

    fn waits(&self, claim: &Claim) -> Option<Waits> {
        let heavy_full = rules(claim.work).weight.is_heavy() && self.heavy >= limits::HEAVY_OPEN_MAX;
        let storage_full =
            rules(claim.work).reach == Reach::HostStorage && self.storage >= limits::STORAGE_AT_ONCE;
        let guest_taken = claim.guests.iter().any(|guest| self.guests.contains(guest));
        let host_full = self.all >= limits::OPERATIONS_AT_ONCE;
        if host_full || heavy_full || storage_full || guest_taken {
            return Some(Waits::InItsLanes);
        }
        (rules(claim.work).weight.is_backup() && self.backups >= limits::BACKUPS_AT_ONCE)
            .then_some(Waits::ForABackup)
    }
}

/// The places of the requests that begin now, in the order in which they begin.
#[must_use]
pub fn turns(open: &[Claim], goals: &[Waiting]) -> Vec<usize> {
    let mut taken = Occupied::default();
    for claim in open {
        taken.take(claim);
    }
    let mut order: Vec<usize> = (0..goals.len()).collect();
    // The sort is stable: requests that arrived at once keep the order in which they were given.
    order.sort_by_key(|place| goals.get(*place).map(|goal| goal.arrival));
    let mut begin = Vec::new();
    let mut storage_waits = false;
    for place in order {
        let Some(Waiting { claim, .. }) = goals.get(place) else { continue };
        let storage = rules(claim.work).reach == Reach::HostStorage;
        match taken.waits(claim) {
            None if !(storage && storage_waits) => {
                taken.take(claim);
                begin.push(place);
            }
            Some(Waits::ForABackup) => {}
            // A later one on the same guests, or for the same lane, stays behind it.
            None | Some(Waits::InItsLanes) => {
                taken.guests.extend(claim.guests.iter().copied());
                storage_waits |= storage;
            }
        }
    }
    begin
}
