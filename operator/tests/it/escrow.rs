//! Tests of `holdfast escrow`.

use holdfast_protocol::escrow::by_hand::{self, GuestNumbers, OffSite};
use holdfast_protocol::id::Vmid;
use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

const HOST: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";

/// Only its form matters: it is not opened here.
const CREDS: &str = "YWdlLWVuY3J5cHRpb24ub3JnL3Yx";

fn print(byte: &str) -> String {
    vec![byte; 32].join(":")
}

fn backend(name: &str, key: &str) -> Value {
    json!({ "pbs": { "server": "backup.example", "datastore": "store1", "namespace": format!("hf/{name}"),
        "fingerprint": print("86"), "key": print(key) } })
}

fn target(name: &str, key: &str) -> Value {
    json!({ "name": name, "backend": backend(name, key), "class": "slow", "role": "offsite-backup", "state": "attached",
        "label": "away", "default": false, "schedulable": true, "creds": CREDS })
}

fn version(number: u32, code: u32, key: &str) -> Value {
    json!({ "number": number, "sha256": "ab".repeat(32), "bytes": 3, "customer": "acme", "epoch": 1, "code": code,
        "fingerprint": print(key), "made_at": "2026-11-22T13:00:00Z", "kept_at": "2026-11-22T13:01:00Z" })
}

fn off_site(name: &str, key: &str) -> OffSite {
    let backend = serde_json::from_value(backend(name, key)).unwrap();
    OffSite::of(&name.parse().unwrap(), &backend, &"acme".parse().unwrap()).unwrap()
}

/// A hub that knows a host with these off-site targets and versions.
async fn hub(targets: &[Value], versions: &[Value]) -> FakeHub {
    let hub = FakeHub::logged_in().await;
    let guests = json!([
        { "uid": "018f3c1e-6b1f-7c1d-9d0b-000000000001", "name": "web-1", "vmid": 20001, "former_vmids": [19000],
          "status": "managed", "run": "running" },
        { "name": "somebody's own", "vmid": 100, "status": "foreign", "run": "running" }
    ]);
    let host = json!({ "id": HOST, "name": "box1", "state": "online", "wanted": 1, "held": 1, "guests_running": 1,
        "guests": 1, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" });
    hub.on("GET /v1/hosts/box1", Reply::Data(json!({ "host": host, "sections": { "guests": guests } })));
    let document = json!({ "schema": "holdfast.desired/v1", "generation": 1, "poll_interval_s": 30, "guests": [],
        "storage": targets });
    hub.on(
        "GET /v1/hosts/box1/desired",
        Reply::Data(json!({ "generation": 1, "content": "ab".repeat(32), "author": "ada", "reason": "first",
            "put_at": "2026-11-22T12:00:00Z", "document": document.to_string() })),
    );
    hub.on("GET /v1/hosts/box1/escrow", Reply::Data(json!({ "versions": versions, "notice": "webhook" })));
    hub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kit_has_all_commands_for_each_key() {
    let targets = [target("off1", "aa"), target("off2", "bb"), target("off3", "cc")];
    // The first key has two codes; the older code, 1, was stored again later. The third target's key has no code.
    let versions = [version(4, 1, "aa"), version(3, 3, "aa"), version(2, 2, "bb")];
    let hub = hub(&targets, &versions).await;
    let output = hub.holdfast(&["escrow", "kit", "box1"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let vmids = [20_001, 19_000].map(|vmid| Vmid::try_from(vmid).unwrap()).to_vec();
    let guests = [GuestNumbers { name: "web-1".parse().unwrap(), vmids }];
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    for (name, key, code) in [("off1", "aa", 3), ("off2", "bb", 2)] {
        let site = off_site(name, key);
        let steps = by_hand::steps(Some(&site), code.try_into().unwrap(), &guests);
        for command in steps.iter().flat_map(|step| &step.commands).chain(&site.account_lines()) {
            assert!(lines.contains(&command.as_str()), "{command} is not in {text}");
        }
        for (name, value) in site.facts() {
            assert!(lines.contains(&format!("{name}: {value}").as_str()), "{name} is not in {text}");
        }
    }
    assert!(text.contains("web-1: 20001 (before: 19000)"), "{text}");
    assert!(!text.contains("somebody's own"), "{text}");
    assert!(text.contains("Sheet: 3, made 2026-11-22T13:00:00Z"), "{text}");
    assert_eq!(text.matches("No recovery code opens this key.").count(), 1, "{text}");
    assert!(hub.requests("POST /v1/hosts/box1/escrow/read").is_empty(), "no file is read for it");
    let json = hub.holdfast(&["escrow", "kit", "box1", "--output", "json"]);
    let page: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(
        (page["schema"].as_str(), page["targets"].as_array().unwrap().len()),
        (Some("holdfast.escrow-kit/v1"), 3)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_off_site_target_has_no_kit() {
    let hub = hub(&[], &[version(1, 1, "aa")]).await;
    let output = hub.holdfast(&["escrow", "kit", "box1"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("box1 has no off-site target"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrapped_keys_are_written_by_sheet_and_overwrite_nothing() {
    let hub = hub(&[], &[]).await;
    let found = |number, code, key| json!({ "version": version(number, code, key), "file": "YWdl" });
    let path = "POST /v1/hosts/box1/escrow/read";
    hub.on(path, Reply::Data(json!({ "files": [found(3, 3, "aa"), found(2, 2, "bb")] })));
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let output = hub.holdfast(&["escrow", "fetch", "box1", "--to", to]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("notifies the customer"), "{}", stdout(&output));
    for name in ["escrow-3.age", "escrow-2.age"] {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"age");
    }
    let again = hub.holdfast(&["escrow", "fetch", "box1", "--to", to, "--code", "3"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("it must not be there yet"), "{}", stderr(&again));
    let nowhere = hub.holdfast(&["escrow", "fetch", "box1", "--to", &format!("{to}/nowhere")]);
    assert!(stderr(&nowhere).contains("nothing was fetched"), "{}", stderr(&nowhere));
    let requests = hub.requests(path);
    assert_eq!(requests.len(), 2);
    assert_eq!((&requests[0].body, &requests[1].body), (&json!({}), &json!({ "code": 3 })));
    assert!(requests[0].headers.contains_key("idempotency-key"), "a lost answer is not one more read");
}
