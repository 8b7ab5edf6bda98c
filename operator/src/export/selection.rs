//! Which hosts and guests are in an export.
//!
//! In: the hosts of the state at both ends. Out: whether a guest, a host or an alert is in it. With a customer or a filter only
//! guests that are known to be selected are: what is not known is left out.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::{CustomerId, GuestUid, HostId, HostName};
use holdfast_protocol::state::{StateGuest, StateHost, StateScope};
use serde::Serialize;

/// What was asked for, in the manifest.
#[derive(Clone, Debug, Serialize)]
pub struct Scope {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<CustomerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<GuestFilter>,
    pub hosts: usize,
    pub guests: usize,
}

/// What is known of a selected guest.
#[derive(Clone, Debug)]
pub struct SelectedGuest {
    pub host: HostId,
    pub name: String,
    /// Whether a restore of it was ever tested.
    pub is_tested: bool,
}

/// The hosts and guests of an export.
#[derive(Debug, Default)]
pub struct Selection {
    pub customer: Option<CustomerId>,
    pub filter: Option<GuestFilter>,
    /// What the filter selects, as the hub says now.
    filtered: BTreeSet<GuestUid>,
    pub hosts: BTreeMap<HostId, HostName>,
    pub guests: BTreeMap<GuestUid, SelectedGuest>,
}

impl Selection {
    pub fn new(
        customer: Option<CustomerId>,
        filter: Option<GuestFilter>,
        filtered: BTreeSet<GuestUid>,
    ) -> Self {
        Self { customer, filter, filtered, ..Self::default() }
    }

    /// Whether everything is in it.
    pub const fn is_everything(&self) -> bool {
        self.customer.is_none() && self.filter.is_none()
    }

    pub fn scope(&self) -> Scope {
        let (customer, filter) = (self.customer.clone(), self.filter.clone());
        Scope { customer, filter, hosts: self.hosts.len(), guests: self.guests.len() }
    }

    /// As the head of a document says it.
    pub fn state_scope(&self) -> StateScope {
        StateScope { customer: self.customer.clone(), filter: self.filter.clone() }
    }

    fn selects(&self, guest: &StateGuest) -> bool {
        let of_customer = self.customer.is_none() || guest.customer == self.customer;
        let of_filter = self.filter.is_none() || guest.uid.is_some_and(|uid| self.filtered.contains(&uid));
        of_customer && of_filter
    }

    /// The part of a host that is in it; the host and its guests are known from then on.
    pub fn take(&mut self, host: StateHost) -> Option<StateHost> {
        let host = if self.is_everything() { host } else { host.narrowed(|guest| self.selects(guest))? };
        self.hosts.insert(host.id, host.name.clone());
        for guest in &host.guests {
            let Some(uid) = guest.uid else { continue };
            let is_tested = !guest.observed.tested.is_empty();
            let known = self.guests.get(&uid).is_some_and(|known| known.is_tested);
            let one =
                SelectedGuest { host: host.id, name: guest.name.clone(), is_tested: is_tested || known };
            self.guests.insert(uid, one);
        }
        Some(host)
    }

    /// Whether a guest is in it.
    pub fn has(&self, uid: GuestUid) -> bool {
        self.is_everything() || self.guests.contains_key(&uid)
    }

    pub fn host_name(&self, id: HostId) -> Option<&HostName> {
        self.hosts.get(&id)
    }
}
