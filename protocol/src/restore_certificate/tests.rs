//! Tests of the document and its envelope.

use serde_json::json;

use super::*;
use crate::code::ErrorCode;

fn document() -> serde_json::Value {
    json!({
        "schema": "holdfast.restore_certificate/v1",
        "guest": { "uid": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55", "name": "web-1", "customer": "acme" },
        "host": { "id": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a56", "name": "box7", "node": "pve" },
        "backup": {
            "operation": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a57",
            "archive": "backup2:backup/vzdump-lxc-101-2026_11_21-02_00_00.tar.zst",
            "taken_at": "2026-11-21T02:00:00Z", "bytes": 1_234_567, "storage": "backup2", "tier": "local"
        },
        "test": {
            "operation": "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a58",
            "began_at": "2026-11-21T03:00:00Z", "ended_at": "2026-11-21T03:04:00Z",
            "verdict": "proved", "reason": "stacks that are well by their own check: 1",
            "checks": [
                { "check": "restored" },
                { "check": "stack", "name": "shop", "state": "healthy", "took_ms": 2048 },
                { "check": "canary", "sha256": "a".repeat(64) }
            ],
            "took": { "restore_s": 180, "up_s": 42 }
        },
        "issued_at": "2026-11-21T03:05:00Z",
        "agent_version": "0.1.0"
    })
}

fn envelope(document: &serde_json::Value) -> SignedCertificate {
    SignedCertificate {
        schema: SignedSchema::V1,
        document: DocumentText::try_from(document.to_string()).unwrap(),
        host_signature: SignatureText::try_from("s".repeat(64)).unwrap(),
        hub: None,
    }
}

#[test]
fn the_signed_bytes_are_the_bytes_that_travel() {
    // Keys of this text are in the order of the alphabet, which is not the order that this program writes.
    let signed = envelope(&document());
    let sent = serde_json::to_vec(&signed).unwrap();
    let received = SignedCertificate::parse(&sent).unwrap();
    assert_eq!(received.document.as_str(), document().to_string());
    let read = received.read().unwrap();
    assert_ne!(DocumentText::of(&read).unwrap(), received.document);
    assert_eq!(read.test.return_s(), Some(222));
    let checks: Vec<String> = read.test.checks.iter().map(ToString::to_string).collect();
    assert_eq!(checks.get(1).map(String::as_str), Some("stack shop: healthy by its own check, 2.048 s"));
}

#[test]
fn a_document_is_closed() {
    type Edit = fn(&mut serde_json::Value);
    let edits: [(&str, Edit); 5] = [
        ("another version", |d| d["schema"] = json!("holdfast.restore_certificate/v2")),
        ("another verdict", |d| d["test"]["verdict"] = json!("failed")),
        ("an unknown field", |d| d["backup"]["sha256"] = json!("b".repeat(64))),
        ("an unknown check", |d| d["test"]["checks"][0]["check"] = json!("hoped")),
        ("a time with an offset", |d| d["issued_at"] = json!("2026-11-21T03:05:00+01:00")),
    ];
    for (what, edit) in edits {
        let mut changed = document();
        edit(&mut changed);
        assert!(envelope(&changed).read().is_err(), "{what}");
    }
    let long = vec![b' '; ENVELOPE_BYTES_MAX + 1];
    assert_eq!(SignedCertificate::parse(&long).unwrap_err().code(), ErrorCode::Size);
}

#[test]
fn the_largest_document_fits() {
    let mut largest = document();
    let name = "s".repeat(63);
    let mount = format!("/{}", "m".repeat(254));
    let stack = json!({ "check": "stack", "name": name, "state": "healthy", "took_ms": u64::MAX });
    let canary = json!({ "check": "canary", "mount": mount, "sha256": "a".repeat(64) });
    let checks = std::iter::repeat_n(stack, 32).chain(std::iter::repeat_n(canary, 17));
    largest["test"]["checks"] = checks.collect();
    largest["test"]["reason"] = json!("\u{1}".repeat(512));
    let text = DocumentText::try_from(largest.to_string()).unwrap();
    let signed = SignedCertificate { document: text, ..envelope(&document()) };
    let bytes = serde_json::to_vec(&signed).unwrap();
    assert_eq!(SignedCertificate::parse(&bytes).unwrap(), signed);
}
