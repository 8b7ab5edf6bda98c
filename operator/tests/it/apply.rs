//! Tests of `holdfast desired apply`.

use std::process::Output;

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

pub const HOST: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
pub const UID: &str = "018f3c1e-6b1f-7c1d-9d0b-000000000001";
pub const PUT: &str = "PUT /v1/hosts/018f3c1e-6b1f-7c1d-9d0a-000000000001/desired";

pub fn guest(memory_mib: u32) -> Value {
    json!({ "name": "web", "customer": "acme", "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": memory_mib, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": "10.66.0.91/24" } })
}

fn version(generation: u64, memory_mib: u32) -> Value {
    let mut guest = guest(memory_mib);
    guest["uid"] = json!(UID);
    let document = json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 5, "guests": [guest] });
    json!({ "generation": generation, "content": "00", "author": "ada", "reason": "test", "put_at": "2026-11-21T03:00:00Z",
        "document": document.to_string() })
}

pub fn detail(held: u64, sections: Value) -> Value {
    json!({ "host": { "id": HOST, "name": "box1", "state": "online", "wanted": held, "held": held, "guests_running": 0,
        "guests": 0, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" }, "sections": sections })
}

pub fn operation(status: &str, restore: &str) -> Value {
    json!({ "id": "018f3c1e-6b1f-7c1d-9d0c-000000000001", "kind": "reconfigure", "guest": UID, "name": "web", "status": status,
        "steps": [{ "name": "set_config", "status": restore }], "opened_at": "2026-11-21T03:00:00Z" })
}

pub fn report(held: u64, memory_mib: u32, status: &str, operations: Value) -> Value {
    json!({ "desired": { "held": held, "content": "00" }, "operations": operations, "guests": [
        { "uid": UID, "name": "web", "vmid": 120, "status": status, "run": "running", "address": "10.66.0.91/24",
          "size": { "cores": 2, "memory_mib": memory_mib, "swap_mib": 0, "rootfs_gib": 8 } } ] })
}

/// A hub that holds generation 7 with 512 MiB, whose host matches it.
pub async fn hub() -> FakeHub {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts/box1", Reply::Data(detail(7, report(7, 512, "managed", json!([])))));
    hub.on("GET /v1/hosts/box1/desired", Reply::Data(version(7, 512)));
    hub.on(PUT, Reply::Data(version(8, 1024)));
    hub
}

fn apply(hub: &FakeHub, memory_mib: u32, more: &[&str]) -> Output {
    let file = hub.file("box1.json", &json!({ "guests": [guest(memory_mib)] }).to_string());
    hub.holdfast(&[&["desired", "apply", "box1", file.to_str().unwrap()], more].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_shown_and_put_with_a_precondition() {
    let hub = hub().await;
    let output = apply(&hub, 1024, &["--yes", "--reason", "more memory for web"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("size.memory_mib: 512 -> 1024"), "{}", stderr(&output));
    let requests = hub.requests(PUT);
    assert_eq!(requests[0].headers["if-match"], "\"7\"");
    assert_eq!(requests[0].body["reason"], "more memory for web");
    let document: Value = serde_json::from_str(requests[0].body["document"].as_str().unwrap()).unwrap();
    assert_eq!((document["generation"].clone(), document["poll_interval_s"].clone()), (8.into(), 5.into()));
    assert_eq!(document["guests"][0]["uid"], UID, "the uid of the guest of that name");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_terminal_nothing_is_put() {
    let hub = hub().await;
    let output = apply(&hub, 1024, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--yes"), "{}", stderr(&output));
    let same = apply(&hub, 512, &[]);
    assert_eq!(same.status.code(), Some(0), "nothing changes, so nothing is asked: {}", stderr(&same));
    let bad = apply(&hub, 1, &["--yes"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(stderr(&bad).contains("guests[0].size.memory_mib"), "{}", stderr(&bad));
    assert!(hub.requests(PUT).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_document_and_a_reset_hub() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts/box1", Reply::Data(detail(41, json!({}))));
    hub.on(PUT, Reply::Data(version(42, 512)));
    let output = apply(&hub, 512, &["--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let requests = hub.requests(PUT);
    assert_eq!(requests[0].headers["if-match"], "\"0\"");
    let document: Value = serde_json::from_str(requests[0].body["document"].as_str().unwrap()).unwrap();
    assert_eq!(document["generation"], 42, "one more than the host holds");
    assert_eq!(hub.holdfast(&["desired", "show", "box1"]).status.code(), Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_retried_with_the_same_key() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts/box1", Reply::Data(detail(7, json!({}))));
    hub.on("GET /v1/hosts/box1/desired", Reply::Data(version(7, 512)));
    hub.on(PUT, Reply::Cut);
    hub.on(PUT, Reply::Error(412, "PRECONDITION_FAILED", "the current document is generation 8"));
    let output = apply(&hub, 1024, &["--yes"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let requests = hub.requests(PUT);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].headers["idempotency-key"], requests[1].headers["idempotency-key"]);
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_followed_until_it_has_converged() {
    let hub = hub().await;
    let path = format!("GET /v1/hosts/{HOST}");
    for sections in [
        report(7, 512, "managed", json!([])),
        report(8, 512, "managed", json!([operation("running", "intended")])),
        report(8, 1024, "managed", json!([operation("done", "done")])),
    ] {
        hub.on(&path, Reply::Data(detail(8, sections)));
    }
    let output = apply(&hub, 1024, &["--yes", "--watch", "--output", "json"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let lines = [
        "waiting for the agent to take generation 8",
        "1/1 set_config …",
        "1/1 set_config done",
        "web  reconfigure  is done",
        "1 guest has converged",
    ];
    let places: Vec<usize> =
        lines.iter().map(|line| told.find(line).unwrap_or_else(|| panic!("{line}: {told}"))).collect();
    assert!(places.is_sorted(), "{told}");
    let version: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(version["generation"], 8, "the result alone is on standard output");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failure_to_converge_has_its_exit_code() {
    let refused = json!({ "desired": { "held": 7, "content": "00", "refused": { "generation": 8,
        "problem": { "code": "VMID_FOREIGN", "message": "104 is\u{1b}[2J somebody else's" } } } });
    let mut waiting = report(8, 1024, "managed", json!([]));
    waiting["waiting"] =
        json!([{ "guest": UID, "effect": "drop volume db", "reason": "the only copy", "payload": "{}" }]);
    for (sections, exit, words) in [
        (refused, 6, "VMID_FOREIGN"),
        (waiting, 6, "drop volume db"),
        (report(8, 512, "parked", json!([])), 1, "needs attention"),
        (report(8, 512, "managed", json!([])), 7, "web: its size"),
    ] {
        let hub = hub().await;
        hub.on(&format!("GET /v1/hosts/{HOST}"), Reply::Data(detail(8, sections)));
        let output = apply(&hub, 1024, &["--yes", "--watch", "--timeout", "1"]);
        assert_eq!(output.status.code(), Some(exit), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert!(!stderr(&output).contains('\u{1b}'), "what a box says cannot clear the screen");
    }
}
