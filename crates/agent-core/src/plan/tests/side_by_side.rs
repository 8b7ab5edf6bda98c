//! Tests of fields: desired, observed, last applied, pending.

use std::sync::Arc;

use holdfast_protocol::desired::Mtu;
use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::report::{FieldState, InForce};

use super::adoption::net_line;
use super::*;
use crate::model::field::{Applied, AppliedField};
use crate::operation::{AppliedBy, Operation};

/// The first guest runs for a minute; its packets were changed by us so many seconds ago.
fn changed(seconds_ago: i64) -> World {
    let mut world = world(1);
    world.desired[0].network.mtu = Some(Mtu::Bytes(1400.try_into().unwrap()));
    world.facts(300).net = Some(format!("{},mtu=1400", net_line(1)).parse().unwrap());
    let field = AppliedField { value: "1400".to_owned(), at: at(-seconds_ago), takes: InForce::NextStart };
    let applied = Applied::from([(GuestField::Mtu, field)]);
    world.records.applied = Arc::new(BTreeMap::from([(uid(1), applied)]));
    world
}

fn row(world: &World, field: GuestField) -> FieldState {
    let all = fields::all(&world.inputs()).remove(&uid(1)).unwrap().fields;
    all.into_iter().find(|state| state.field == field).unwrap()
}

#[test]
fn all_fields_stand_side_by_side_and_the_report_has_those_that_differ() {
    let mut world = changed(3_600);
    world.facts(300).memory_mib = 256;
    let all = fields::all(&world.inputs()).remove(&uid(1)).unwrap().fields;
    assert_eq!(all.iter().map(|state| state.field).collect::<Vec<_>>(), GuestField::ALL);
    let memory = row(&world, GuestField::Memory);
    assert_eq!((memory.desired.as_deref(), memory.observed.as_deref()), (Some("512 MiB"), Some("256 MiB")));
    let began = fields::all(&world.inputs()).remove(&uid(1)).unwrap().began_at;
    assert_eq!(began, Some(at(-60)), "when it was started, by Proxmox's word of how long it runs");
    let rate = row(&world, GuestField::Rate);
    assert_eq!((rate.desired, rate.observed.as_deref()), (None, Some("unlimited")), "not named, and told");
    let mtu = row(&world, GuestField::Mtu);
    assert_eq!((mtu.applied.unwrap().value.as_str(), mtu.in_force), ("1400", InForce::Now));
    let reported: Vec<GuestField> = world.reports()[0].fields.iter().map(|state| state.field).collect();
    assert_eq!(reported, [GuestField::Memory]);
}

/// Proxmox shows it, and the interface in the guest has the old size (`23-net-name`).
#[test]
fn what_a_running_guest_gets_by_its_next_start_is_reported() {
    let waits = |world: &World| {
        let plan = world.plan();
        assert!(plan.actions.is_empty(), "{plan}");
        let reported = plan.verdicts[0].conditions.iter().find(|one| one.code == ErrorCode::RestartNeeded);
        reported.map(|condition| condition.message.clone())
    };
    let mut world = changed(30);
    assert!(waits(&world).unwrap().ends_with("by its next start: network.mtu 1400"));
    assert_eq!(row(&world, GuestField::Mtu).in_force, InForce::NextStart);
    assert_eq!(world.reports()[0].fields.len(), 1);
    // It was started since; or is stopped; or another value was set there.
    assert_eq!(waits(&changed(61)), None);
    world.desired[0].run = RunState::Stopped;
    world.seen(300).run = Running::Stopped;
    assert_eq!(waits(&world), None);
}

/// What is there already is not carried out by a change of something else.
#[test]
fn an_operation_carries_out_what_it_changes() {
    let mut world = changed(3_600);
    world.desired[0].network.vlan = Some(7.try_into().unwrap());
    let plan = world.plan();
    let [Action { operation: Operation::Reconfigure(change), .. }] = plan.actions.as_slice() else {
        panic!("{plan}")
    };
    let Some(AppliedBy::Changed(texts)) = Operation::Reconfigure(change.clone()).applied() else {
        panic!("{change:?}")
    };
    assert_eq!(texts.get(&GuestField::Vlan).map(String::as_str), Some("7"));
    assert_eq!((texts.get(&GuestField::Mtu), texts.get(&GuestField::Memory)), (None, None));
}

#[test]
fn what_waits_for_a_start_gets_it_in_the_maintenance_window() {
    let mut world = changed(3_600 - 30);
    world.seen(300).up_s = 7_200;
    assert!(world.plan().actions.is_empty(), "{}", world.plan());
    let point = at(-1_800).strftime("%a %H:%M:%S").to_string();
    world.desired[0].maintenance = Some(
        serde_json::from_value(json!({ "windows":
            { "at": [point], "zone": "UTC", "jitter_min": 0, "window_min": 120 } }))
        .unwrap(),
    );
    let plan = world.plan();
    assert!(matches!(plan.actions[0].operation, Operation::Stop(_)), "{plan}");
    assert!(
        plan.actions[0].reason.contains("network.mtu 1400: it is restarted in its maintenance window"),
        "{plan}"
    );
    // It was started since.
    world.seen(300).up_s = 600;
    assert!(world.plan().actions.is_empty(), "{}", world.plan());
}
