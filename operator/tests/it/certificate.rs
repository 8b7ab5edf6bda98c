//! Tests of `holdfast guest certificate` and `holdfast certificate verify`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use holdfast_protocol::restore_certificate::{RestoreCertificate, SignedCertificate};
use restore_certificate::countersign::{KeyOwner, countersign, receive};
use restore_certificate::issue::issue;
use restore_certificate::{PublicKey, SigningKey};
use serde_json::{Value, json};

use crate::apply::{HOST, UID, detail, report};
use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

fn key() -> SigningKey {
    SigningKey::from_pkcs8(&rcgen::KeyPair::generate().unwrap().serialize_der()).unwrap()
}

fn document() -> RestoreCertificate {
    serde_json::from_value(json!({
        "schema": "holdfast.restore_certificate/v1",
        "guest": { "uid": UID, "name": "web", "customer": "acme" },
        "host": { "id": HOST, "name": "box1", "node": "pve1" },
        "backup": {
            "operation": "018f3c1e-6b1f-7c1d-9d0c-000000000002", "archive": "backup2:backup/a.tar.zst",
            "taken_at": "2026-11-21T02:00:00Z", "bytes": 1000, "storage": "backup2", "tier": "local"
        },
        "test": {
            "operation": "018f3c1e-6b1f-7c1d-9d0c-000000000003",
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

fn whole(host: &SigningKey, hub: &SigningKey) -> SignedCertificate {
    let received = receive(issue(&document(), host).unwrap()).unwrap();
    let owner = KeyOwner {
        host: HOST.parse().unwrap(),
        name: "box1".parse().unwrap(),
        generation: 1,
        received_at: "2026-11-21T03:06:00Z".to_owned().try_into().unwrap(),
    };
    let stamp = countersign(&received, &owner, hub).unwrap();
    SignedCertificate { hub: Some(stamp), ..received.signed }
}

/// How the guest of the certificate is found.
const GUESTS: &str = "GET /v1/guests?host=box1&filter=web&limit=500";

fn guests() -> Reply {
    let (host, sections) = (detail(7, json!({})), report(7, 512, "managed", json!([])));
    let host = &host["host"];
    Reply::Data(json!({ "items": [{
        "host_id": host["id"], "host": "box1", "host_state": "online", "guest": sections["guests"][0] }] }))
}

/// A hub that serves this certificate as its own.
async fn hub(certificate: &SignedCertificate, key: &PublicKey) -> FakeHub {
    let hub = FakeHub::logged_in().await;
    hub.on(GUESTS, guests());
    let view = json!({ "certificate": certificate, "hub_key": key.openssh().unwrap() });
    let path = format!("GET /v1/hosts/box1/guests/{UID}/restore-certificate");
    hub.on(&path, Reply::Data(view));
    hub
}

fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    stdout(output)
}

/// What a tool of the system prints.
fn tool(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    #[expect(clippy::disallowed_methods, reason = "a tool of the system")]
    let output =
        Command::new(program).args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_written_and_verified_offline() {
    let (host_key, hub_key) = (key(), key());
    let hub = hub(&whole(&host_key, &hub_key), hub_key.public()).await;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pdf, file) = (at("web.pdf"), at("web.json"));
    let shown = done(&hub.holdfast(&[
        "guest",
        "certificate",
        "web",
        "--host",
        "box1",
        "--pdf",
        &pdf,
        "--json",
        &file,
    ]));
    assert!(shown.contains(&hub_key.public().fingerprint()), "{shown}");

    // In a home without a login, and without the hub.
    let empty = folder.path().join("no-login");
    let offline = |arguments: &[&str]| {
        hub.command(&[&["certificate", "verify"], arguments].concat())
            .env("HOLDFAST_CONFIG", &empty)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let fingerprint = hub_key.public().fingerprint();
    let line = hub_key.public().openssh().unwrap();
    for known in [fingerprint.as_str(), line.as_str()] {
        let said = done(&offline(&[&file, "--hub-key", known]));
        assert!(said.contains("3 min 42 s") && said.contains("was compared with a known one"), "{said}");
    }
    let said = done(&offline(&[&file]));
    assert!(said.contains("its key was not compared"), "{said}");
    let json: Value = serde_json::from_str(&done(&offline(&[&file, "--output", "json"]))).unwrap();
    assert_eq!(
        (&json["hub_key_was"], &json["certificate"]["guest"]["name"]),
        (&json!("not_compared"), &json!("web"))
    );

    // One page of A4, with what is compared by eye.
    let info = tool(folder.path(), "pdfinfo", &["web.pdf"]);
    let info = stdout(&info);
    assert!(info.contains("595.28 x 841.89 pts (A4)") && info.contains("Pages:           1"), "{info}");
    let text = stdout(&tool(folder.path(), "pdftotext", &["-raw", "web.pdf", "-"]));
    for part in [&fingerprint, &host_key.public().fingerprint(), UID, "3 min 42 s", "What is not proved"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }

    // Another hub's key; a changed file; a file that is there already.
    let other = key().public().fingerprint();
    let refused = offline(&[&file, "--hub-key", &other]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("another hub signed this"), "{}", stderr(&refused));
    let changed = std::fs::read_to_string(&file).unwrap().replacen("acme", "evil", 1);
    std::fs::write(&file, changed).unwrap();
    let refused = offline(&[&file, "--hub-key", &fingerprint]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("it proves nothing"), "{}", stderr(&refused));
    let refused = hub.holdfast(&["guest", "certificate", "web", "--host", "box1", "--json", &file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("must not be there yet"), "{}", stderr(&refused));
    assert_eq!(offline(&[&file, "--hub-key", "SHA256:short"]).status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_hub_serves_is_verified_before_it_is_written() {
    let (host_key, hub_key) = (key(), key());
    let certificate = whole(&host_key, &hub_key);
    let forged = hub(&certificate, key().public()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.json");
    let path = file.to_str().unwrap();
    let refused = forged.holdfast(&["guest", "certificate", "web", "--host", "box1", "--json", path]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(!file.exists());

    let none = FakeHub::logged_in().await;
    none.on(GUESTS, guests());
    let refused = none.holdfast(&["guest", "certificate", "web", "--host", "box1"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(stderr(&refused).contains("holdfast sign box1 web --restore-test"), "{}", stderr(&refused));
}

/// The lines of docs/runbook.md, with the tools that a customer has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_written_file_is_verified_with_stock_openssh() {
    let (host_key, hub_key) = (key(), key());
    let hub = hub(&whole(&host_key, &hub_key), hub_key.public()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.json");
    let path = file.to_str().unwrap();
    done(&hub.holdfast(&["guest", "certificate", "web", "--host", "box1", "--json", path]));
    let signed = SignedCertificate::parse(&std::fs::read(&file).unwrap()).unwrap();
    let stamp = signed.hub.unwrap();
    let statement = stamp.read().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("document.json", signed.document.as_str());
    write("document.sig", signed.host_signature.as_str());
    write("statement.json", stamp.statement.as_str());
    write("statement.sig", stamp.signature.as_str());
    let line = |name: &str, key: &str| format!("{name} {key}\n");
    let known = hub_key.public().openssh().unwrap();
    write("signers", &(line("hub", known.as_str()) + &line("host", statement.host_key.as_str())));
    for (who, namespace, name) in [
        ("host", "holdfast-restore-certificate", "document"),
        ("hub", "holdfast-restore-countersign", "statement"),
    ] {
        let verify =
            format!("ssh-keygen -Y verify -f signers -I {who} -n {namespace} -s {name}.sig < {name}.json");
        let output = tool(folder.path(), "sh", &["-c", &verify]);
        assert!(output.status.success(), "{verify}: {}", stderr(&output));
    }
}
