//! The choice of a VMID for a guest that names none.
//!
//! What comes in: every number that was ever given to a guest of ours, those the document asks for by name, those that
//! are seen taken or were found taken when Proxmox was asked ([`super::questions`]), and how many guests are begun whose
//! number is not chosen yet. What goes out: the request that an operation carries; or that the range is full, and then no
//! operation is begun: each would leave a record of a guest that never was, and a hub may ask for any number of guests.
//! Deliberately absent: the choice itself, which is made when the operation runs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::{GuestUid, Vmid};
use holdfast_protocol::operation::OperationKind;

use super::{Context, Inputs};
use crate::model::observed::VmidFact;
use crate::model::records::OpenOperation;
use crate::operation::VmidRequest;

/// How many numbers are left, counted down as operations are proposed, and who had one before.
#[derive(Debug)]
pub(super) struct Numbers {
    fresh: Cell<usize>,
    own: BTreeMap<GuestUid, Vec<Vmid>>,
}

impl Numbers {
    pub(super) fn new(inputs: &Inputs<'_>, pinned: &[Vmid]) -> Self {
        let range = inputs.policy.range;
        let used = inputs.records.used_vmids.iter().map(|(vmid, _)| *vmid);
        let seen = inputs.observed.guests.keys().copied();
        let taken = taken(inputs);
        let closed = used.chain(pinned.iter().copied()).chain(seen).chain(taken);
        let closed = closed.filter(|vmid| range.holds(*vmid));
        let closed: BTreeSet<Vmid> = closed.collect();
        let mut own: BTreeMap<GuestUid, Vec<Vmid>> = BTreeMap::new();
        for (vmid, uid) in inputs.records.used_vmids.iter().filter(|(vmid, _)| range.holds(*vmid)) {
            own.entry(*uid).or_default().push(*vmid);
        }
        // Begun, and its number not chosen yet.
        let chooses =
            |open: &&OpenOperation| open.kind == OperationKind::Provision && !own.contains_key(&open.guest);
        let choosing = inputs.records.open.iter().filter(chooses).count();
        Self { fresh: Cell::new(range.size().saturating_sub(closed.len() + choosing)), own }
    }
}

/// Numbers that a guest has, seen by us or not.
fn taken<'a>(inputs: &Inputs<'a>) -> impl Iterator<Item = Vmid> + use<'a> {
    let facts = inputs.observed.vmids.iter();
    facts.filter(|(_, fact)| **fact == VmidFact::Taken).map(|(vmid, _)| *vmid)
}

/// Any number of the range but those found taken, those the document asks for by name and `lost`: the one that the guest had
/// and lost, and those under which older backups of it lie.
///
/// # Errors
/// That none is left, neither a fresh one nor one that was this guest's before.
pub(super) fn any(
    context: &Context<'_>,
    uid: GuestUid,
    lost: impl IntoIterator<Item = Vmid>,
) -> Result<VmidRequest, (ErrorCode, String)> {
    let range = context.inputs.policy.range;
    let except = context.pinned().iter().copied().chain(lost).chain(taken(context.inputs));
    let except: BTreeSet<Vmid> = except.filter(|vmid| range.holds(*vmid)).collect();
    let except: Vec<Vmid> = except.into_iter().collect();
    let numbers = context.numbers();
    let own = numbers.own.get(&uid).into_iter().flatten();
    if numbers.fresh.get() == 0 && !own.into_iter().any(|vmid| !except.contains(vmid)) {
        let text = format!(
            "every number from {} to {} is taken or was another guest's: root widens vmid_range in agent.toml",
            range.first(),
            range.last()
        );
        return Err((ErrorCode::VmidRangeFull, text));
    }
    Ok(VmidRequest::AnyOf { range, except })
}

