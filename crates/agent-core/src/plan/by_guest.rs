//! A map of guests, asked in the order of their uids.
//!
//! A plan goes over all guests in that order. To walk along is cheaper than to search the map anew for each of them.

use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;

use holdfast_protocol::id::GuestUid;

/// The rest of a map.
pub(super) struct ByGuest<'a, T>(Peekable<btree_map::Iter<'a, GuestUid, T>>);

impl<'a, T> ByGuest<'a, T> {
    pub(super) fn new(all: &'a BTreeMap<GuestUid, T>) -> Self {
        Self(all.iter().peekable())
    }

    /// What the map has for a guest, which comes after every guest that was asked for before.
    pub(super) fn next(&mut self, guest: GuestUid) -> Option<&'a T> {
        while self.0.next_if(|(uid, _)| **uid < guest).is_some() {}
        self.0.next_if(|(uid, _)| **uid == guest).map(|(_, value)| value)
    }
}
