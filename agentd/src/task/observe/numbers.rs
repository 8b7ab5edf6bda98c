//! Answers about single VMIDs.
//!
//! In: the plan's questions and Proxmox's list. Out: which numbers are free. A number in the list is taken; one that is
//! not may be a guest's that our tokens do not see, so Proxmox is asked. Numbers that the document or a record names
//! are asked about each time. Of the candidates of the range only as many are asked about as guests need one, and an
//! answer counts for a minute: the operation that takes one asks again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_protocol::id::Vmid;

use crate::model::observed::VmidFact;
use crate::plan::Questions;
use crate::port::pve::resources::Resources;
use crate::port::pve::{Pve, VmidUse};

/// How long an answer about a candidate counts.
const COUNTS: Duration = Duration::from_secs(60);

/// Answers about candidates, and when they came.
#[derive(Default)]
pub(super) struct Numbers(BTreeMap<Vmid, (Duration, VmidFact)>);

impl Numbers {
    pub(super) async fn ask(
        &mut self,
        pve: &dyn Pve,
        ask: &Questions,
        resources: &Resources,
        now: Duration,
    ) -> BTreeMap<Vmid, VmidFact> {
        let listed: BTreeSet<Vmid> = resources.guests.iter().map(|guest| guest.vmid).collect();
        let mut facts = BTreeMap::new();
        for vmid in &ask.named {
            let fact = if listed.contains(vmid) { VmidFact::Taken } else { number(pve, *vmid).await };
            facts.insert(*vmid, fact);
        }
        self.0.retain(|_, (at, _)| now.saturating_sub(*at) < COUNTS);
        let mut missing = ask.enough;
        for vmid in ask.candidates.iter().filter(|vmid| !listed.contains(vmid)) {
            if missing == 0 {
                break;
            }
            let fact = match self.0.get(vmid) {
                Some((_, fact)) => *fact,
                None => number(pve, *vmid).await,
            };
            if fact != VmidFact::Unknown {
                self.0.entry(*vmid).or_insert((now, fact));
            }
            missing -= usize::from(fact == VmidFact::Free);
            facts.insert(*vmid, fact);
        }
        facts
    }
}

/// A call without an answer proves nothing.
pub(super) async fn number(pve: &dyn Pve, vmid: Vmid) -> VmidFact {
    match pve.vmid_use(vmid).await {
        Ok(VmidUse::Free) => VmidFact::Free,
        Ok(VmidUse::Taken) => VmidFact::Taken,
        Err(_) => VmidFact::Unknown,
    }
}