/// An operation with this request is proposed for the guest: who comes after it has one number less.
pub(super) fn promise(context: &Context<'_>, uid: GuestUid, goal: &VmidRequest) {
    let numbers = context.numbers();
    let fresh = match goal {
        VmidRequest::Exactly(_) => false,
        VmidRequest::AnyOf { except, .. } => {
            !numbers.own.get(&uid).into_iter().flatten().any(|vmid| !except.contains(vmid))
        }
    };
    if fresh {
        numbers.fresh.set(numbers.fresh.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policy::VmidRange;
    use crate::operation::Operation;
    use crate::plan::Plan;
    use crate::plan::tests::{World, guest, op, uid, vmid, world};

    /// One guest has number 300; `intended` more are wanted, in a range that ends with `last`.
    fn goals(intended: u32, last: u32) -> World {
        let mut world = world(1);
        world.desired.extend((2..2 + intended).map(guest));
        world.records.used_vmids = vec![(vmid(300), uid(1))];
        world.policy.range = VmidRange::try_from([vmid(300), vmid(last)]).unwrap();
        world
    }

    fn full(plan: &Plan) -> usize {
        let conditions = plan.verdicts.iter().flat_map(|verdict| &verdict.conditions);
        conditions.filter(|condition| condition.code == ErrorCode::VmidRangeFull).count()
    }

    #[test]
    fn no_more_operations_are_proposed_than_there_are_numbers() {
        for (intended, last, begun) in [(3, 303, 3), (3, 302, 2), (1500, 302, 2), (3, 300, 0)] {
            let plan = goals(intended, last).plan();
            assert_eq!(
                (plan.actions.len(), full(&plan)),
                (begun, intended as usize - begun),
                "{intended} in {last}"
            );
        }
    }

    #[test]
    fn a_guest_that_is_begun_has_one_of_them() {
        let mut world = goals(3, 302);
        let begun =
            |n: u32| OpenOperation { id: op(u128::from(n)), kind: OperationKind::Provision, guest: uid(n) };
        world.records.open = vec![begun(2)];
        let plan = world.plan();
        assert_eq!((plan.actions.len(), full(&plan)), (1, 1));
        world.records.open.push(begun(70));
        let plan = world.plan();
        assert_eq!((plan.actions.len(), full(&plan)), (0, 2), "also one that is not wanted any more");
    }

    #[test]
    fn a_number_that_was_a_guests_is_that_guests_alone() {
        let mut world = goals(2, 302);
        world.records.used_vmids.extend([(vmid(301), uid(77)), (vmid(302), uid(3))]);
        let plan = world.plan();
        let begun: Vec<GuestUid> = plan.actions.iter().map(|action| action.operation.uid()).collect();
        assert_eq!((begun, full(&plan)), (vec![uid(3)], 1));
    }

    #[test]
    fn a_number_taken_out_of_our_sight_is_not_left() {
        let mut world = goals(2, 302);
        world.observed.vmids = [(vmid(301), VmidFact::Taken), (vmid(302), VmidFact::Unknown)].into();
        let plan = world.plan();
        assert_eq!((plan.actions.len(), full(&plan)), (1, 1), "one may still be free");
        let Operation::Provision(first) = &plan.actions.first().unwrap().operation else { panic!("{plan}") };
        let VmidRequest::AnyOf { except, .. } = &first.number else { panic!("{plan}") };
        assert_eq!(except, &[vmid(301)], "and the operation does not ask again about the other");
        world.observed.vmids.insert(vmid(302), VmidFact::Taken);
        let plan = world.plan();
        assert_eq!((plan.actions.len(), full(&plan)), (0, 2));
    }

    #[test]
    fn what_stands_there_and_what_is_asked_for_by_name_is_not_left() {
        let mut world = goals(2, 302);
        let stranger = world.observed.guests.values().next().cloned().unwrap();
        let stranger = crate::model::observed::ObservedGuest { vmid: vmid(301), ..stranger };
        world.observed.guests.insert(vmid(301), stranger);
        world.desired.last_mut().unwrap().vmid = Some(vmid(302));
        let plan = world.plan();
        assert_eq!(
            (plan.actions.len(), full(&plan)),
            (0, 1),
            "the named one waits for word whether it is free"
        );
    }
}
