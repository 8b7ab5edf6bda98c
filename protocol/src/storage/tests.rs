//! Tests of hostile storage manifests, each with its code.

use serde_json::{Value, json};

use super::*;
use crate::code::ErrorCode;
use crate::desired::Desired;

const UUID: &str = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b";

fn hash(byte: &str) -> String {
    vec![byte; 32].join(":")
}

fn sealed() -> String {
    format!("YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+{}", "A".repeat(60))
}

fn target(name: &str, backend: Value, role: &str) -> Value {
    json!({ "name": name, "backend": backend, "class": "slow", "role": role, "state": "attached",
        "label": "the blue one", "default": false, "schedulable": true })
}

fn usb() -> Value {
    target("usb1", json!({ "usb": { "uuid": UUID } }), "local-backup")
}

fn nfs() -> Value {
    target("nas", json!({ "nfs": { "server": "nas.example", "export": "/srv/bulk" } }), "bulk-data")
}

fn cifs() -> Value {
    let mut cifs =
        target("win", json!({ "cifs": { "server": "10.0.0.9", "share": "backup" } }), "local-backup");
    cifs["creds"] = json!(sealed());
    cifs
}

fn pbs() -> Value {
    let backend = json!({ "pbs": { "server": "pbs.example", "datastore": "boxes", "namespace": "acme/box7",
        "fingerprint": hash("ab"), "key": hash("cd") } });
    let mut pbs = target("offsite", backend, "offsite-backup");
    pbs["creds"] = json!(sealed());
    pbs
}

fn document(targets: Vec<Value>) -> Vec<u8> {
    json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "storage": targets, "guests": [] })
        .to_string()
        .into_bytes()
}

fn refused(targets: Vec<Value>) -> (ErrorCode, String) {
    let error = Desired::parse(&document(targets)).expect_err("it is refused");
    (error.code(), error.path().unwrap_or_default().to_owned())
}

#[test]
fn a_manifest_of_every_kind_is_taken_and_written_as_it_was() {
    let all = vec![usb(), nfs(), cifs(), pbs()];
    let desired = Desired::parse(&document(all.clone())).unwrap();
    assert_eq!(desired.storage().len(), 4);
    assert_eq!(serde_json::to_value(desired.storage()).unwrap(), Value::Array(all));
    let plain = Desired::parse(&document(Vec::new())).unwrap();
    // The hash of a document that was stored before there were manifests stays what it was.
    assert!(!serde_json::to_string(plain.document()).unwrap().contains("storage"));
}

#[test]
fn an_approval_binds_every_place_that_data_could_flow_to() {
    let read = |value: Value| Approval::of(&serde_json::from_value(value).unwrap());
    let whole = read(pbs());
    let mut label = pbs();
    label["label"] = json!("another sticker");
    label["default"] = json!(true);
    label["schedulable"] = json!(false);
    assert_eq!(read(label), whole);
    for (place, value) in [
        ("/name", json!("other")),
        ("/backend/pbs/server", json!("pbs2.example")),
        ("/backend/pbs/datastore", json!("other")),
        ("/backend/pbs/namespace", json!("acme")),
        ("/backend/pbs/fingerprint", json!(hash("ac"))),
        ("/backend/pbs/key", json!(hash("ce"))),
        ("/class", json!("fast")),
        ("/creds", json!(sealed().replace("AAAA", "AAAB"))),
    ] {
        let mut other = pbs();
        *other.pointer_mut(place).unwrap() = value;
        assert_ne!(read(other), whole, "{place}");
    }
}

/// Each of these in the place of a right one.
fn each(of: fn() -> Value, place: &str, bad: &[&str], code: ErrorCode) {
    for text in bad {
        let mut one = of();
        *one.pointer_mut(place).unwrap() = json!(text);
        let (found, path) = refused(vec![one]);
        assert_eq!(found, code, "{place} = {text:.60?}");
        assert!(path.starts_with("storage[0]"), "{path}");
    }
}

