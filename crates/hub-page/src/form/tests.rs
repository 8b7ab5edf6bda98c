//! What must hold of every form.

use holdfast_protocol::desired::{DesiredGuest, DesiredVolume};
use holdfast_protocol::protection::BackupPolicy;
use holdfast_protocol::resource::{PartContent, PartKind};
use holdfast_protocol::storage::StorageTarget;
use serde_json::{Value, json};

use super::about::about;
use super::content::{content_of, values_of};
use super::merge::merged;
use super::parts::{form_of, left_out};
use super::problem::{Problem, place};
use super::values::Values;
use super::{fields, is_below};

const KINDS: [PartKind; 4] = [PartKind::Guest, PartKind::Volume, PartKind::StorageTarget, PartKind::Policy];

fn guest() -> Value {
    json!({
        "uid": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "web-1", "customer": "acme", "vmid": 140, "run": "running",
        "golden": "2026.11.1", "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "limits": { "cpu": { "core_percent": 150 }, "cpu_weight": 50 }, "storage": "tank",
        "network": { "bridge": "vmbr0", "address": "10.66.0.11/24", "gateway": "10.66.0.1", "vlan": 7, "mtu": "bridge",
            "rate": { "mib_per_s": 100 }, "firewall": "on", "address_filter": "as_it_is",
            "resolver": { "own": { "servers": ["10.66.0.1", "10.66.0.2"], "search": ["lan.example"] } } },
        "policy": "usual", "controller": { "version": "2026.11.1", "sha256": "ab".repeat(32) },
        "backup_before_exchange_h": 24,
        "maintenance": { "security_upgrades": "off", "restart": "by_hand",
            "windows": { "at": ["Sun 03:00"], "zone": "UTC", "jitter_min": 0, "window_min": 90 } },
        "levels": { "cpu_percent": 90, "memory_percent": 80, "root_disk_percent": 70 },
        "volumes": [{ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" }]
    })
}

fn policy() -> Value {
    let schedule = json!({ "at": ["Mon..Fri 02:30", "Sat,Sun 04:00"], "zone": "UTC", "jitter_min": 5, "window_min": 60 });
    let keep =
        json!({ "keep": { "last": 1, "hourly": 2, "daily": 3, "weekly": 4, "monthly": 5, "yearly": 6 } });
    json!({ "name": "usual", "tiers": {
        "snapshot": { "schedule": schedule, "retention": keep },
        "local": { "target": "usb1", "schedule": schedule, "retention": "keep_all", "consistency": "crash",
            "restore_test_days": 30 },
        "off_site": { "key": format!("{}11", "aa:".repeat(31)), "verify_days": 7, "backup": { "target": "far", "schedule": schedule,
            "retention": keep, "consistency": "application", "restore_test_days": 30 } } } })
}

fn target(backend: Value) -> Value {
    json!({ "name": "nas", "class": "slow", "role": "local-backup", "state": "attached", "label": "nas", "default": false,
        "schedulable": true, "backend": backend })
}

fn volume(kind: Value) -> Value {
    json!({ "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": kind, "storage": "tank" })
}

fn samples() -> Vec<(PartKind, Value)> {
    let uuid = "c2f1a8b0-4a1e-4a53-9b7e-000000000001";
    let key = format!("{}11", "aa:".repeat(31));
    let pbs = json!({ "server": "pbs.example", "datastore": "store", "namespace": "a/b", "fingerprint": key, "key": key });
    let backends = [
        json!({ "local-dir": { "uuid": uuid } }),
        json!({ "usb": { "uuid": uuid } }),
        json!({ "nfs": { "server": "10.0.0.9", "export": "/srv/x" } }),
        json!({ "cifs": { "server": "nas.example", "share": "x" } }),
        json!({ "pbs": pbs }),
    ];
    let kinds = [
        json!("hot"),
        json!({ "bulk": { "backup_to": "usb1" } }),
        json!({ "bulk": { "none": "it is a cache" } }),
    ];
    let targets = backends.map(|backend| (PartKind::StorageTarget, target(backend)));
    let volumes = kinds.map(|kind| (PartKind::Volume, volume(kind)));
    let whole = [(PartKind::Guest, guest()), (PartKind::Policy, policy())];
    whole.into_iter().chain(targets).chain(volumes).collect()
}

#[test]
fn what_a_form_shows_comes_back_as_it_was() {
    for (kind, content) in samples() {
        PartContent::parse(kind, &content).unwrap();
        let values = values_of(form_of(kind), &content);
        assert_eq!(content_of(form_of(kind), content.clone(), &values).unwrap(), content);
        // Also where nothing was there before, but for what the form leaves out.
        let mut base = json!({});
        for name in left_out(kind) {
            base[name] = content[name].clone();
        }
        assert_eq!(content_of(form_of(kind), base, &values).unwrap(), content, "{kind:?}");
    }
}

/// Every leaf of a written content, by its path.
fn leaves(path: &str, value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(&path, inner, into);
            }
        }
        _ => into.push(path.to_owned()),
    }
}

