//! Tests of bad documents: each code with its path.

use serde_json::{Value, json};

use super::*;
use crate::json::chain;

fn guest(n: u32) -> Value {
    json!({
        "uid": format!("018f3c1e-6b1f-7c1d-9d0a-{n:012}"), "name": format!("web-{n}"), "customer": "acme",
        "vmid": 100 + n, "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": 512, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.66.0.{n}/24"), "gateway": "10.66.0.254" },
        "volumes": [
            { "name": "db", "mount": "/srv/db", "size_gib": 4, "kind": "hot" },
            { "name": "media", "mount": "/srv/media", "size_gib": 100, "kind": { "bulk": { "none": "rebuilt from the origin" } } }
        ]
    })
}

fn document() -> Value {
    let mut first = guest(1);
    first["policy"] = json!("usual");
    let policies = json!([{ "name": "usual", "tiers": { "local": {
        "target": "backup2",
        "schedule": { "at": ["02:30"], "zone": "Europe/Berlin", "jitter_min": 15, "window_min": 120 },
        "retention": { "keep": { "last": 3, "daily": 14 } },
        "consistency": "application", "restore_test_days": 30
    } } }]);
    json!({ "schema": "holdfast.desired/v1", "generation": 3, "poll_interval_s": 30, "policies": policies, "guests": [first, guest(2)] })
}

#[test]
fn a_good_document_passes_and_spacing_does_not_matter() {
    let compact = Desired::parse(&serde_json::to_vec(&document()).unwrap()).unwrap();
    let pretty = Desired::parse(&serde_json::to_vec_pretty(&document()).unwrap()).unwrap();
    assert_eq!(compact.numbered(), pretty.numbered());
    assert_eq!(compact.guests().len(), 2);
}

/// A document from before packets, limit, firewall and resolver were in it says what it said, also by its hash.
#[test]
fn what_a_network_leaves_out_is_not_written() {
    let network = &Desired::parse(document().to_string().as_bytes()).unwrap().guests()[0].network.clone();
    let written = serde_json::to_value(network).unwrap();
    assert_eq!(written, guest(1)["network"]);
    let mut more = document();
    let all = json!({
        "bridge": "vmbr0", "address": "10.66.0.1/24", "mtu": { "bytes": 1400 }, "rate": { "mib_per_s": 50 },
        "firewall": "on", "resolver": { "own": { "servers": ["9.9.9.9", "fd00::1"], "search": ["lan.example"] } }
    });
    more["guests"][0]["network"] = all.clone();
    let read = Desired::parse(more.to_string().as_bytes()).unwrap();
    assert_eq!(serde_json::to_value(&read.guests()[0].network).unwrap(), all);
    more["guests"][0]["network"] = json!({
        "bridge": "vmbr0", "address": "10.66.0.1/24", "mtu": "bridge", "rate": "unlimited", "firewall": "off",
        "resolver": "host"
    });
    assert!(Desired::parse(more.to_string().as_bytes()).is_ok());
}