#[test]
fn no_uuid_has_a_second_spelling() {
    let (upper, braces, short, long) =
        (UUID.to_uppercase(), format!("{{{UUID}}}"), &UUID[..35], format!("{UUID}0"));
    let (tag, line, nul) = (format!("UUID={UUID}"), format!("{UUID}\n"), format!("{}\0", &UUID[..35]));
    let nil = "00000000-0000-0000-0000-000000000000";
    let mixed = UUID.replacen("0b5f", "0B5f", 1);
    let bad = [
        upper.as_str(),
        &mixed,
        &braces,
        short,
        &long,
        &tag,
        &line,
        &nul,
        nil,
        "",
        "-",
        "../x",
        "1A2B-3C4D",
        "/dev/sdb1",
        "0b5f1f3c9d0e4a6b8f511c2d3e4f5a6b0000",
        "０b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6",
    ];
    each(usb, "/backend/usb/uuid", &bad, ErrorCode::Range);
}

#[test]
fn no_share_of_another_machine_bends_the_mount() {
    let long = format!("{}.example", "a".repeat(250));
    let servers = [
        "",
        "-osuid",
        "[::1]",
        "::1",
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "localhost",
        "a.localhost",
        "nas..example",
        "nas.example.",
        "NAS.example",
        "näs.example",
        "nas example",
        "nas,soft",
        "nas:1",
        "nas/x",
        "nas\n",
        "nas%41",
        "user@nas",
        "10.0.0.09",
        "10.0.0.256",
        &long,
    ];
    each(nfs, "/backend/nfs/server", &servers, ErrorCode::Range);
    each(cifs, "/backend/cifs/server", &servers, ErrorCode::Range);
    each(pbs, "/backend/pbs/server", &servers, ErrorCode::Range);
    let deep = "/a".repeat(200);
    let exports = [
        "", "/", "srv/bulk", "/a b", "/a,soft", "/../..", "/a/../b", "/a/./b", "/a//b", "/a/", "/a/.",
        "/a\n", "/a\\040b", "/a\0", "/ä", "/-rf", "--", "/a\t", "/a$b", "/a:b", &deep,
    ];
    each(nfs, "/backend/nfs/export", &exports, ErrorCode::Range);
    let share = "s".repeat(81);
    let shares = [
        "",
        ".",
        "..",
        "share,uid=0",
        "../c$",
        "c$",
        "a/b",
        "a\\b",
        "a b",
        "a%2f",
        "a\n",
        "-o",
        "vers=1.0",
        &share,
    ];
    each(cifs, "/backend/cifs/share", &shares, ErrorCode::Range);
    each(
        pbs,
        "/backend/pbs/datastore",
        &["", "..", "a/b", "-a", ".a", "a b", "a\n", &share],
        ErrorCode::Range,
    );
    let many = ["a"; 9].join("/");
    each(
        pbs,
        "/backend/pbs/namespace",
        &["", "/", "a/", "/a", "a//b", "a/../b", "a\n", &many],
        ErrorCode::Range,
    );
    let (upper, short) = (hash("AB"), hash("ab")[..92].to_owned());
    each(pbs, "/backend/pbs/fingerprint", &["", &upper, &short, "ab", &"ab".repeat(32)], ErrorCode::Range);
    each(pbs, "/backend/pbs/key", &["", &upper, &short], ErrorCode::Range);
}

#[test]
fn names_labels_and_credentials_have_their_form() {
    let (long, label) = ("a".repeat(33), "x".repeat(65));
    let names =
        ["", "a", "1usb", "-a", "a-", "a_b", "A1", "a.b", "../x", "a/b", "a b", "ä1", "a,b", "a\n", &long];
    each(usb, "/name", &names, ErrorCode::Range);
    each(usb, "/label", &["", "a\nb", "a\u{1b}[2J", &label], ErrorCode::Range);
    let (plain, big) = ("secret".to_owned(), format!("{}{}", sealed(), "A".repeat(4096)));
    let (broken, spaced) = (format!("{}=A==", &sealed()[..88]), sealed().replacen("AAAA", "A AA", 1));
    let urls = sealed().replacen("AAAA", "A-_A", 1);
    let cut = &sealed()[..sealed().len() - 1];
    let bad = ["", plain.as_str(), &big, &broken, &spaced, &urls, cut, "user=,guest", "a\nb"];
    each(cifs, "/creds", &bad, ErrorCode::Range);
}

