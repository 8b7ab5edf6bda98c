//! Whom a notice would reach: by customer, or whoever is told for all others. Where they are reached is not known here.

use std::collections::BTreeSet;

use holdfast_protocol::escrow::Notice;
use holdfast_protocol::id::CustomerId;

/// Who has an address.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// These have one of their own.
    pub customers: BTreeSet<CustomerId>,
    /// Somebody hears for all others.
    pub all_others: bool,
}

impl Reached {
    /// Whether somebody would be told of a read of this customer's escrow.
    #[must_use]
    pub fn notice(&self, customer: &CustomerId) -> Notice {
        if self.all_others || self.customers.contains(customer) { Notice::Webhook } else { Notice::Unset }
    }
}
