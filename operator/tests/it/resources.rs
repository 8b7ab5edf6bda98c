//! Changes of parts of a document by the command.

use serde_json::{Value, json};

use crate::apply::{HOST, UID, detail};
use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

fn version(generation: u64) -> Value {
    json!({ "generation": generation, "content": "00", "author": "ada", "reason": "test", "put_at": "2026-11-21T03:00:00Z",
        "document": "{}" })
}

fn preview(changed: bool) -> Value {
    let change = json!({ "field": "size.memory_mib", "before": "512", "after": "1024" });
    let guest = json!({ "name": "web", "uid": UID });
    let changes = if changed { json!([{ "guest": guest, "changes": [change] }]) } else { json!([]) };
    json!({ "host": "box1",
        "diff": { "from": 7, "to": 8, "settings": [], "added": [], "changed": changes, "unnamed": [], "unchanged": 2 },
        "effects": [{ "guest": guest, "effect": "reconfigure", "because": ["size.memory_mib: 512 -> 1024"] }],
        "signatures": [{ "verb": "loosen_policy", "guest": guest, "certainty": "certain", "why": "would be less protected" }],
        "not_judged": ["room on the host"] })
}

fn changed() -> Value {
    json!({ "kind": "guest", "name": "web", "generation": 8, "author": "ada", "reason": "more memory",
        "put_at": "2026-11-21T03:00:00Z" })
}

async fn hub() -> FakeHub {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts/box1", Reply::Data(detail(7, json!({}))));
    hub.on(&format!("GET /v1/hosts/{HOST}/desired"), Reply::Data(version(7)));
    hub
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_is_judged_shown_and_set() {
    let hub = hub().await;
    let path = format!("/v1/hosts/{HOST}/guests/web");
    hub.on(&format!("PATCH {path}?dry_run=true"), Reply::Data(preview(true)));
    hub.on(&format!("PATCH {path}"), Reply::Data(changed()));
    let set = ["guest", "set", "box1", "web", "size.memory_mib=1024", "policy="];
    let output =
        hub.holdfast(&[&set[..], &["--reason", "more memory", "--yes", "--output", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for words in [
        "size.memory_mib: 512 -> 1024",
        "is reconfigured",
        "loosen_policy",
        "      holdfast sign box1 web",
        "Generation 8",
    ] {
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
    let requests = hub.requests(&format!("PATCH {path}"));
    assert_eq!((requests.len(), requests[0].headers["if-match"].to_str().unwrap()), (1, "\"7\""));
    assert!(requests[0].headers.contains_key("idempotency-key"));
    let body =
        json!({ "reason": "more memory", "patch": { "size": { "memory_mib": 1024 }, "policy": null } });
    assert_eq!(requests[0].body, body);
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(result["generation"], 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_and_a_change_of_nothing_put_nothing() {
    let hub = hub().await;
    let path = format!("/v1/hosts/{HOST}/guests/web");
    hub.on(&format!("PATCH {path}?dry_run=true"), Reply::Data(preview(true)));
    hub.on(&format!("PATCH {path}?dry_run=true"), Reply::Data(preview(false)));
    let set = ["guest", "set", "box1", "web", "size.memory_mib=1024"];
    let dry = hub.holdfast(&[&set[..], &["--dry-run"]].concat());
    assert_eq!(dry.status.code(), Some(0), "{}", stderr(&dry));
    for words in
        ["box1: generation 7 -> 8", "What the host does:", "Waits for a signature:", "Not judged here:"]
    {
        assert!(stdout(&dry).contains(words), "{words}: {}", stdout(&dry));
    }
    let same = hub.holdfast(&set);
    assert_eq!(same.status.code(), Some(0), "no question: {}", stderr(&same));
    assert!(stderr(&same).contains("nothing changes"), "{}", stderr(&same));
    assert!(hub.requests(&format!("PATCH {path}")).is_empty());
    let both = hub.holdfast(&[&set[..], &["--dry-run", "--yes"]].concat());
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
    let twice = hub.holdfast(&["guest", "set", "box1", "web", "run=stopped", "run=running"]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(stderr(&twice).contains("run is set twice"), "{}", stderr(&twice));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_host_has_is_not_removed() {
    let hub = hub().await;
    let path = format!("DELETE /v1/hosts/{HOST}/guests/web?reason=remove+web&on_host=refuse&dry_run=true");
    hub.on(&path, Reply::Error(409, "ON_HOST", "guest web is on box1 (VMID 120)"));
    let output = hub.holdfast(&["guest", "remove", "box1", "web", "--yes"]);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(stderr(&output).contains("VMID 120"), "{}", stderr(&output));
    let left = hub.holdfast(&["guest", "remove", "box1", "web", "--yes", "--leave"]);
    assert_eq!(left.status.code(), Some(4), "the fake hub has no such answer: {}", stderr(&left));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_added_or_set_by_its_name() {
    let hub = hub().await;
    hub.on(&format!("POST /v1/hosts/{HOST}/policies?dry_run=true"), Reply::Data(preview(true)));
    let file = hub.file("usual.toml", "name = \"usual\"\n[tiers]\n");
    let put = ["policy", "put", "box1", file.to_str().unwrap(), "--dry-run"];
    let new = hub.holdfast(&put);
    assert_eq!(new.status.code(), Some(0), "{}", stderr(&new));
    hub.on("GET /v1/hosts/box1/policies/usual", Reply::Data(json!({})));
    hub.on(&format!("PUT /v1/hosts/{HOST}/policies/usual?dry_run=true"), Reply::Data(preview(true)));
    let there = hub.holdfast(&put);
    assert_eq!(there.status.code(), Some(0), "{}", stderr(&there));
    let nameless = hub.file("bad.json", "{}");
    let bad = hub.holdfast(&["policy", "put", "box1", nameless.to_str().unwrap()]);
    assert_eq!(bad.status.code(), Some(2), "{}", stderr(&bad));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_is_judged_and_put_and_versions_are_compared() {
    let hub = hub().await;
    let path = format!("POST /v1/hosts/{HOST}/desired/rollback");
    hub.on(&format!("{path}?dry_run=true"), Reply::Data(preview(true)));
    hub.on(&path, Reply::Data(version(8)));
    let output = hub.holdfast(&["desired", "rollback", "box1", "3", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(hub.requests(&path)[0].body, json!({ "reason": "back to generation 3", "to": 3 }));
    hub.on("GET /v1/hosts/box1/desired/diff?from=3&to=5", Reply::Data(preview(true)["diff"].clone()));
    let diff = hub.holdfast(&["desired", "diff", "box1", "--from", "3", "--to", "5"]);
    assert_eq!(diff.status.code(), Some(0), "{}", stderr(&diff));
    assert!(stdout(&diff).contains("size.memory_mib: 512 -> 1024"), "{}", stdout(&diff));
    assert_eq!(hub.holdfast(&["desired", "diff", "box1"]).status.code(), Some(4));
    let both = hub.holdfast(&["desired", "diff", "box1", "x.toml", "--from", "3"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}
