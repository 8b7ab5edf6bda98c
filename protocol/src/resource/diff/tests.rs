//! Tests of differences.

use super::*;
use crate::resource::samples;

#[test]
fn order_and_generation_are_no_change() {
    let before = samples::difference_before();
    let mut after = before.clone();
    after.generation = before.generation.next();
    after.guests.reverse();
    after.guests[0].volumes.reverse();
    let diff = diff(Some(&before), &after, &PromisesInForce::new());
    assert!(diff.is_empty());
    assert_eq!(diff.unchanged, before.guests.len());
}

#[test]
fn each_change_is_named_in_both_directions() {
    let before = samples::difference_before();
    let after = samples::difference_after();
    let forth = diff(Some(&before), &after, &PromisesInForce::new());
    let names = |diff: &DocumentDiff| -> Vec<String> {
        diff.changed
            .iter()
            .flat_map(|g| g.changes.iter().map(|c| format!("{}.{}", g.guest.name, c.field)))
            .collect()
    };
    let back = diff(Some(&after), &before, &PromisesInForce::new());
    assert_eq!(names(&forth), names(&back));
    assert_eq!((forth.added.len(), forth.unnamed.len()), (back.unnamed.len(), back.added.len()));
    assert!(forth.changed[0].changes.iter().any(|c| c.field == "size.memory_mib"));
}

#[test]
fn a_policy_is_compared_under_its_name() {
    let before = samples::difference_before();
    let mut after = before.clone();
    let schedule = serde_json::json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let tier = serde_json::json!({ "schedule": schedule, "retention": { "keep": { "last": 3 } } });
    let policy = serde_json::json!({ "name": "usual", "tiers": { "snapshot": tier } });
    after.policies.push(serde_json::from_value(policy).unwrap());
    after.guests[0].policy = Some("usual".parse().unwrap());
    let found = diff(Some(&before), &after, &PromisesInForce::new());
    let named: Vec<&str> = found.settings.iter().map(|change| change.field.as_str()).collect();
    assert!(named.contains(&"policies.usual.snapshot.retention.keep.last"), "{named:?}");
    assert_eq!(found.changed[0].changes[0].field, "policy");
    assert!(found.weaker.is_empty(), "a first promise");
    let back = diff(Some(&after), &before, &PromisesInForce::new());
    assert_eq!(back.weaker[0].what, ["snapshot tier: from on to off"]);
    assert_eq!((back.weaker.len(), back.weaker[0].guest.uid), (1, after.guests[0].uid));
}

#[test]
fn a_shrinking_disk_and_a_dropped_volume_are_remarked() {
    let before = samples::difference_before();
    let mut after = before.clone();
    after.guests[0].size.rootfs_gib = 1.try_into().unwrap();
    after.guests[0].volumes.clear();
    let remarks: Vec<_> = diff(Some(&before), &after, &PromisesInForce::new())
        .changed
        .remove(0)
        .changes
        .into_iter()
        .filter_map(|c| c.remark)
        .collect();
    assert!(remarks.iter().any(|remark| remark.contains("only grow")), "{remarks:?}");
    assert!(remarks.iter().any(|remark| remark.contains("data stays")), "{remarks:?}");
}

#[test]
fn weaker_protection_is_compared_with_the_host() {
    let before = samples::difference_before();
    let schedule = serde_json::json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let tier = serde_json::json!({ "schedule": schedule, "retention": { "keep": { "last": 3 } } });
    let promise: Protection =
        serde_json::from_value(serde_json::json!({ "tiers": { "snapshot": tier }, "volumes": [] })).unwrap();
    // The document before it does not promise anything either; the host still keeps an earlier promise.
    let in_force = PromisesInForce::from([(before.guests[0].uid, promise)]);
    assert!(diff(Some(&before), &before, &PromisesInForce::new()).weaker.is_empty());
    let found = diff(Some(&before), &before, &in_force);
    assert_eq!(found.weaker[0].what, ["snapshot tier: from on to off"]);
}

#[test]
fn a_volume_that_names_another_target_shows_and_long_values_are_cut() {
    let before = samples::difference_before();
    let mut after = before.clone();
    let with_volume = after.guests.iter_mut().find(|guest| !guest.volumes.is_empty()).unwrap();
    with_volume.volumes[0].storage = Some("ssd2".parse().unwrap());
    let found = diff(Some(&before), &after, &PromisesInForce::new());
    let change = &found.changed[0].changes[0];
    assert!(change.field.ends_with(".storage"), "{change:?}");
    assert_eq!((change.before.as_deref(), change.after.as_deref()), (None, Some("ssd2")));
    let sealed = format!("{}end", "hf-sealed".repeat(100));
    assert_eq!(word(&Value::String(sealed)), "hf-sealedhf-sealedhf-sea…ealedend (903 characters)");
}
