//! Tests of certificates: forged ones, and stock OpenSSH on real ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use holdfast_protocol::id::{GuestUid, HostId};
use holdfast_protocol::restore_certificate::{
    Countersignature, DocumentText, RestoreCertificate, SignatureText, SignedCertificate, StatementText,
};
use holdfast_trust::signature::{Namespace as OrderNamespace, SignatureError as OrderError};
use restore_certificate::countersign::{KeyOwner, ReceiveError, countersign, receive};
use restore_certificate::issue::issue;
use restore_certificate::verify::{HubTrust, KnownHub, VerifyError, verify};
use restore_certificate::{SignatureError, SigningKey};
use uuid::Uuid;

fn key() -> SigningKey {
    let pair = rcgen::KeyPair::generate().unwrap();
    SigningKey::from_pkcs8(&pair.serialize_der()).unwrap()
}

fn document() -> RestoreCertificate {
    serde_json::from_value(serde_json::json!({
        "schema": "holdfast.restore_certificate/v1",
        "guest": { "uid": Uuid::from_u128(1), "name": "web-1", "customer": "acme" },
        "host": { "id": Uuid::from_u128(7), "name": "box7", "node": "pve" },
        "backup": {
            "operation": Uuid::from_u128(2), "archive": "backup2:backup/a.tar.zst",
            "taken_at": "2026-11-21T02:00:00Z", "bytes": 1000, "storage": "backup2"
        },
        "test": {
            "operation": Uuid::from_u128(3),
            "began_at": "2026-11-21T03:00:00Z", "ended_at": "2026-11-21T03:04:00Z",
            "verdict": "proved", "reason": "canaries as they were: 1",
            "checks": [{ "check": "restored" }, { "check": "canary", "sha256": "a".repeat(64) }],
            "took": { "restore_s": 180, "up_s": 42 }
        },
        "issued_at": "2026-11-21T03:05:00Z",
        "agent_version": "0.1.0"
    }))
    .unwrap()
}

fn owner(host: u128) -> KeyOwner {
    KeyOwner {
        host: HostId::new(Uuid::from_u128(host)),
        name: "box7".parse().unwrap(),
        generation: 4,
        received_at: "2026-11-21T03:06:00Z".to_owned().try_into().unwrap(),
    }
}

fn signed(host: &SigningKey, hub: &SigningKey) -> SignedCertificate {
    let received = receive(issue(&document(), host).unwrap()).unwrap();
    let stamp = countersign(&received, &owner(7), hub).unwrap();
    SignedCertificate { hub: Some(stamp), ..received.signed }
}

#[test]
fn a_certificate_is_verified_with_and_without_the_hubs_key() {
    let (host, hub) = (key(), key());
    let whole = signed(&host, &hub);
    let known = [
        (KnownHub::Key(hub.public().clone()), HubTrust::Compared),
        (KnownHub::Fingerprint(hub.public().fingerprint()), HubTrust::Compared),
        (KnownHub::Unknown, HubTrust::NotCompared),
    ];
    for (known, trust) in known {
        let proof = verify(whole.clone(), &known).unwrap();
        assert_eq!(proof.trust, trust);
        assert_eq!((&proof.host_key, &proof.hub_key), (host.public(), hub.public()));
        assert_eq!(proof.document, document());
        assert_eq!(proof.statement.certificate_generation, 4);
    }
}

/// Replaces a part of the document's bytes. Their signature stays.
fn changed(signed: &SignedCertificate, from: &str, to: &str) -> SignedCertificate {
    let text = signed.document.as_str();
    assert!(text.contains(from));
    SignedCertificate { document: text.replace(from, to).try_into().unwrap(), ..signed.clone() }
}

#[test]
fn forged_certificates_are_refused() {
    let (host, hub, other) = (key(), key(), key());
    let whole = signed(&host, &hub);
    let known = KnownHub::Key(hub.public().clone());
    let refused = |signed: SignedCertificate| verify(signed, &known).unwrap_err();

    // One byte of the document.
    for (from, to) in [("web-1", "web-2"), ("1000", "9000"), ("{", " {")] {
        let error = refused(changed(&whole, from, to));
        let VerifyError::Host(ReceiveError::Signature(SignatureError::Mismatch)) = error else {
            panic!("{from}: {error:?}")
        };
    }
    // Signed again, by a key that this hub never stated.
    let error = refused(SignedCertificate { hub: whole.hub.clone(), ..issue(&document(), &other).unwrap() });
    assert!(matches!(error, VerifyError::OtherDocument), "{error:?}");
    // Another host's key, which the hub states as what it is.
    let foreign = receive(issue(&document(), &other).unwrap()).unwrap();
    let stamp = countersign(&foreign, &owner(8), &hub).unwrap();
    let error = refused(SignedCertificate { hub: Some(stamp), ..foreign.signed });
    assert!(matches!(error, VerifyError::OtherHost { .. }), "{error:?}");
    // Another hub.
    let error = refused(signed(&host, &other));
    assert!(matches!(error, VerifyError::OtherHub { .. }), "{error:?}");
    // Not countersigned.
    assert!(matches!(refused(SignedCertificate { hub: None, ..whole.clone() }), VerifyError::NoHub));
    // A changed statement.
    let stamp = whole.hub.clone().unwrap();
    let later = stamp.statement.as_str().replace("2026-11-21", "2026-11-22");
    let later = Countersignature { statement: StatementText::try_from(later).unwrap(), ..stamp.clone() };
    let error = refused(SignedCertificate { hub: Some(later), ..whole.clone() });
    assert!(matches!(error, VerifyError::Hub(SignatureError::Mismatch)), "{error:?}");
    // Each signature in the other's place: another namespace.
    let swapped = SignedCertificate {
        document: DocumentText::try_from(stamp.statement.as_str().to_owned()).unwrap(),
        host_signature: stamp.signature.clone(),
        hub: whole.hub.clone(),
        ..whole.clone()
    };
    let error = refused(swapped);
    let VerifyError::Host(ReceiveError::Signature(SignatureError::Namespace { found, .. })) = error else {
        panic!("{error:?}")
    };
    assert_eq!(found, "holdfast-restore-countersign");
    // The certificate of another guest, under this one's signature.
    let mut guest = document();
    guest.guest.uid = GuestUid::new(Uuid::from_u128(99));
    let guest = DocumentText::of(&guest).unwrap();
    let error = refused(SignedCertificate { document: guest, ..whole.clone() });
    assert!(matches!(error, VerifyError::Host(ReceiveError::Signature(_))), "{error:?}");
}