#[test]
fn fields_outside_the_schema_are_refused() {
    for (place, key, value) in [
        ("", "options", json!(["suid"])),
        ("", "path", json!("/etc")),
        ("", "policy", json!({})),
        ("/backend/usb", "options", json!("rw,suid")),
        ("/backend/usb", "device", json!("/dev/sdb1")),
        ("/backend/usb", "fstype", json!("ntfs")),
    ] {
        let mut one = usb();
        one.pointer_mut(place).unwrap()[key] = value;
        assert_eq!(refused(vec![one]).0, ErrorCode::UnknownField, "{place}/{key}");
    }
    for (place, value, code) in [
        ("/backend", json!({ "iscsi": {} }), ErrorCode::Version),
        ("/backend", json!({ "bind": { "path": "/etc" } }), ErrorCode::Version),
        ("/backend", json!("usb"), ErrorCode::Range),
        ("/backend", json!({ "usb": { "uuid": UUID }, "zfs": {} }), ErrorCode::Syntax),
        ("/class", json!("backend"), ErrorCode::Version),
        ("/role", json!("scratch"), ErrorCode::Version),
        ("/state", json!("wiped"), ErrorCode::Version),
        ("/default", json!(1), ErrorCode::Range),
        ("/label", json!(null), ErrorCode::Range),
    ] {
        let mut one = usb();
        *one.pointer_mut(place).unwrap() = value.clone();
        assert_eq!(refused(vec![one]).0, code, "{place} = {value}");
    }
    for field in ["name", "backend", "class", "role", "state", "label", "default", "schedulable"] {
        let mut one = usb();
        one.as_object_mut().unwrap().remove(field);
        assert_eq!(refused(vec![one]).0, ErrorCode::Missing, "{field}");
    }
}

#[test]
fn no_two_targets_are_one_place_and_each_is_fit_for_its_role() {
    let mut same_disk = usb();
    same_disk["name"] = json!("usb2");
    // As if plugged in another way: one disk all the same.
    same_disk["backend"] = json!({ "local-dir": { "uuid": UUID } });
    let (code, path) = refused(vec![usb(), same_disk]);
    assert_eq!((code, path.as_str()), (ErrorCode::DuplicateTarget, "storage[1].backend"));
    let mut same_name = nfs();
    same_name["name"] = json!("usb1");
    assert_eq!(refused(vec![usb(), same_name]).1, "storage[1].name");
    let (mut one, mut two) = (usb(), cifs());
    one["default"] = json!(true);
    two["default"] = json!(true);
    assert_eq!(refused(vec![one, two]).1, "storage[1].default");
    for (of, place, value, at) in [
        (usb as fn() -> Value, "/role", json!("offsite-backup"), "storage[0].role"),
        (pbs, "/role", json!("local-backup"), "storage[0].role"),
        (usb, "/role", json!("primary"), "storage[0].class"),
        (nfs, "/role", json!("primary"), "storage[0].class"),
    ] {
        let mut bad = of();
        *bad.pointer_mut(place).unwrap() = value;
        assert_eq!(refused(vec![bad]), (ErrorCode::Range, at.to_owned()));
    }
    let (mut with, mut without) = (usb(), pbs());
    with["creds"] = json!(sealed());
    without.as_object_mut().unwrap().remove("creds");
    for bad in [with, without] {
        assert_eq!(refused(vec![bad]), (ErrorCode::Range, "storage[0].creds".to_owned()));
    }
    let many = (0..=TARGETS_MAX).map(|n| {
        let mut one = nfs();
        one["name"] = json!(format!("nas{n}"));
        one["backend"]["nfs"]["export"] = json!(format!("/srv/{n}"));
        one
    });
    assert_eq!(refused(many.collect()).0, ErrorCode::Range);
}
