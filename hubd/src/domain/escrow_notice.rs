//! Recipients of escrow notices, by customer.

use std::collections::BTreeSet;

use holdfast_protocol::escrow::Notice;
use holdfast_protocol::id::CustomerId;

/// Who has an address.
#[derive(Clone, Debug, Default)]
pub struct Recipients {
    /// These have one of their own.
    pub customers: BTreeSet<CustomerId>,
    /// Somebody hears for all others.
    pub all_others: bool,
}

impl Recipients {
    /// Whether a read of this customer's escrow has a recipient.
    #[must_use]
    pub fn notice(&self, customer: &CustomerId) -> Notice {
        if self.all_others || self.customers.contains(customer) { Notice::Webhook } else { Notice::Unset }
    }
}
