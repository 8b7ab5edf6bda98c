//! Sample documents and reports of the tests.

use serde_json::{Value, json};

use crate::desired::DesiredDocument;
use crate::operator::HostDetail;
use crate::report::Sections;

pub fn uid(n: u32) -> String {
    format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}")
}

pub fn guest(n: u32, memory_mib: u32) -> Value {
    json!({
        "uid": uid(n), "name": format!("web-{n}"), "customer": "acme",
        "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": memory_mib, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.{}/24", 10 + n), "gateway": "10.66.0.1" },
        "volumes": [
            { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" },
            { "name": "media", "mount": "/srv/media", "size_gib": 100, "kind": { "bulk": { "none": "rebuilt from the origin" } } }
        ]
    })
}

pub fn policy(name: &str, keep: u32) -> Value {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    json!({ "name": name, "tiers": { "local": { "target": "nas", "schedule": schedule, "consistency": "crash",
        "retention": { "keep": { "last": keep } } } } })
}

pub fn target(name: &str, part: u32) -> Value {
    json!({
        "name": name, "class": "slow", "role": "local-backup", "state": "attached", "label": name, "default": false,
        "schedulable": true,
        "backend": { "usb": { "uuid": format!("c2f1a8b0-4a1e-4a53-9b7e-{part:012}") } }
    })
}

pub fn whole(generation: u64, guests: &[Value], policies: &[Value], storage: &[Value]) -> Value {
    json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30, "policies": policies,
        "storage": storage, "guests": guests })
}

pub fn read(value: Value) -> DesiredDocument {
    serde_json::from_value(value).unwrap()
}

/// Two guests, one under a policy that goes to a target.
pub fn document() -> DesiredDocument {
    let mut first = guest(1, 512);
    first["policy"] = json!("usual");
    read(whole(
        7,
        &[first, guest(2, 512)],
        &[policy("usual", 7), policy("spare", 2)],
        &[target("nas", 1), target("usb", 2)],
    ))
}

pub fn sections(value: Value) -> Sections {
    serde_json::from_value(value).unwrap()
}

/// Both guests are made, and one target is mounted.
pub fn made() -> Sections {
    let report = |n: u32, run: &str| {
        json!({ "uid": uid(n), "name": format!("web-{n}"), "vmid": 300 + n, "status": "managed", "run": run,
            "golden": "2026.11.1" })
    };
    let nas = json!({ "name": "nas", "backend": "ext4", "role": "local-backup", "class": "slow", "status": "mounted",
        "since": "2026-11-21T02:00:00Z", "reason": "" });
    sections(json!({ "guests": [report(1, "running"), report(2, "stopped")], "storage": [nas] }))
}

pub fn detail(sections: Sections) -> HostDetail {
    let host = json!({ "id": uid(99), "name": "box7", "state": "online", "seen_at": "2026-11-21T02:59:48Z", "wanted": 7, "held": 7,
        "guests_running": 1, "guests": 2, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" });
    let host = serde_json::from_value(host).unwrap();
    HostDetail { host, sections, restores: Vec::new(), epochs: Vec::new(), offer: None }
}

/// Two guests, generation 7.
pub fn difference_before() -> DesiredDocument {
    read(whole(7, &[guest(1, 512), guest(2, 512)], &[], &[]))
}

/// One grown and stopped, one no longer named, one new.
pub fn difference_after() -> DesiredDocument {
    let mut first = guest(1, 1024);
    first["run"] = json!("stopped");
    first["size"]["rootfs_gib"] = json!(6);
    first["volumes"] = json!([{ "name": "db", "mount": "/srv/db", "size_gib": 16, "kind": "hot" }]);
    first["network"]["vlan"] = json!(12);
    let mut third = guest(3, 256);
    third["vmid"] = json!(140);
    read(whole(8, &[first, third], &[], &[]))
}
