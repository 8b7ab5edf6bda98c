//! Tests of promises raised by documents and held with drafts.

use std::sync::Arc;

use holdfast_protocol::job::{Act, Draft};
use holdfast_protocol::protection::Protection as Promise;

use super::*;

fn policies(last: u32) -> Vec<BackupPolicy> {
    let schedule = json!({ "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 5, "window_min": 60 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": last } }, "consistency": "crash"
    });
    serde_json::from_value(json!([{ "name": "usual", "tiers": { "local": local } }])).unwrap()
}

/// Two guests, the first of which is under the policy.
fn under(last: u32) -> World {
    let mut world = world(2);
    world.policy.backup_storage = Some("backup2".parse().unwrap());
    world.policies = policies(last);
    world.desired[0].policy = Some("usual".parse().unwrap());
    world
}

fn put(world: &mut World, promise: Promise) {
    world.records.protections.insert(uid(1), Arc::new(promise));
}

#[test]
fn a_first_promise_is_raised_and_a_weaker_one_is_held_with_its_draft() {
    let mut world = under(3);
    let plan = world.plan();
    assert_eq!((plan.raises.len(), plan.held.len()), (1, 0), "{plan}");
    let first = plan.raises[0].clone();
    assert_eq!((first.guest, first.from), (uid(1), None));
    assert!(plan.verdicts[0].conditions.is_empty() && plan.verdicts[1].protection.is_none());
    put(&mut world, first.to.clone());
    let plan = world.plan();
    assert_eq!((plan.raises.len(), plan.held.len()), (0, 0), "{plan}");
    let reported = plan.verdicts[0].protection.as_deref().unwrap();
    assert_eq!((reported.in_force.as_ref(), reported.desired.as_ref()), (Some(&first.to), None));

    world.policies = policies(1);
    let plan = world.plan();
    assert_eq!((plan.raises.len(), plan.held.len()), (0, 1), "{plan}");
    let held = plan.held[0].report();
    assert_eq!(held.effect, "protect guest web-1 less: local retention: from 3 last to 1 last");
    let draft = Draft::parse(held.payload.as_bytes()).unwrap();
    let Act::LoosenPolicy(args) = draft.act else { panic!("{draft:?}") };
    assert_eq!(
        (*args.from, Promise::of_document(&world.desired[0], &world.policies)),
        (first.to, Some(*args.to))
    );
    let reported = plan.verdicts[0].protection.as_deref().unwrap();
    assert_eq!(reported.held, ["local retention: from 3 last to 1 last"]);
    assert_eq!(plan.verdicts[0].conditions[0].code, ErrorCode::NeedsSignature);
}

#[test]
fn any_takes_a_guest_out_of_its_policy_or_the_document_takes_nothing_from_it() {
    let mut world = under(3);
    let promise = world.plan().raises[0].to.clone();
    put(&mut world, promise.clone());
    world.desired[0].policy = None;
    let plan = world.plan();
    assert_eq!((plan.raises.len(), plan.held.len()), (0, 1), "{plan}");
    world.desired.remove(0);
    let plan = world.plan();
    let reported = plan.verdicts[0].protection.as_deref().unwrap();
    assert_eq!(
        (reported.in_force.as_ref(), reported.desired.as_ref(), reported.held.len()),
        (Some(&promise), None, 0)
    );
    assert!(plan.raises.is_empty());
    assert!(plan.held.iter().all(|held| !held.effect.contains("less")), "only the guest itself waits");
}

#[test]
fn what_is_not_made_or_not_seen_gives_no_draft() {
    let mut world = under(3);
    world.records.guests[0].place = Place::Nowhere;
    world.observed.guests.remove(&vmid(300));
    assert!(world.plan().raises.is_empty(), "nothing is promised to a guest that is not there");

    let mut world = under(3);
    let promise = world.plan().raises[0].to.clone();
    put(&mut world, promise);
    world.policies = policies(1);
    world.seen(300).detail = Detail::Unknown("timed out".to_owned());
    let plan = world.plan();
    assert_eq!(plan.held.len(), 1, "{plan}");
    assert_eq!(plan.held[0].report().payload, "", "nobody signs for volumes that nobody sees");
}

#[test]
fn a_target_that_root_did_not_name_is_held_for_root() {
    let mut world = under(3);
    world.policy.backup_storage = None;
    let plan = world.plan();
    assert_eq!((plan.raises.len(), plan.held.len()), (0, 1), "{plan}");
    let held = plan.held[0].report();
    assert_eq!((held.effect.as_str(), held.payload.as_str()), ("back up guest web-1 (local) to backup2", ""));
    assert!(held.reason.contains("root on this host"), "{}", held.reason);
}
