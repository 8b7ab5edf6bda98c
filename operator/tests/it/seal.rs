//! Tests of `holdfast storage seal`.

use std::io::Write as _;
use std::process::{Output, Stdio};

use holdfast_protocol::storage::Sealed;
use holdfast_seal::{Creds, HostKey, SealContext};
use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

const PASSWORD: &str = "kept: \"close\", 100%";

fn detail(recipient: Option<&str>) -> Reply {
    let mut agent = json!({ "version": "0.1.0", "started_at": "2026-11-22T00:00:00Z", "problems": [] });
    if let Some(recipient) = recipient {
        agent["recipient"] = recipient.into();
    }
    Reply::Data(
        json!({ "host": { "id": "018f3c1e-6b1f-7c1d-9d0a-000000000001", "name": "box1", "state": "online", "wanted": 1,
        "held": 1, "guests_running": 0, "guests": 0, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        "sections": { "agent": agent } }),
    )
}

fn backend() -> Value {
    json!({ "cifs": { "server": "nas", "share": "bk" } })
}

struct SealFixture {
    hub: FakeHub,
    _folder: tempfile::TempDir,
    document: String,
}

impl SealFixture {
    async fn new() -> Self {
        let hub = FakeHub::logged_in().await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box1.json");
        std::fs::write(
            &path,
            json!({ "guests": [], "storage": [{ "name": "nas1", "backend": backend() }] }).to_string(),
        )
        .unwrap();
        Self { hub, document: path.display().to_string(), _folder: folder }
    }

    fn seal(&self, target: &str, more: &[&str], input: &str) -> Output {
        let arguments =
            ["storage", "seal", "box1", "--target", target, "--document", &self.document, "--user", "backup"];
        let mut command = self.hub.command(&[&arguments, more].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One that refuses before it reads closes its end first.
        let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_credentials_open_on_the_host_only() {
    let ground = SealFixture::new().await;
    let key = HostKey::generate();
    let recipient = key.recipient().unwrap();
    ground.hub.on("GET /v1/hosts/box1", detail(Some(recipient.as_str())));
    let output = ground.seal("nas1", &["--recipient", recipient.as_str()], &format!("{PASSWORD}\n"));
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!text.contains("kept") && !stderr(&output).contains("kept"));
    let sealed = Sealed::try_from(text.trim().to_owned()).unwrap();
    let (target, backend) = ("nas1".parse().unwrap(), serde_json::from_value(backend()).unwrap());
    let opened = Creds::open(&sealed, &key, SealContext { target: &target, backend: &backend }).unwrap();
    assert_eq!((opened.user(), opened.password().expose()), ("backup", PASSWORD));
    assert!(
        Creds::open(&sealed, &HostKey::generate(), SealContext { target: &target, backend: &backend })
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_hubs_key_must_be_compared() {
    let (mine, hubs) = (HostKey::generate().recipient().unwrap(), HostKey::generate().recipient().unwrap());
    for (shown, given, code) in [(Some(&hubs), Some(&mine), 5), (Some(&hubs), None, 2), (None, None, 1)] {
        let ground = SealFixture::new().await;
        ground.hub.on("GET /v1/hosts/box1", detail(shown.map(|shown| shown.as_str())));
        let more: Vec<&str> = given.iter().flat_map(|given| ["--recipient", given.as_str()]).collect();
        let output = ground.seal("nas1", &more, &format!("{PASSWORD}\n"));
        assert_eq!(output.status.code(), Some(code), "{shown:?} {given:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("agentd storage key"), "{}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_credentials_are_not_sealed() {
    let ground = SealFixture::new().await;
    let recipient = HostKey::generate().recipient().unwrap();
    ground.hub.on("GET /v1/hosts/box1", detail(Some(recipient.as_str())));
    let given = ["--recipient", recipient.as_str()];
    for (target, input) in [("nas2", "word\n"), ("nas1", "\n"), ("nas1", ""), ("nas1", "a\tb\n")] {
        let output = ground.seal(target, &given, input);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{target} {input:?}");
    }
}
