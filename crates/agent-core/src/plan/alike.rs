//! Promises that say the same, compared once for each pair.
//!
//! The store reads promises anew for each plan, and guests share them. So two are compared by what they say, and what
//! came of it is looked up by where both are in memory. The caller holds both as long as it asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_protocol::protection::Protection;

/// What was compared in one plan.
#[derive(Debug, Default)]
pub(super) struct AlikePromises(BTreeMap<(usize, usize), bool>);

impl AlikePromises {
    pub(super) fn are(&mut self, was: &Arc<Protection>, is: &Arc<Protection>) -> bool {
        let both = (Arc::as_ptr(was).addr(), Arc::as_ptr(is).addr());
        *self.0.entry(both).or_insert_with(|| was == is)
    }
}