#[test]
fn a_signature_has_one_spelling() {
    let whole = signed(&key(), &key());
    let armour = whole.host_signature.as_str();
    let spellings = [
        armour.trim_end().to_owned(),
        format!("\n{armour}"),
        armour.replace('\n', "\r\n"),
        armour.replacen("SIGNATURE-----\n", "SIGNATURE-----\n\n", 1),
    ];
    for spelling in spellings {
        let other = SignatureText::try_from(spelling.clone()).unwrap();
        let refused = receive(SignedCertificate { host_signature: other, ..whole.clone() });
        assert!(refused.is_err(), "{spelling:?}");
    }
}

/// The hub's key signs statements, and nothing that an agent obeys.
#[test]
fn neither_key_signs_an_order() {
    let (host, hub) = (key(), key());
    let whole = signed(&host, &hub);
    let stamp = whole.hub.unwrap();
    for (bytes, armour) in
        [(whole.document.as_str(), whole.host_signature), (stamp.statement.as_str(), stamp.signature)]
    {
        let refused =
            holdfast_trust::signature::check(bytes.as_bytes(), armour.as_str(), OrderNamespace::Job);
        let error = refused.unwrap_err();
        assert!(matches!(error, OrderError::Namespace { .. }), "{error:?}");
    }
    // Nor would it with the namespace of orders: keys of this kind are no operators' keys.
    let line = hub.public().openssh().unwrap();
    assert!(holdfast_trust::OperatorKey::from_openssh(line.as_str()).is_err());
    let file = format!("hub namespaces=\"holdfast-job\" {}\n", line.as_str());
    assert!(holdfast_trust::Operators::parse(&file).is_err());
}

/// Whether it said yes. It is in Debian's openssh-client.
fn keygen(folder: &Path, arguments: &[&str], input: &[u8]) -> std::io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "stock OpenSSH is what the signatures are held to")]
    let mut child = Command::new("ssh-keygen")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input)?;
    }
    Ok(child.wait()?.success())
}

/// As docs/runbook.md prints it.
#[test]
fn stock_openssh_verifies_both_signatures() {
    let (host, hub) = (key(), key());
    let whole = signed(&host, &hub);
    let stamp = whole.hub.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("host.sig", whole.host_signature.as_str());
    write("hub.sig", stamp.signature.as_str());
    let signers = [("hub", &hub), ("box7", &host)]
        .map(|(name, key)| format!("{name} {}\n", key.public().openssh().unwrap().as_str()));
    write("signers", &signers.concat());
    let verify = |who: &str, namespace: &str, signature: &str, text: &str| {
        let line = ["-Y", "verify", "-f", "signers", "-I", who, "-n", namespace, "-s", signature];
        keygen(folder.path(), &line, text.as_bytes()).unwrap()
    };
    let (document, statement) = (whole.document.as_str(), stamp.statement.as_str());
    assert!(verify("box7", "holdfast-restore-certificate", "host.sig", document));
    assert!(verify("hub", "holdfast-restore-countersign", "hub.sig", statement));
    // And it refuses what this crate refuses.
    assert!(!verify("box7", "holdfast-restore-certificate", "host.sig", &document.replace("web-1", "web-2")));
    assert!(!verify("hub", "holdfast-restore-certificate", "host.sig", document));
    assert!(!verify("box7", "holdfast-job", "host.sig", document));
}

#[test]
fn the_hash_of_a_key_is_that_of_its_der() {
    use sha2::Digest as _;
    let pair = rcgen::KeyPair::generate().unwrap();
    let key = SigningKey::from_pkcs8(&pair.serialize_der()).unwrap();
    let der = rcgen::PublicKeyData::subject_public_key_info(&pair);
    let expected: [u8; 32] = sha2::Sha256::digest(der).into();
    assert_eq!(key.public().spki_sha256(), expected);
}
