//! Questions to Proxmox that a plan will need answered.
//!
//! What comes in: the document, the records, the range of numbers. What goes out: numbers to ask Proxmox about. Some are
//! named: by the document for a guest that is not there yet, or by the record of a copy. Others are candidates for guests
//! that ask for none by name: our tokens do not see every guest of a cluster, and an operation that is begun for a number
//! that turns out taken leaves nothing but a record. Deliberately absent: the asking, which costs a round trip each.

use std::collections::BTreeSet;

use holdfast_protocol::desired::DesiredGuest;
use holdfast_protocol::id::{GuestUid, StorageName, Vmid};
use holdfast_protocol::storage::TargetState;

use super::restored_copy;
use crate::model::limits;
use crate::model::policy::VmidRange;
use crate::model::records::{Place, Records};

/// Numbers to ask about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    /// Each of these.
    pub named: Vec<Vmid>,
    /// These in turn, until enough of them are free.
    pub candidates: Vec<Vmid>,
    /// How many free ones are enough.
    pub enough: usize,
    /// Storages to observe besides those of the settings: the targets in use.
    pub storages: BTreeSet<StorageName>,
    /// Guests that our records place on the host. While all are listed, nothing is concluded from absence.
    pub expected: BTreeSet<Vmid>,
}

/// What is asked before a plan is made.
#[must_use]
pub fn questions(desired: &[DesiredGuest], records: &Records, range: VmidRange) -> Questions {
    let placed: BTreeSet<GuestUid> = records
        .guests
        .iter()
        .filter(|record| record.place != Place::Nowhere)
        .map(|record| record.uid)
        .collect();
    let absent = || desired.iter().filter(|guest| !placed.contains(&guest.uid));
    let named = absent().filter_map(|guest| guest.vmid).chain(restored_copy::questions(records)).collect();
    let enough = absent().filter(|guest| guest.vmid.is_none()).take(limits::OPERATIONS_AT_ONCE).count();
    let candidates = if enough == 0 { Vec::new() } else { candidates(desired, records, range) };
    let in_use = records.storage.iter().filter(|record| record.status == TargetState::Attached);
    let storages = in_use.filter_map(|record| record.approval.name.as_str().parse().ok()).collect();
    Questions { named, candidates, enough, storages, expected: expected(records) }
}

/// Guests and copies that our records place on the host: one that is not listed is hidden or gone.
fn expected(records: &Records) -> BTreeSet<Vmid> {
    let guests = records.guests.iter().filter_map(|record| record.place.vmid());
    guests.chain(restored_copy::questions(records)).collect()
}

/// In the order in which an operation tries them, and no more than it would try.
fn candidates(desired: &[DesiredGuest], records: &Records, range: VmidRange) -> Vec<Vmid> {
    let used = records.used_vmids.iter().map(|(vmid, _)| *vmid);
    let closed: BTreeSet<Vmid> = used.chain(desired.iter().filter_map(|guest| guest.vmid)).collect();
    range.iter().filter(|vmid| !closed.contains(vmid)).take(limits::VMID_CANDIDATES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{guest, uid, vmid, world};

    #[test]
    fn candidates_are_asked_about_only_while_someone_has_no_number() {
        let mut world = world(1);
        let ask =
            |world: &crate::plan::tests::World| questions(&world.desired, &world.records, world.policy.range);
        let expected: BTreeSet<Vmid> = [vmid(300)].into();
        let none = Questions { expected: expected.clone(), ..Questions::default() };
        assert_eq!(ask(&world), none, "the one guest stands");
        world.desired.push(DesiredGuest { vmid: Some(vmid(302)), ..guest(2) });
        let named = Questions { named: vec![vmid(302)], ..none };
        assert_eq!(ask(&world), named, "a number that is asked for by name");
        world.desired.push(guest(3));
        world.records.used_vmids = vec![(vmid(300), uid(1)), (vmid(303), uid(9))];
        world.policy.range = VmidRange::try_from([vmid(300), vmid(305)]).unwrap();
        let candidates = [301, 304, 305].map(vmid).to_vec();
        assert_eq!(ask(&world), Questions { candidates, enough: 1, ..named });
    }

    #[test]
    fn however_many_are_intended_for_the_questions_are_few() {
        let mut world = world(1);
        world.desired.extend((2..1500).map(guest));
        world.policy.range = VmidRange::try_from([vmid(300), vmid(9_999)]).unwrap();
        let asked = questions(&world.desired, &world.records, world.policy.range);
        assert_eq!(asked.candidates.len(), limits::VMID_CANDIDATES);
        assert_eq!(asked.enough, limits::OPERATIONS_AT_ONCE);
    }
}
