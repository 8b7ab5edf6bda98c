//! Tests of conditions of recovery codes.

use holdfast_protocol::storage::{Approval, StorageTarget, TargetState};

use super::*;

/// A host with an off-site target.
fn off_site() -> Box7 {
    let key = ["ab"; 32].join(":");
    let backend =
        json!({ "pbs": { "server": "10.66.0.1", "datastore": "s", "fingerprint": key, "key": key } });
    let wanted: StorageTarget = serde_json::from_value(json!({
        "name": "off1", "class": "slow", "role": "offsite-backup", "state": "attached", "backend": backend, "label": "off-site",
        "default": false, "schedulable": true
    }))
    .unwrap();
    let mark = "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a01".parse().unwrap();
    let (approval, status) = (Approval::of(&wanted), TargetState::Attached);
    let mut host = Box7::well();
    host.targets = vec![TargetRecord { approval, status, mark, marked: None, entry: None }];
    host
}

/// The same with a code that was typed so many days ago, and with this state of its copy at the hub.
fn with_code(days: i64, origin: &str, problem: Option<&str>) -> Box7 {
    let (kept_at, key) = (at(-days * 86_400), ["ab"; 32].join(":"));
    let context = json!({
        "host": "01906f3c-6b1f-7c1d-9d0a-2f6d1c0b7a02", "host_name": "box7", "customer": "acme",
        "epoch": 1, "code": 1, "made_at": "2026-11-21T04:02:15Z"
    });
    let code = json!({
        "record": { "context": context, "fingerprint": key }, "target": "off1",
        "status": { "kept": { "at": kept_at } }, "begun_at": kept_at, "drilled_at": null, "origin": origin
    });
    let copy = json!({ "code": 1, "place": "hub", "problem": problem, "seen_at": at(0) });
    let mut host = off_site();
    host.codes = serde_json::from_value(json!({ "codes": [code], "copies": [copy] })).unwrap();
    host
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    vec![
        ("ESCROW_MISSING", off_site()),
        ("ESCROW_DRILL", with_code(181, "made", None)),
        ("ESCROW_DRILL", with_code(1, "handed_over", None)),
        ("ESCROW_COPY", with_code(1, "made", Some("it is not there"))),
    ]
}

#[test]
fn a_code_that_was_typed_lately_raises_nothing() {
    assert_eq!(with_code(179, "made", None).codes(), [""; 0]);
}

/// Both copies are of one code: it is one condition with both facts.
#[test]
fn two_copies_of_a_code_are_one_condition() {
    let mut host = with_code(1, "made", Some("it is not there"));
    let mut second = host.codes.copies[0].clone();
    second.place = "target:disk1".parse().unwrap();
    host.codes.copies.push(second);
    let found = host.found();
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("at hub") && found[0].message.contains("at target:disk1"), "{found:?}");
}

#[test]
fn a_drill_is_late_since_it_was_due() {
    assert_eq!(with_code(181, "made", None).found()[0].since, Some(at(-86_400)));
}
