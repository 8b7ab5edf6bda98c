//! How many connections one address may hold, and all of them together.
//!
//! What comes in: an address. What goes out: a [`Seat`] that is free again when it is dropped, or nothing. A guest that
//! opens connections without end fills its own seats and no others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// All seats.
#[derive(Clone, Debug)]
pub struct Seats {
    taken: Arc<Mutex<HashMap<IpAddr, u32>>>,
    each: u32,
    all: u32,
}

/// One connection's seat.
#[derive(Debug)]
pub struct Seat {
    taken: Arc<Mutex<HashMap<IpAddr, u32>>>,
    address: IpAddr,
}

impl Seats {
    /// So many for each address, and so many together.
    #[must_use]
    pub fn new(each: u32, all: u32) -> Self {
        Self { taken: Arc::default(), each, all }
    }

    /// Takes a seat, if one is free.
    #[must_use]
    pub fn take(&self, address: IpAddr) -> Option<Seat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let together: u32 = taken.values().sum();
        let own = taken.get(&address).copied().unwrap_or(0);
        if own >= self.each || together >= self.all {
            return None;
        }
        taken.insert(address, own + 1);
        Some(Seat { taken: Arc::clone(&self.taken), address })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greedy_address_fills_its_own_seats_only() {
        let (greedy, modest) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let seats = Seats::new(2, 3);
        let first = seats.take(greedy).unwrap();
        let _second = seats.take(greedy).unwrap();
        assert!(seats.take(greedy).is_none());
        let _other = seats.take(modest).unwrap();
        assert!(seats.take(modest).is_none(), "all seats are taken");
        drop(first);
        assert!(seats.take(modest).is_some());
        assert_eq!(seats.taken.lock().unwrap().len(), 2, "an address without a seat is forgotten");
    }
}
