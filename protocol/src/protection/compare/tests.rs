//! Tests that no request ever weakens a promise.

use serde_json::{Value, json};

use super::*;

fn read(value: &Value) -> Protection {
    serde_json::from_value(value.clone()).unwrap_or_else(|why| panic!("{value}: {why}"))
}

fn backup() -> Value {
    json!({
        "target": "backup2",
        "schedule": { "at": ["02:30", "Sun 12:00"], "zone": "Europe/Berlin", "jitter_min": 15, "window_min": 120 },
        "retention": { "keep": { "last": 3, "daily": 14 } },
        "consistency": "application", "restore_test_days": 30
    })
}

fn usual() -> Value {
    let key = vec!["ab"; 32].join(":");
    json!({
        "tiers": {
            "snapshot": { "schedule": { "at": ["*:00"], "zone": "UTC", "jitter_min": 0, "window_min": 30 }, "retention": { "keep": { "last": 24 } } },
            "local": backup(),
            "off_site": { "key": key, "verify_days": 7, "backup": backup() }
        },
        "volumes": [
            { "name": "cache", "kind": { "bulk": { "none": "made again at start" } } },
            { "name": "db", "kind": "hot" },
            { "name": "media", "kind": { "bulk": { "backup_to": "nas" } } }
        ]
    })
}

/// The usual one with one thing put in another's place.
fn with(pointer: &str, value: Value) -> Protection {
    let mut changed = usual();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = changed.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(map), Value::Null) => drop(map.remove(key)),
        (Value::Object(map), value) => drop(map.insert(key.to_owned(), value)),
        (Value::Array(list), value) => list[key.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{other}"),
    }
    read(&changed)
}

#[test]
fn each_loosening_is_named_and_stays_out_of_force() {
    let in_force = read(&usual());
    let other_key = vec!["ac"; 32].join(":");
    let cases: &[(&str, Value, Facet)] = &[
        ("/tiers/snapshot", json!(null), Facet::Whole),
        ("/tiers/local", json!(null), Facet::Whole),
        ("/tiers/off_site", json!(null), Facet::Whole),
        ("/tiers/snapshot/retention", json!({ "keep": { "last": 23 } }), Facet::Retention),
        ("/tiers/local/retention", json!({ "keep": { "last": 1 } }), Facet::Retention),
        ("/tiers/local/retention", json!({ "keep": { "weekly": 9999 } }), Facet::Retention),
        ("/tiers/local/retention", json!({ "keep": { "last": 3, "daily": 13 } }), Facet::Retention),
        ("/tiers/local/target", json!("backup3"), Facet::Target),
        ("/tiers/local/consistency", json!("crash"), Facet::Consistency),
        ("/tiers/local/restore_test_days", json!(31), Facet::RestoreTest),
        ("/tiers/local/restore_test_days", json!(null), Facet::RestoreTest),
        ("/tiers/local/schedule/jitter_min", json!(16), Facet::Jitter),
        ("/tiers/local/schedule/window_min", json!(119), Facet::Window),
        ("/tiers/local/schedule/zone", json!("UTC"), Facet::Schedule),
        ("/tiers/local/schedule/at", json!(["02:30"]), Facet::Schedule),
        ("/tiers/local/schedule/at", json!(["Mon..Fri 02:30", "Sun 12:00"]), Facet::Schedule),
        ("/tiers/local/schedule/at", json!(["03:30", "Sun 12:00"]), Facet::Schedule),
        ("/tiers/local/schedule/at", json!(["02:30:01", "Sun 12:00"]), Facet::Schedule),
        (
            "/tiers/local/schedule/at",
            json!(["Mon..Wed 02:30", "Thu..Sun 02:30", "Sun 12:00"]),
            Facet::Schedule,
        ),
        ("/tiers/off_site/key", json!(other_key), Facet::Key),
        ("/tiers/off_site/verify_days", json!(8), Facet::Verify),
        ("/tiers/off_site/verify_days", json!(null), Facet::Verify),
        ("/tiers/off_site/backup/target", json!("backup3"), Facet::Target),
        ("/tiers/off_site/backup/retention", json!({ "keep": { "last": 1 } }), Facet::Retention),
        ("/volumes/1/kind", json!({ "bulk": { "none": "to save room" } }), Facet::Volume),
        ("/volumes/1/kind", json!({ "bulk": { "backup_to": "nas" } }), Facet::Volume),
        ("/volumes/2/kind", json!({ "bulk": { "none": "to save room" } }), Facet::Volume),
        ("/volumes/2/kind", json!({ "bulk": { "backup_to": "nas2" } }), Facet::Volume),
        ("/volumes/2/kind", json!("hot"), Facet::Volume),
    ];
    for (pointer, value, facet) in cases {
        let requested = with(pointer, value.clone());
        let found = compare(&in_force, &requested);
        let facets: Vec<Facet> = found.loosened.iter().map(|change| change.facet).collect();
        assert_eq!(facets, [*facet], "{pointer} = {value}");
        assert!(compare(&in_force, &found.next).loosened.is_empty(), "{pointer} = {value}: {:?}", found.next);
    }
}

