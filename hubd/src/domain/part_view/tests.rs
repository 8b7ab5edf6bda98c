//! Tests of views: each kind against a report, and without one.

use holdfast_protocol::operator::{DesiredVersion, HostDetail};
use holdfast_protocol::report::Sections;
use serde_json::{Value, json};

use super::*;

const UID: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";

fn promise(keep: u32) -> Value {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    json!({ "local": { "target": "usb1", "schedule": schedule, "consistency": "crash", "retention": { "keep": { "last": keep } } } })
}

fn document() -> DesiredDocument {
    let guest = json!({
        "uid": UID, "name": "web-1", "customer": "acme", "run": "running", "golden": "2026.11.1", "policy": "usual",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.66.0.11/24" },
        "volumes": [{ "name": "media", "mount": "/srv/media", "size_gib": 4, "kind": { "bulk": { "none": "from the origin" } } }]
    });
    let policies =
        json!([{ "name": "usual", "tiers": promise(7) }, { "name": "spare", "tiers": promise(1) }]);
    serde_json::from_value(json!({ "schema": "holdfast.desired/v1", "generation": 7, "poll_interval_s": 30,
        "policies": policies, "guests": [guest] }))
    .unwrap()
}

fn detail(sections: Value) -> HostDetail {
    let sections: Sections = serde_json::from_value(sections).unwrap();
    let host = json!({ "id": UID, "name": "box7", "state": "online", "seen_at": "2026-11-21T02:59:48Z", "wanted": 7, "held": 7,
        "guests_running": 1, "guests": 1, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" });
    let host = serde_json::from_value(host).unwrap();
    HostDetail { host, sections, restores: Vec::new(), epochs: Vec::new(), offer: None }
}

fn seen(part: &str, sections: Value) -> PartView {
    let document = document();
    let version: DesiredVersion =
        serde_json::from_value(json!({ "generation": 7, "content": "00", "author": "ada",
        "reason": "a test", "put_at": "2026-11-21T02:00:00Z", "document": "" }))
        .unwrap();
    let part = match part.split_once(' ') {
        Some(("guest", name)) => DocumentPart::Guest(name.parse().unwrap()),
        Some(("volume", name)) => DocumentPart::Volume("web-1".parse().unwrap(), name.parse().unwrap()),
        Some(("policy", name)) => DocumentPart::Policy(name.parse().unwrap()),
        other => panic!("{other:?}"),
    };
    let detail = detail(sections);
    let now = "2026-11-21T03:00:00Z".parse().unwrap();
    view(&part, Situation { newest: Some((&version, &document)), detail: &detail, now }).unwrap()
}

fn reported(keep: u32, volume: &Value) -> Value {
    let in_force = json!({ "tiers": promise(keep), "volumes": [{ "name": "media", "kind": volume }] });
    json!({ "guests": [{ "uid": UID, "name": "web-1", "vmid": 300, "status": "managed", "run": "running",
        "protection": { "in_force": in_force } }] })
}

#[test]
fn a_promise_that_is_not_in_force_differs_for_guest_and_policy() {
    let none = json!({ "bulk": { "none": "from the origin" } });
    for part in ["guest web-1", "policy usual", "volume media"] {
        assert_eq!(seen(part, reported(7, &none)).state, PartState::Settled, "{part}");
    }
    let fewer = reported(9, &none);
    let guest = seen("guest web-1", fewer.clone());
    let paths: Vec<&str> = guest.differences.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["protection local retention"]);
    let policy = seen("policy usual", fewer);
    assert_eq!((policy.state, policy.differences[0].path.as_str()), (PartState::Differs, "guest web-1"));
    assert_eq!(seen("policy spare", reported(9, &none)).state, PartState::Unreported, "no guest is under it");
}

#[test]
fn a_volume_differs_in_what_becomes_of_its_data() {
    let volume = seen("volume media", reported(7, &json!("hot")));
    assert_eq!((volume.differences.len(), volume.differences[0].path.as_str()), (1, "kind"));
    assert_eq!(seen("volume media", json!({})).state, PartState::Unreported);
}

#[test]
fn an_age_and_a_generation_are_those_of_the_host() {
    let guest = seen("guest web-1", reported(7, &json!({ "bulk": { "none": "from the origin" } })));
    assert_eq!(guest.current.unwrap().age_s, 12);
    assert_eq!(guest.last_applied.unwrap().generation.number(), 7);
    let missing =
        json!({ "guests": [{ "uid": UID, "name": "web-1", "status": "missing", "run": "unknown" }] });
    let guest = seen("guest web-1", missing);
    assert_eq!(
        (guest.differences[0].path.as_str(), guest.differences[0].current.as_deref()),
        ("status", Some("missing"))
    );
}