#[test]
fn every_bad_document_has_its_code_and_place() {
    let cases: &[(&str, Value, ErrorCode)] = &[
        ("/guests/1/uid", guest(1)["uid"].clone(), ErrorCode::DuplicateGuest),
        ("/guests/1/name", json!("web-1"), ErrorCode::DuplicateName),
        ("/guests/1/vmid", json!(101), ErrorCode::DuplicateVmid),
        ("/guests/1/network/address", json!("10.66.0.1/24"), ErrorCode::DuplicateAddress),
        ("/guests/0/network/gateway", json!("10.67.0.1"), ErrorCode::Range),
        ("/guests/0/network/mtu", json!({ "bytes": 575 }), ErrorCode::Range),
        ("/guests/0/network/mtu", json!({ "bytes": 65_536 }), ErrorCode::Range),
        ("/guests/0/network/mtu", json!("jumbo"), ErrorCode::Version),
        ("/guests/0/network/rate", json!({ "mib_per_s": 0 }), ErrorCode::Range),
        ("/guests/0/network/rate", json!({ "mib_per_s": -1 }), ErrorCode::Range),
        ("/guests/0/network/rate", json!("5"), ErrorCode::Version),
        ("/guests/0/network/firewall", json!("maybe"), ErrorCode::Version),
        ("/guests/0/network/resolver", json!({ "own": { "servers": [] } }), ErrorCode::Range),
        (
            "/guests/0/network/resolver",
            json!({ "own": { "servers": ["9.9.9.9", "9.9.9.9"] } }),
            ErrorCode::Range,
        ),
        ("/guests/0/network/resolver", json!({ "own": { "servers": ["dns.example"] } }), ErrorCode::Range),
        ("/guests/0/network/resolver", json!({ "own": { "servers": ["224.0.0.1"] } }), ErrorCode::Range),
        (
            "/guests/0/network/resolver",
            json!({ "own": { "servers": ["9.9.9.9"], "search": ["a_b"] } }),
            ErrorCode::Range,
        ),
        (
            "/guests/0/network/resolver",
            json!({ "own": { "servers": ["9.9.9.9"], "search": ["lan\nnameserver: x"] } }),
            ErrorCode::Range,
        ),
        (
            "/guests/0/network/resolver",
            json!({ "own": { "servers": ["9.9.9.9"], "via": 1 } }),
            ErrorCode::UnknownField,
        ),
        ("/guests/0/volumes/1/name", json!("db"), ErrorCode::DuplicateVolume),
        ("/guests/0/volumes/1/mount", json!("/srv/db"), ErrorCode::DuplicateVolume),
        ("/guests/0/volumes/1/kind", json!("bulk"), ErrorCode::Range),
        ("/guests/0/volumes/1/kind", json!({ "bulk": { "none": "" } }), ErrorCode::Range),
        ("/guests/0/volumes/1/kind", json!({ "bind": "/etc" }), ErrorCode::Version),
        ("/guests/0/volumes/1/mount", json!("/srv/../etc"), ErrorCode::Range),
        ("/guests/0/size/memory_mib", json!(0), ErrorCode::Range),
        ("/guests/0/size/memory_mib", json!(9_223_372_036_854_775_807_u64), ErrorCode::Range),
        ("/guests/0/size/cores", json!(-1), ErrorCode::Range),
        ("/guests/0/size/cores", json!("2"), ErrorCode::Range),
        ("/guests/0/vmid", json!(99), ErrorCode::Range),
        ("/guests/0/name", json!("web,mp0=/etc"), ErrorCode::Range),
        ("/guests/0/name", json!("web\nlxc.hook: x"), ErrorCode::Range),
        ("/guests/0/scratch", json!(true), ErrorCode::UnknownField),
        ("/guests/0/features", json!("keyctl=1"), ErrorCode::UnknownField),
        ("/guests/0/size/hookscript", json!("x"), ErrorCode::UnknownField),
        ("/guests/1/policy", json!("gold"), ErrorCode::PolicyUnknown),
        ("/guests/1/policy", json!("Usual"), ErrorCode::Range),
        ("/policies", json!([{ "name": "usual", "tiers": {} }]), ErrorCode::Range),
        ("/policies/0/keep", json!(1), ErrorCode::UnknownField),
        ("/policies/0/tiers/cloud", json!({}), ErrorCode::UnknownField),
        ("/policies/0/tiers/local/target", json!("../x"), ErrorCode::Range),
        ("/policies/0/tiers/local/consistency", json!("some"), ErrorCode::Version),
        ("/policies/0/tiers/local/restore_test_days", json!(0), ErrorCode::Range),
        ("/policies/0/tiers/local/retention", json!({ "keep": {} }), ErrorCode::Range),
        ("/policies/0/tiers/local/retention", json!("none"), ErrorCode::Version),
        ("/policies/0/tiers/local/schedule/at", json!([]), ErrorCode::Range),
        ("/policies/0/tiers/local/schedule/at", json!(["*/15"]), ErrorCode::Range),
        ("/policies/0/tiers/local/schedule/at", json!(["daily", "0:00"]), ErrorCode::Range),
        ("/policies/0/tiers/local/schedule/zone", json!("CEST"), ErrorCode::Range),
        ("/policies/0/tiers/local/schedule/jitter_min", json!(121), ErrorCode::Range),
        ("/policies/0/tiers/local/schedule/window_min", json!(0), ErrorCode::Range),
        ("/policies/0/tiers/local/schedule/every", json!("night"), ErrorCode::UnknownField),
        ("/force", json!(1), ErrorCode::UnknownField),
        ("/schema", json!("holdfast.desired/v2"), ErrorCode::Version),
        ("/guests/0/run", json!("paused"), ErrorCode::Version),
        ("/poll_interval_s", json!(0), ErrorCode::Range),
        ("/observe_interval_s", json!(4), ErrorCode::Range),
        ("/observe_interval_s", json!(61), ErrorCode::Range),
        ("/alarm_after_s", json!(59), ErrorCode::Range),
        ("/levels", json!({ "cpu_percent": 19 }), ErrorCode::Range),
        ("/levels", json!({ "cpu_percent": 95, "for_minutes": 10 }), ErrorCode::UnknownField),
        ("/guests/0/levels", json!({ "memory_percent": 101 }), ErrorCode::Range),
        ("/guests/1/levels", json!({ "root_disk_percent": "90" }), ErrorCode::Range),
        ("/alarm_after_s", json!(89), ErrorCode::Range),
        ("/generation", json!(-1), ErrorCode::Range),
        ("/guests", json!(null), ErrorCode::Range),
    ];
    for (pointer, value, code) in cases {
        let mut bad = document();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match bad.pointer_mut(parent).unwrap() {
            Value::Object(map) => drop(map.insert(key.to_owned(), value.clone())),
            other => panic!("{parent} is {other}"),
        }
        let error = Desired::parse(&serde_json::to_vec(&bad).unwrap()).unwrap_err();
        assert_eq!(error.code(), *code, "{pointer} = {value}: {}", chain(&error));
        assert!(error.path().is_some(), "{pointer}");
    }
}

