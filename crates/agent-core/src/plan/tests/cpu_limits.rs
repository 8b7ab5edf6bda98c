//! Tests of limits of CPU time and of given shares.

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::AssignedShare;

use super::*;
use crate::model::cpu::CpuFacts;

fn limited(world: &mut World, limits: serde_json::Value) {
    world.desired[0].limits = serde_json::from_value(limits).unwrap();
}

/// What the plan changes of the first guest's limits, and why.
fn change_of(world: &World) -> Option<(serde_json::Value, String)> {
    let plan = world.plan();
    let action = plan.actions.first()?;
    let Operation::Reconfigure(change) = &action.operation else { panic!("{:?}", action.operation) };
    assert!(change.cores.is_none() && change.network.is_none(), "{change:?}");
    Some((serde_json::to_value(change.limits).unwrap(), action.reason.clone()))
}

#[test]
fn limits_follow_the_document_and_drift_is_put_back() {
    let mut world = world(2);
    assert_eq!(change_of(&world), None);
    limited(&mut world, json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 }));
    let (limits, reason) = change_of(&world).unwrap();
    assert_eq!(limits, json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 }));
    assert_eq!(reason, "CPU time unlimited, wanted 150 % of a core; CPU weight usual, wanted 50");
    world.facts(300).cpu = CpuFacts::read(Some("1.5"), Some("50"));
    assert_eq!(change_of(&world), None);
    // Somebody raised it by hand.
    world.facts(300).cpu = CpuFacts::read(Some("4"), Some("50"));
    let (limits, reason) = change_of(&world).unwrap();
    assert_eq!(
        (limits, reason.as_str()),
        (json!({ "cpu": { "core_percent": 150 } }), "CPU time 400 % of a core, wanted 150 % of a core")
    );
    limited(&mut world, json!({ "cpu": "unlimited" }));
    assert_eq!(change_of(&world).unwrap().0, json!({ "cpu": "unlimited" }));
    // What the document does not name stays as it is.
    limited(&mut world, json!({}));
    assert_eq!(change_of(&world), None);
}

#[test]
fn a_limit_counts_as_a_change_and_is_shown_side_by_side() {
    let mut world = world(2);
    limited(&mut world, json!({ "cpu": { "core_percent": 50 } }));
    let plan = world.plan();
    let operation = &plan.actions[0].operation;
    assert_eq!(operation.change_limit(), crate::operation::ChangeLimit::Counts);
    world.facts(300).cpu = CpuFacts::read(Some("2"), Some("7"));
    let reports = world.reports();
    assert_eq!(reports[0].limits.as_ref().unwrap().words(), "at most 2 cores of CPU time, CPU weight 7");
    let state = reports[0].fields.iter().find(|state| state.field == GuestField::CpuLimit).unwrap();
    assert_eq!(
        (state.desired.as_deref(), state.observed.as_deref()),
        (Some("50 % of a core"), Some("200 % of a core"))
    );
    assert!(
        reports[0].fields.iter().all(|state| state.field != GuestField::CpuWeight),
        "the document does not name it"
    );
}

#[test]
fn what_guests_were_given_counts_what_runs_and_what_is_ours() {
    let mut world = world(2);
    let words = |world: &World| {
        let inputs = world.inputs();
        let host = report::host(&"pve1".parse().unwrap(), &inputs, 10).unwrap();
        let assigned = host.assigned.clone().unwrap();
        let shares = host.assigned_shares().iter().map(AssignedShare::to_string).collect::<Vec<_>>();
        (assigned.guests, assigned.unread, shares)
    };
    let (guests, unread, before) = words(&world);
    assert_eq!((guests, unread), (u32::try_from(world.observed.guests.len()).unwrap(), 0), "{before:?}");
    // A foreign guest that rests has its disks, and nothing else.
    let mut foreign = world.seen(300).clone();
    (foreign.vmid, foreign.run) = (vmid(500), Running::Stopped);
    foreign.detail =
        Detail::Known(Box::new(GuestFacts { mark: mark::Mark::None, cores: None, ..facts(9, 800) }));
    world.observed.guests.insert(vmid(500), foreign);
    let (same, _, rests) = words(&world);
    assert_eq!((same, &rests[..2]), (guests, &before[..2]));
    assert_ne!(rests[2..], before[2..]);
    // Running and without a number of cores it has all of the host.
    world.seen(500).run = Running::Running;
    let (more, _, runs) = words(&world);
    assert_eq!(more, guests + 1);
    assert_ne!(runs[0], before[0]);
    world.seen(500).detail = Detail::Unknown("locked".to_owned());
    assert_eq!((words(&world).0, words(&world).1), (guests, 1));
}
