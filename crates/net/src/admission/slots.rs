//! Connection slots, freed when their connection ends.
//!
//! In: the table of [`super`], shared by the loops of one listener. Out: a [`Slot`] for each connection. Nothing here waits,
//! and nothing is decided here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ConnectionId, Limits, Party, Refusal, Table};

/// All slots of a listener. `C` ends a connection that makes room for another.
#[derive(Debug)]
pub struct Slots<M, C>(Arc<Mutex<Table<M, C>>>);

impl<M, C> Clone for Slots<M, C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A newcomer with its slot.
#[derive(Debug)]
pub struct Arrived<M: Ord + Clone, C> {
    pub slot: Slot<M, C>,
    /// The connection that was displaced and must be closed now.
    pub displaced: Option<C>,
}

/// One connection's slot, free again when dropped.
#[derive(Debug)]
pub struct Slot<M: Ord + Clone, C> {
    table: Arc<Mutex<Table<M, C>>>,
    id: ConnectionId,
}

impl<M: Ord + Clone, C> Slots<M, C> {
    /// All are free.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Table::new(limits))))
    }

    /// Other limits, for those who arrive from now on.
    pub fn set_limits(&self, limits: Limits) {
        lock(&self.0).set_limits(limits);
    }

    /// Takes a slot.
    pub fn arrive(&self, party: Party<M>, end: C) -> Result<Arrived<M, C>, Refusal> {
        let (id, displaced) = lock(&self.0).arrive(party, end)?;
        Ok(Arrived { slot: Slot { table: Arc::clone(&self.0), id }, displaced })
    }
}

impl<M: Ord + Clone, C> Slot<M, C> {
    /// Its peer sent something.
    pub fn speaks(&self) {
        lock(&self.table).speaks(self.id);
    }

    /// Its peer showed that it is this member.
    ///
    /// # Errors
    /// [`Refusal::OfOne`].
    pub fn is_member(&self, member: M) -> Result<(), Refusal> {
        lock(&self.table).is_member(self.id, member)
    }
}

impl<M: Ord + Clone, C> Drop for Slot<M, C> {
    fn drop(&mut self) {
        drop(lock(&self.table).leave(self.id));
    }
}

/// No method of the table stops half-way, so the data behind a poisoned lock is whole.
fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