#[test]
fn each_field_of_the_types_has_a_field_in_its_form() {
    for kind in KINDS {
        let schema = match kind {
            PartKind::Guest => schemars::schema_for!(DesiredGuest),
            PartKind::Volume => schemars::schema_for!(DesiredVolume),
            PartKind::StorageTarget => schemars::schema_for!(StorageTarget),
            PartKind::Policy => schemars::schema_for!(BackupPolicy),
        };
        for name in schema.to_value()["properties"].as_object().unwrap().keys() {
            let is_shown =
                fields(form_of(kind)).any(|field| field.path == name || is_below(field.path, name));
            assert!(is_shown || left_out(kind).contains(&name.as_str()), "{kind:?} {name}");
        }
    }
    for (kind, content) in samples() {
        let mut found = Vec::new();
        leaves("", &content, &mut found);
        for leaf in found {
            let is_shown =
                fields(form_of(kind)).any(|field| field.path == leaf || is_below(&leaf, field.path));
            let is_left_out = left_out(kind).iter().any(|name| leaf.starts_with(name));
            assert!(is_shown || is_left_out, "{kind:?} {leaf}");
        }
    }
}

#[test]
fn each_field_is_explained_by_its_type() {
    for kind in KINDS {
        for field in fields(form_of(kind)) {
            assert!(about(kind, field.path).is_some(), "{kind:?} {}", field.path);
        }
    }
    let memory = about(PartKind::Guest, "size.memory_mib").unwrap();
    assert_eq!((memory.least, memory.most, memory.is_required), (Some(64), Some(4_194_304), true));
    assert_eq!(memory.words, "Memory in MiB.");
    let vlan = about(PartKind::Guest, "network.vlan").unwrap();
    assert!(vlan.least.is_some() && !vlan.is_required, "{vlan:?}");
    assert_eq!(about(PartKind::Guest, "size.wheels"), None);
}

#[test]
fn an_emptied_field_is_left_out_and_takes_its_empty_object_along() {
    let form = form_of(PartKind::Guest);
    let mut values = values_of(form, &guest());
    for path in [
        "limits.cpu",
        "limits.cpu_weight",
        "policy",
        "maintenance.windows",
        "controller.version",
        "network.mtu",
    ] {
        values.set(path, "");
    }
    values.set("network.resolver", "host");
    let next = content_of(form, guest(), &values).unwrap();
    assert!(next.get("limits").is_none() && next.get("policy").is_none(), "{next}");
    assert!(next["maintenance"].get("windows").is_none() && next["network"].get("mtu").is_none(), "{next}");
    assert_eq!(next["network"]["resolver"], "host");
    let refused = PartContent::parse(PartKind::Guest, &next).unwrap_err();
    let told = place(form, refused.path(), &holdfast_protocol::json::chain(&refused));
    assert_eq!(
        told,
        Problem { field: Some("controller.version"), message: "this is missing: fill it in".to_owned() }
    );
    // A tier that is ticked and empty is a mistake, and not no tier.
    let form = form_of(PartKind::Policy);
    let ticked: Values = [("name", "usual"), ("tiers.local", "yes")].into_iter().collect();
    let next = content_of(form, json!({}), &ticked).unwrap();
    assert_eq!(next["tiers"], json!({ "local": {} }));
}

#[test]
fn a_mistake_is_named_at_its_field_in_plain_words() {
    let form = form_of(PartKind::Guest);
    let told = |path: &str, value: &str| {
        let mut values = values_of(form, &guest());
        values.set(path, value);
        match content_of(form, guest(), &values) {
            Err(problems) => problems[0].clone(),
            Ok(next) => {
                let refused = PartContent::parse(PartKind::Guest, &next).unwrap_err();
                place(form, refused.path(), &holdfast_protocol::json::chain(&refused))
            }
        }
    };
    let cores = told("size.cores", "0");
    assert_eq!(
        (cores.field, cores.message.as_str()),
        (Some("size.cores"), "0 cores is out of range: 1 to 512 are possible")
    );
    assert_eq!(told("size.cores", "two").message, "write a whole number, in digits alone: two is none");
    assert_eq!(told("limits.cpu", "much").message, "write unlimited, or a whole number: much is neither");
    assert_eq!(told("limits.cpu", "4").field, Some("limits.cpu"));
    assert_eq!(told("network.address", "10.0.0").field, Some("network.address"));
    assert_eq!(told("network.resolver.own.servers", "10.0.0").field, Some("network.resolver.own.servers"));
    assert_eq!(told("name", "").field, Some("name"));
    assert_eq!(place(form, Some("reason"), "x").field, Some("reason"));
    assert_eq!(place(form, Some("nonsense"), "x").field, None);
}

#[test]
fn what_two_changed_is_put_together_field_by_field() {
    let form = form_of(PartKind::Guest);
    let before = values_of(form, &guest());
    let (mut now, mut typed) = (before.clone(), before.clone());
    now.set("size.cores", "4");
    now.set("size.memory_mib", "1024");
    typed.set("size.memory_mib", "2048");
    typed.set("name", "web-9");
    let (next, collisions) = merged(form, &before, &now, &typed);
    assert_eq!(
        (next.get("size.cores"), next.get("size.memory_mib"), next.get("name")),
        ("4", "2048", "web-9")
    );
    let contested: Vec<(&str, bool)> = collisions.iter().map(|one| (one.field, one.is_contested())).collect();
    assert_eq!(contested, [("size.cores", false), ("size.memory_mib", true)]);
}
