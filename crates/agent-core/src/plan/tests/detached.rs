//! Tests of detached volumes.

use super::*;
use crate::operation::Operation;

/// As `pct set 300 -delete mp0` leaves a guest that stands still.
fn detached() -> World {
    let mut world = world(1);
    world.seen(300).run = Running::Stopped;
    let own = volumes(300).last().cloned().unwrap();
    let facts = world.facts(300);
    facts.mounts.clear();
    facts.detached.insert(own);
    world
}

fn conditions(plan: &Plan) -> Vec<&str> {
    plan.verdicts[0].conditions.iter().map(|condition| condition.message.as_str()).collect()
}

#[test]
fn a_detached_volume_is_reported_and_neither_replaced_nor_started_without() {
    let plan = detached().plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let reported = conditions(&plan);
    for words in [
        "not mounted: volume db; detached with its data: fast:300/vm-300-disk-1.raw",
        "run `pct set 300 -protection 0 && pct set 300 -mp0 fast:300/vm-300-disk-1.raw,mp=/srv/db,backup=1` on the node",
    ] {
        assert!(reported.iter().any(|text| text.contains(words)), "{words}: {reported:?}");
    }
}

#[test]
fn several_detached_volumes_are_a_persons_to_report_apart() {
    let mut world = detached();
    world.desired[0].volumes.push(volume("files", json!("hot")));
    let plan = world.plan();
    assert!(plan.actions.is_empty(), "{plan}");
    let reported = conditions(&plan);
    assert!(
        reported[0].contains("volume db, files") && reported[0].contains("look which is which"),
        "{reported:?}"
    );
}

/// A detached volume that the document does not name hinders nothing, nor does one that we never made.
#[test]
fn a_detached_volume_that_nothing_waits_for_changes_nothing() {
    let mut whole = world(1);
    let spare = VolumeId::new("fast:300/vm-300-disk-7.raw");
    whole.facts(300).volumes.insert(spare.clone());
    whole.facts(300).detached.insert(spare.clone());
    assert!(whole.plan().verdicts[0].conditions.is_empty(), "{}", whole.plan());
    // A volume that the document names anew is made although another detached one is there.
    whole.desired[0].volumes.push(volume("files", json!("hot")));
    let plan = whole.plan();
    assert!(
        matches!(plan.actions.as_slice(), [Action { operation: Operation::AttachVolume(_), .. }]),
        "{plan}"
    );
}
