//! Tests of comparisons.

use holdfast_protocol::state::StateHost;
use serde_json::{Value, json};

use super::*;

const UID: &str = "018f3c1e-6b1f-7c1d-9d0b-000000000001";

fn tier(last: u32) -> Value {
    json!({ "schedule": { "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 },
        "retention": { "keep": { "last": last } } })
}

fn whole() -> Value {
    let desired = json!({ "uid": UID, "name": "web-1", "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.0.0.5/24", "gateway": "10.0.0.1" },
        "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" },
            { "name": "log", "mount": "/srv/log", "size_gib": 4, "kind": "hot" }] });
    json!({ "id": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "box7", "state": "online",
        "held": 3, "versions": { "agent": "0.1.0" }, "observed": { "seen_at": "2026-11-21T12:00:00Z" },
        "desired": { "generation": 3, "content": "ab", "by": "ada", "reason": "first", "put_at": "2026-11-20T11:00:00Z",
            "settings": { "poll_interval_s": 30 } },
        "storages": [{ "name": "local", "state": "active" }],
        "conditions": [],
        "guests": [{ "uid": UID, "name": "web-1", "customer": "acme", "desired": desired,
            "current": { "vmid": 5001, "status": "managed", "run": "running", "controller": "0.1.0", "health": "well" },
            "protection": { "posture": "protected", "in_force": { "tiers": { "snapshot": tier(3) }, "volumes": [] } },
            "observed": { "posture_why": ["a backup was proved 2 days ago"] } }] })
}

fn host(value: &Value) -> StateHost {
    serde_json::from_value(value.clone()).unwrap()
}

fn changed(change: impl FnOnce(&mut Value)) -> Option<HostChanges> {
    let before = whole();
    let mut after = before.clone();
    change(&mut after);
    compare_hosts(Some(&host(&before)), Some(&host(&after)))
}

fn lines(changes: Option<HostChanges>) -> Vec<String> {
    let changes = changes.unwrap();
    changes.all().map(|one| format!("{} {}: {one}", one.direction.as_str(), one.area.as_str())).collect()
}

#[test]
fn what_was_only_seen_at_another_time_is_no_change() {
    let later = changed(|host| {
        host["observed"]["seen_at"] = json!("2026-11-21T13:00:00Z");
        host["guests"][0]["observed"]["posture_why"] = json!(["a backup was proved 3 days ago"]);
        host["guests"][0]["desired"]["volumes"].as_array_mut().unwrap().reverse();
    });
    assert_eq!(later, None);
}

#[test]
fn a_guest_that_stopped_and_lost_its_protection_is_worse() {
    let found = changed(|host| {
        let guest = &mut host["guests"][0];
        guest["current"]["run"] = json!("stopped");
        guest["current"]["health"] = json!("unwell");
        guest["protection"]["posture"] = json!("unprotected");
        guest["observed"]["posture_why"] = json!(["no backup of it is left"]);
        guest["protection"]["in_force"]["tiers"]["snapshot"] = tier(1);
        guest["conditions"] = json!([{ "code": "GUEST_BROKEN", "subject": { "kind": "guest", "uid": UID },
            "severity": "critical", "observed": { "since": "2026-11-21T11:00:00Z", "message": "it does not start" } }]);
    });
    let lines = lines(found);
    for expected in [
        "worse current: run: from running to stopped",
        "worse current: controller health: from well to unwell",
        "worse protection: posture: from protected (a backup was proved 2 days ago) to unprotected (no backup of it is left)",
        "worse protection: promise, snapshot retention: from 3 last to 1 last",
        "began: critical, it does not start",
    ] {
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected}: {lines:#?}");
    }
    assert!(lines.iter().all(|line| line.starts_with("worse")), "{lines:#?}");
}

#[test]
fn the_way_back_is_better() {
    let before = whole();
    let mut after = before.clone();
    after["state"] = json!("offline");
    after["storages"][0]["state"] = json!("unknown");
    after["guests"][0]["current"]["run"] = json!("unknown");
    after["guests"][0]["last_applied"] =
        json!([{ "field": "run", "desired": "running", "current": "stopped" }]);
    let there = lines(compare_hosts(Some(&host(&before)), Some(&host(&after))));
    let back = lines(compare_hosts(Some(&host(&after)), Some(&host(&before))));
    assert_eq!(there.len(), 4, "{there:#?}");
    assert!(there.iter().all(|line| line.starts_with("worse")), "{there:#?}");
    assert!(back.iter().all(|line| line.starts_with("better")), "{back:#?}");
    let field = "run: from settled to document running, Proxmox stopped";
    assert!(there.iter().any(|line| line.ends_with(field)), "{there:#?}");
}

#[test]
fn a_new_document_is_a_difference_with_its_author_and_reason() {
    let found = changed(|host| {
        host["desired"]["generation"] = json!(4);
        host["desired"]["reason"] = json!("more memory");
        host["guests"][0]["desired"]["size"]["memory_mib"] = json!(1024);
        host["guests"][0]["desired"]["volumes"][1]["size_gib"] = json!(8);
        host["versions"]["agent"] = json!("0.2.0");
    });
    let lines = lines(found);
    for expected in [
        "changed desired: document: from 3 by ada: first to 4 by ada: more memory",
        "changed desired: size.memory_mib: from 512 to 1024",
        "changed desired: volumes.log.size_gib: from 4 to 8",
        "changed version: agent: from 0.1.0 to 0.2.0",
    ] {
        assert!(lines.contains(&expected.to_owned()), "{expected}: {lines:#?}");
    }
}

#[test]
fn hosts_and_guests_that_come_and_go_are_named() {
    let found = changed(|host| {
        let mut other = host["guests"][0].clone();
        other["uid"] = json!("018f3c1e-6b1f-7c1d-9d0b-000000000002");
        other["name"] = json!("web-2");
        host["guests"] = json!([other]);
    })
    .unwrap();
    let presences: Vec<_> = found.guests.iter().map(|guest| (guest.name.as_str(), guest.presence)).collect();
    assert_eq!(presences, [("web-1", Presence::Gone), ("web-2", Presence::New)]);
    let new = compare_hosts(None, Some(&host(&whole()))).unwrap();
    assert_eq!((new.presence, new.guests.len()), (Presence::New, 1));
    assert_eq!(compare_hosts(None, None), None);
}

#[test]
fn the_worst_hosts_come_first() {
    let side = |second: u32| {
        let digest = "0".repeat(64);
        Side {
            head: serde_json::from_value(
                json!({ "schema": "holdfast.state/v1", "hub_version": "0.1.0", "scope": {},
                "taken_at": format!("2026-11-21T12:00:{second:02}Z") }),
            )
            .unwrap(),
            tail: serde_json::from_value(
                json!({ "hosts": 3, "guests": 3, "content": digest, "document": digest }),
            )
            .unwrap(),
        }
    };
    let better = changed(|host| host["versions"]["agent"] = json!("0.2.0"));
    let worse = changed(|host| {
        host["state"] = json!("offline");
        host["name"] = json!("zoo");
    });
    let all = Comparison::collect((side(1), side(2)), [better, None, worse]);
    let names: Vec<String> = all.hosts.iter().map(|host| host.host.to_string()).collect();
    assert_eq!(names, ["zoo", "box7"]);
    assert_eq!((all.totals.worse, all.totals.different, all.totals.hosts_unchanged), (1, 1, 1));
}
