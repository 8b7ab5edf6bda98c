//! The condition of a way into the host that is open.
//!
//! In: the status of root's program, and the guests. Out: one finding for the host, and one for each customer with guests,
//! on the first of these: so the receivers of each customer hear of it, at its opening and at its end.

use std::collections::BTreeMap;

use holdfast_protocol::condition::{ConditionCode, Subject};
use holdfast_protocol::id::{CustomerId, GuestUid};

use super::{Finding, HostKnowledge};

pub(super) fn all(known: &HostKnowledge<'_>) -> Vec<Finding> {
    let Some(open) = known.break_glass.and_then(|status| status.open()) else { return Vec::new() };
    let signers: Vec<&str> = open.signers.iter().map(|name| name.as_str()).collect();
    let what = format!(
        "way {} into the host is open until {}, ordered by {}: {}",
        open.way,
        open.closes_at,
        signers.join(", "),
        open.reason.as_str()
    );
    let since = open.opened_at.at();
    let of = |subject, text: String| Finding::new(ConditionCode::BreakGlassOpen, subject, text).since(since);
    let mut first: BTreeMap<&CustomerId, GuestUid> = BTreeMap::new();
    for guest in &known.view.guests {
        if let (Some(customer), Some(uid)) = (&guest.customer, guest.uid) {
            first.entry(customer).and_modify(|least| *least = uid.min(*least)).or_insert(uid);
        }
    }
    let customers = first.into_iter().map(|(customer, uid)| {
        of(Subject::Guest { uid }, format!("{what}; it reaches the guests of {customer}"))
    });
    std::iter::once(of(Subject::Host {}, what.clone())).chain(customers).collect()
}