#[test]
fn what_is_provably_no_weaker_is_in_force_at_once() {
    let in_force = read(&usual());
    let cases: &[(&str, Value)] = &[
        ("/tiers/local/retention", json!("keep_all")),
        ("/tiers/local/retention", json!({ "keep": { "last": 3, "daily": 14, "yearly": 1 } })),
        ("/tiers/local/restore_test_days", json!(7)),
        ("/tiers/off_site/verify_days", json!(1)),
        ("/tiers/local/schedule/jitter_min", json!(0)),
        ("/tiers/local/schedule/window_min", json!(1440)),
        ("/tiers/local/schedule/at", json!(["Sunday 12:00", "Mon..Sun *-*-* 2:30:00"])),
        ("/tiers/local/schedule/at", json!(["*:0/30"])),
        ("/tiers/local/schedule/at", json!(["02:30", "Sat,Sun 12:00", "*-*-1 18:00"])),
        ("/tiers/snapshot/schedule/at", json!(["*:0/5"])),
        ("/volumes/0/kind", json!({ "bulk": { "none": "another reason" } })),
        ("/volumes/0/kind", json!({ "bulk": { "backup_to": "nas" } })),
        ("/volumes/0/kind", json!("hot")),
        ("/volumes/0/name", json!("another")),
    ];
    for (pointer, value) in cases {
        let requested = with(pointer, value.clone());
        let found = compare(&in_force, &requested);
        assert_eq!(found.loosened, [], "{pointer} = {value}");
        assert_eq!(found.raised.len(), 1, "{pointer} = {value}: {:?}", found.raised);
        if *pointer == "/volumes/0/name" {
            assert_eq!(found.next.volumes.len(), 4, "a volume that is not named keeps its promise");
        } else {
            assert_eq!(found.next, requested, "{pointer} = {value}");
        }
    }
    let same = compare(&in_force, &in_force);
    assert_eq!((same.next, same.raised.len(), same.loosened.len()), (in_force.clone(), 0, 0));
    let first = compare(&Protection::default(), &in_force);
    assert_eq!((first.next, first.loosened.len()), (in_force, 0), "the first promise is free");
}

#[test]
fn a_request_that_raises_one_thing_and_lowers_another_raises_the_one() {
    let in_force = read(&usual());
    let mixed = with("/tiers/local/retention", json!({ "keep": { "last": 1, "weekly": 8 } }));
    let found = compare(&in_force, &mixed);
    let words: Vec<String> = found.raised.iter().chain(&found.loosened).map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "local retention: from 3 last, 14 daily to 3 last, 14 daily, 8 weekly",
            "local retention: from 3 last, 14 daily to 1 last, 8 weekly",
        ]
    );
    assert!(found.next.tiers.local.unwrap().retention.covers(&in_force.tiers.local.unwrap().retention));
}

/// An attacker who owns the hub sends one request after another; no order of requests ever weakens anything.
#[test]
fn no_sequence_of_requests_weakens_anything() {
    let requests: Vec<Protection> = [
        ("/tiers/local", json!(null)),
        ("/tiers/local/retention", json!({ "keep": { "yearly": 1 } })),
        ("/tiers/local/retention", json!("keep_all")),
        ("/tiers/local/schedule/at", json!(["Sun 12:00"])),
        ("/tiers/local/schedule/at", json!(["*:0/30"])),
        ("/tiers/local/schedule/jitter_min", json!(1)),
        ("/tiers/local/schedule/window_min", json!(1440)),
        ("/tiers/local/target", json!("elsewhere")),
        ("/volumes/1/kind", json!({ "bulk": { "none": "to save room" } })),
        ("/volumes/0/kind", json!("hot")),
        ("/volumes/1/name", json!("da")),
    ]
    .into_iter()
    .map(|(pointer, value)| with(pointer, value))
    .chain([Protection::default()])
    .collect();
    for first in &requests {
        for second in &requests {
            for third in &requests {
                let start = read(&usual());
                let mut now = start.clone();
                for requested in [first, second, third] {
                    let next = compare(&now, requested).next;
                    assert_eq!(compare(&now, &next).loosened, [], "{now:?} became {next:?}");
                    // The protection in force can be written down and read again.
                    let text = serde_json::to_string(&next).unwrap();
                    assert_eq!(serde_json::from_str::<Protection>(&text).unwrap(), next);
                    now = next;
                }
            }
        }
    }
}

#[test]
fn promises_that_cannot_be_written_are_not_made() {
    let mut now = Protection::default();
    for round in 0..8 {
        let volumes: Vec<Value> =
            (0..16).map(|n| json!({ "name": format!("v{round}-{n:02}"), "kind": "hot" })).collect();
        let requested = read(&json!({ "tiers": {}, "volumes": volumes }));
        let found = compare(&now, &requested);
        assert_eq!(found.loosened.is_empty(), round < 4, "{round}");
        now = read(&serde_json::to_value(&found.next).unwrap());
    }
    assert_eq!(now.volumes.len(), 64);
}

/// More points make up for a shorter window; by themselves, a shorter window and a longer jitter are weaker.
#[test]
fn a_denser_schedule_may_have_a_shorter_window() {
    let schedule = |at: &str, jitter: u32, window: u32| {
        with(
            "/tiers/local/schedule",
            json!({ "at": [at], "zone": "UTC", "jitter_min": jitter, "window_min": window }),
        )
    };
    let old = schedule("02:00", 0, 480);
    let denser = compare(&old, &schedule("*:00", 30, 180));
    assert_eq!(denser.loosened, [], "{denser:?}");
    assert_eq!(denser.next, schedule("*:00", 30, 180));
    let shorter = compare(&old, &schedule("02:00", 0, 180));
    assert_eq!(shorter.loosened.iter().map(|change| change.facet).collect::<Vec<_>>(), [Facet::Window]);
    assert_eq!(shorter.next, old);
    // Hours that the old window reached and the new ones do not.
    let gaps = compare(&old, &schedule("02,04:00", 0, 180));
    assert_eq!(gaps.loosened.iter().map(|change| change.facet).collect::<Vec<_>>(), [Facet::Window]);
}