#[test]
fn a_policy_stands_once_and_the_same_document_without_any_is_as_it_always_was() {
    let mut twice = document();
    let policy = twice["policies"][0].clone();
    twice["policies"].as_array_mut().unwrap().push(policy);
    let error = Desired::parse(twice.to_string().as_bytes()).unwrap_err();
    assert_eq!((error.code(), error.path()), (ErrorCode::DuplicateName, Some("policies[1].name")));
    let mut many = document();
    let policies = (0..65).map(|n| {
        let mut policy = many["policies"][0].clone();
        policy["name"] = json!(format!("p{n}"));
        policy
    });
    many["policies"] = policies.collect();
    assert_eq!(Desired::parse(many.to_string().as_bytes()).unwrap_err().code(), ErrorCode::Range);
    // The hash of a document that was stored before there were policies stays what it was.
    let plain = json!({ "schema": "holdfast.desired/v1", "generation": 3, "poll_interval_s": 30, "guests": [guest(2)] });
    let plain = Desired::parse(plain.to_string().as_bytes()).unwrap();
    let text = serde_json::to_string(plain.document()).unwrap();
    assert!(!text.contains("polic"), "{text}");
}

#[test]
fn every_field_is_needed_but_the_optional_ones() {
    let text = serde_json::to_string(&document()).unwrap();
    for field in [
        "schema",
        "generation",
        "poll_interval_s",
        "guests",
        "uid",
        "name",
        "customer",
        "run",
        "golden",
        "size",
        "network",
    ] {
        let renamed = text.replacen(&format!("\"{field}\":"), "\"x_\":", 1);
        let code = Desired::parse(renamed.as_bytes()).unwrap_err().code();
        assert!(matches!(code, ErrorCode::UnknownField | ErrorCode::Missing), "{field}: {code}");
    }
}

#[test]
fn a_document_has_bounds() {
    let long = vec![b' '; DOCUMENT_BYTES_MAX + 1];
    assert_eq!(Desired::parse(&long).unwrap_err().code(), ErrorCode::Size);
    let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
    assert_eq!(Desired::parse(&deep).unwrap_err().code(), ErrorCode::Range, "a list is refused as one");
    let deep = [br#"{"x":"#.repeat(20_000), b"1".to_vec(), b"}".repeat(20_000)].concat();
    assert_eq!(
        Desired::parse(&deep).unwrap_err().code(),
        ErrorCode::UnknownField,
        "nothing is read below it"
    );
}

/// Three targets, of which these are not schedulable.
fn with_targets(guest: impl Fn(&mut Value), shut: &[&str]) -> Result<Desired, DesiredError> {
    let target = |name: &str, role: &str, class: &str, last: u8| {
        json!({ "name": name, "class": class, "role": role, "state": "attached", "label": "grey",
            "backend": { "local-dir": { "uuid": format!("0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5b{last:02x}") } },
            "default": false, "schedulable": !shut.contains(&name) })
    };
    let mut document = document();
    document["storage"] = json!([
        target("ssd1", "primary", "fast", 1),
        target("usb1", "bulk-data", "slow", 2),
        target("backup2", "local-backup", "slow", 3),
    ]);
    guest(&mut document["guests"][0]);
    Desired::parse(&serde_json::to_vec(&document).unwrap())
}

#[test]
fn disks_name_targets_of_the_manifest_that_are_for_them() {
    let good = with_targets(
        |guest| {
            guest["storage"] = json!("ssd1");
            guest["volumes"][0]["storage"] = json!("ssd1");
            guest["volumes"][1]["storage"] = json!("usb1");
        },
        &[],
    );
    assert_eq!(good.unwrap().guests()[0].volumes[1].storage.as_ref().unwrap().as_str(), "usb1");
    type Change = fn(&mut Value);
    let rows: [(&str, Change); 4] = [
        ("guests[0].storage", |guest| guest["storage"] = json!("nosuch")),
        ("guests[0].storage", |guest| guest["storage"] = json!("usb1")),
        ("guests[0].volumes[0].storage", |guest| guest["volumes"][0]["storage"] = json!("backup2")),
        ("guests[0].volumes[1].storage", |guest| guest["volumes"][1]["storage"] = json!("ssd1")),
    ];
    for (path, change) in rows {
        let refused = with_targets(change, &[]).unwrap_err();
        assert_eq!((refused.code(), refused.path()), (ErrorCode::Range, Some(path)), "{refused}");
    }
}

#[test]
fn no_policy_takes_backups_to_a_target_that_is_not_schedulable() {
    assert!(with_targets(|_| (), &[]).is_ok());
    assert!(with_targets(|_| (), &["ssd1", "usb1"]).is_ok(), "they are no policy's");
    let refused = with_targets(|_| (), &["backup2"]).unwrap_err();
    assert_eq!((refused.code(), refused.path()), (ErrorCode::Range, Some("policies[0].tiers.local.target")));
}
