//! Tests of snapshots of state and of the export.

use std::path::Path;

use holdfast_protocol::state::{StateHead, StateHost, StateSchema, StateScope, StateWriter};
use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

const BOX: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";
const ACME: &str = "018f3c1e-6b1f-7c1d-9d0b-000000000001";
const BETA: &str = "018f3c1e-6b1f-7c1d-9d0b-000000000002";

/// Secrets that a host or an operator could have put somewhere.
fn planted() -> Vec<String> {
    vec![
        format!("YWdlLWVuY3J5cHRpb24ub3JnL3Yx{}", "c2VjcmV0".repeat(4)),
        format!("hfo_{}", "Zq9".repeat(14)),
        "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
        "PVEAPIToken=holdfast@pve!audit=01234567-89ab".to_owned(),
    ]
}

fn guest(uid: &str, customer: &str, run: &str) -> Value {
    json!({ "uid": uid, "name": format!("web-{customer}"), "customer": customer,
        "current": { "vmid": 5001, "status": "managed", "run": run } })
}

fn host(run: &str) -> Value {
    json!({ "id": BOX, "name": "box1", "state": "online", "held": 2, "versions": { "agent": "0.1.0" },
        "guests": [guest(ACME, "acme", run), guest(BETA, "beta", "running")],
        "observed": { "seen_at": "2026-11-21T12:00:00Z" } })
}

/// A document of state.
fn document(hosts: &[Value], taken_at: &str) -> String {
    let head = StateHead {
        schema: StateSchema::V1,
        taken_at: taken_at.parse().unwrap(),
        hub_version: "0.1.0".to_owned(),
        scope: StateScope::default(),
    };
    let (mut writer, mut text) = StateWriter::begin(head).unwrap();
    for host in hosts {
        let host: StateHost = serde_json::from_value(host.clone()).unwrap();
        text.push_str(&writer.host(host).unwrap());
    }
    text + &writer.end().unwrap().line
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_written_shown_and_compared() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/state", Reply::Text(document(&[host("stopped")], "2026-11-21T12:00:00Z")));
    let printed = hub.holdfast(&["state", "snapshot"]);
    assert_eq!(printed.status.code(), Some(0), "{}", stderr(&printed));
    assert_eq!(stdout(&printed), document(&[host("stopped")], "2026-11-21T12:00:00Z"));
    assert!(stderr(&printed).contains("1 hosts, 2 guests"), "{}", stderr(&printed));
    let before = hub.file("before.jsonl", &document(&[host("running")], "2026-11-20T12:00:00Z"));
    let before = before.to_str().unwrap();
    let compared = stdout(&hub.holdfast(&["state", "compare", before]));
    assert!(compared.contains("worse"), "{compared}");
    assert!(compared.contains("run: from running to stopped"), "{compared}");
    let json = stdout(&hub.holdfast(&["state", "compare", before, "now", "--output", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["hosts"][0]["guests"][0]["name"], "web-acme");
    let beta = stdout(&hub.holdfast(&["state", "compare", before, before, "--customer", "beta"]));
    assert!(beta.contains("Nothing changed"), "{beta}");
    let shown = stdout(&hub.holdfast(&["state", "show", before]));
    assert!(shown.contains("box1") && shown.contains("online"), "{shown}");
    let cut =
        hub.file("cut.jsonl", document(&[host("running")], "2026-11-20T12:00:00Z").lines().next().unwrap());
    let refused = hub.holdfast(&["state", "show", cut.to_str().unwrap()]);
    assert!(stderr(&refused).contains("not whole"), "{}", stderr(&refused));
    let exists = hub.holdfast(&["state", "snapshot", "--out", before]);
    assert!(stderr(&exists).contains("must not exist"), "{}", stderr(&exists));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_snapshots_are_found_by_number_day_and_word() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/state-snapshots", Reply::Data(json!({ "items": [] })));
    let none = hub.holdfast(&["state", "show", "latest"]);
    assert_eq!(none.status.code(), Some(4), "{}", stderr(&none));
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/state-snapshots", Reply::Data(json!({ "items": [kept(7, "2026-11-20")] })));
    hub.on("GET /v1/state-snapshots/7", Reply::Text(document(&[host("running")], "2026-11-20T12:00:00Z")));
    assert!(stdout(&hub.holdfast(&["state", "list"])).contains("2026-11-20"));
    for name in ["7", "2026-11-20", "latest"] {
        let shown = hub.holdfast(&["state", "show", name]);
        assert!(stdout(&shown).contains("box1"), "{name}: {}", stderr(&shown));
    }
    assert_eq!(hub.holdfast(&["state", "show", "8"]).status.code(), Some(4));
}

fn kept(number: u64, day: &str) -> Value {
    let digest = "0".repeat(64);
    json!({ "number": number, "day": day, "taken_at": format!("{day}T00:05:00Z"), "hosts": 1, "guests": 2,
        "content": digest, "document": digest, "bytes": 1000, "stored_bytes": 100 })
}

fn version(generation: u32, memory: u32, put_at: &str) -> Value {
    let guest = |uid: &str, customer: &str| {
        json!({ "uid": uid, "name": format!("web-{customer}"), "customer": customer,
        "run": "running", "golden": "2026.11.1",
        "size": { "cores": 2, "memory_mib": memory, "swap_mib": 0, "rootfs_gib": 8 },
        "network": { "bridge": "vmbr0", "address": format!("10.0.0.{}/24", if uid == ACME { 5 } else { 6 }), "gateway": "10.0.0.1" } })
    };
    let target = json!({ "name": "nas", "class": "slow", "role": "local-backup", "state": "attached",
        "backend": { "cifs": { "server": "10.0.0.9", "share": "backup" } }, "label": "N1", "default": true,
        "schedulable": true, "creds": planted()[0] });
    let document = json!({ "schema": "holdfast.desired/v1", "generation": generation, "poll_interval_s": 30,
        "storage": [target], "guests": [guest(ACME, "acme"), guest(BETA, "beta")] });
    json!({ "generation": generation, "content": "00", "author": "ada", "put_at": put_at,
        "reason": format!("for beta, token {}", planted()[1]), "document": document.to_string() })
}

fn operation(id: u32, guest: &str, name: &str) -> Value {
    json!({ "id": format!("018f3c1e-6b1f-7c1d-9d0c-{id:012}"), "kind": "backup", "guest": guest, "name": name,
        "status": "undone", "steps": [{ "name": "back_up", "status": "failed", "note": format!("key {}", planted()[2]) }],
        "opened_at": "2026-11-21T01:00:00Z", "ended_at": "2026-11-21T01:02:00Z",
        "problem": { "code": "QUOTA", "message": format!("{} was refused", planted()[3]) } })
}

fn alert(id: u32, guest: &str, customer: &str) -> Value {
    json!({ "id": format!("{BOX}-{id}"), "host": "box1", "subject": format!("guest:{guest}"), "guest": format!("web-{customer}"),
        "customer": customer, "code": "GUEST_BROKEN", "severity": "critical", "phase": "firing",
        "phase_since": "2026-11-21T02:00:00Z", "since": "2026-11-21T02:00:00Z",
        "message": format!("web-{customer} does not start"), "remedy": "look" })
}

fn log(number: u64, id: u32, customer: &str) -> Value {
    json!({ "number": number, "at": "2026-11-21T02:00:00Z", "host": "box1", "alert": format!("{BOX}-{id}"), "kind": "fired",
        "text": format!("web-{customer} does not start") })
}

/// A hub with one host, a guest of each of two customers, and secrets in every text.
async fn hub() -> FakeHub {
    let hub = FakeHub::logged_in().await;
    let list = |items: Vec<Value>| Reply::Data(json!({ "items": items }));
    hub.on("GET /v1/state-snapshots", list(vec![kept(8, "2026-11-21"), kept(7, "2026-11-20")]));
    for query in ["", "?customer=acme"] {
        let start = document(&[host("running")], "2026-11-20T00:05:00Z");
        hub.on(&format!("GET /v1/state-snapshots/7{query}"), Reply::Text(start));
        let end = document(&[host("stopped")], "2026-11-21T00:05:00Z");
        hub.on(&format!("GET /v1/state-snapshots/8{query}"), Reply::Text(end));
    }
    let history = format!("GET /v1/hosts/{BOX}/desired/history");
    hub.on(
        &history,
        list(vec![version(2, 1024, "2026-11-21T00:00:00Z"), version(1, 512, "2026-11-19T00:00:00Z")]),
    );
    let event = |number: u64, kind: &str, message: String| {
        json!({ "number": number, "at": "2026-11-21T02:00:00Z",
        "kind": kind, "host": BOX, "actor": "ada", "message": message })
    };
    let events = vec![
        event(9, "heartbeat_missed", "box1 is silent".to_owned()),
        event(8, "desired_changed", format!("for web-beta, {}", planted()[1])),
        json!({ "number": 1, "at": "2026-11-01T02:00:00Z", "kind": "host_enrolled", "message": "long ago" }),
    ];
    hub.on("GET /v1/events?limit=500", list(events));
    hub.on("GET /v1/alerts?filter=all&limit=500", list(vec![alert(1, ACME, "acme"), alert(2, BETA, "beta")]));
    hub.on(
        "GET /v1/alerts/log?limit=500",
        list(vec![log(5, 1, "acme"), log(4, 2, "beta"), log(3, 9, "beta")]),
    );
    let view = json!({ "id": BOX, "name": "box1", "state": "online", "wanted": 2, "held": 2, "guests_running": 1,
        "guests": 2, "attention": 0, "certificate_ends_at": "2027-11-21T12:00:00Z" });
    let operations = vec![operation(1, ACME, "web-acme"), operation(2, BETA, "web-beta")];
    hub.on(
        &format!("GET /v1/hosts/{BOX}"),
        Reply::Data(json!({ "host": view, "sections": { "operations": operations } })),
    );
    hub.on(&format!("GET /v1/hosts/{BOX}/work-orders?limit=500"), list(Vec::new()));
    let series = json!({ "span": "400d", "step_s": 3600, "metrics": {
        "cpu_permille": [{ "at": "2026-11-21T01:00:00Z", "mean": 100, "max": 300 }, { "at": "2026-11-21T02:00:00Z", "mean": 200, "max": 400 }] } });
    for span in ["2h", "7d", "400d"] {
        hub.on(&format!("GET /v1/hosts/{BOX}/usage?span={span}"), Reply::Data(series.clone()));
        for uid in [ACME, BETA] {
            hub.on(
                &format!("GET /v1/hosts/{BOX}/usage?guest={uid}&span={span}"),
                Reply::Data(series.clone()),
            );
        }
    }
    hub
}

/// All files of an export, by name.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn rows(files: &[(String, String)], name: &str) -> Vec<Value> {
    let (_, text) = files.iter().find(|(found, _)| found == name).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_has_all_of_a_period_and_no_secret() {
    let hub = hub().await;
    let out = hub.file("x", "").with_file_name("export");
    let args = [
        "export",
        "--for-analysis",
        "--from",
        "2026-11-20T06:00:00Z",
        "--to",
        "2026-11-22",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = hub.holdfast(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = files(&out);
    for (name, text) in &files {
        for secret in planted().iter().chain([&crate::fake_hub::TOKEN.to_owned()]) {
            assert!(!text.contains(secret.as_str()), "{secret} in {name}: {text}");
        }
    }
    let documents = rows(&files, "documents.jsonl");
    assert_eq!((documents.len(), &documents[0]["generation"]), (1, &json!(2)));
    assert_eq!(documents[0]["guests_changed"][0]["changes"][0]["before"], "512");
    assert!(documents[0]["reason"].as_str().unwrap().contains("[redacted]"));
    assert_eq!(rows(&files, "events.jsonl").len(), 2);
    assert_eq!((rows(&files, "alerts.jsonl").len(), rows(&files, "alert-log.jsonl").len()), (2, 3));
    let operations = rows(&files, "operations.jsonl");
    assert_eq!((operations.len(), &operations[0]["duration_s"]), (2, &json!(120)));
    assert!(operations[0]["problem"].as_str().unwrap().contains("[redacted]"));
    let usage = rows(&files, "usage.jsonl");
    assert_eq!((usage.len(), &usage[0]["mean"], &usage[0]["max"]), (3, &json!(150), &json!(400)));
    assert_eq!((rows(&files, "state-start.jsonl").len(), rows(&files, "state-end.jsonl").len()), (3, 3));
    let readme = &files.iter().find(|(name, _)| name == "README.md").unwrap().1;
    for (name, _) in files.iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        assert!(readme.contains(&format!("## {name}")), "{name}");
    }
    let manifest: Value =
        serde_json::from_str(&files.iter().find(|(name, _)| name == "manifest.json").unwrap().1).unwrap();
    for entry in manifest["files"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let (_, text) = files.iter().find(|(found, _)| found == name).unwrap();
        let digest = holdfast_protocol::job::act::Sha256Text::of(text.as_bytes());
        assert_eq!(entry["sha256"], digest.as_str(), "{name}");
    }
    let again = hub.holdfast(&args);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_for_a_customer_has_nothing_of_another() {
    let hub = hub().await;
    let out = hub.file("x", "").with_file_name("acme");
    let args = [
        "export",
        "--for-analysis",
        "--from",
        "2026-11-20T06:00:00Z",
        "--to",
        "2026-11-22",
        "--customer",
        "acme",
        "--out",
    ];
    let output = hub.holdfast(&[&args[..], &[out.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let files = files(&out);
    for (name, text) in &files {
        for never in ["beta", BETA, "\"ada\""] {
            assert!(!text.contains(never), "{never} in {name}: {text}");
        }
    }
    assert_eq!(rows(&files, "documents.jsonl").len(), 1);
    assert_eq!(rows(&files, "events.jsonl")[0]["kind"], "heartbeat_missed");
    assert_eq!((rows(&files, "alerts.jsonl").len(), rows(&files, "alert-log.jsonl").len()), (1, 1));
    assert_eq!(rows(&files, "operations.jsonl")[0]["guest_name"], "web-acme");
    assert_eq!(rows(&files, "usage.jsonl").len(), 1, "its guest's, and not the host's");
    let manifest: Value =
        serde_json::from_str(&files.iter().find(|(name, _)| name == "manifest.json").unwrap().1).unwrap();
    let left_out = |name: &str| {
        let files = manifest["files"].as_array().unwrap();
        files.iter().find(|file| file["name"] == name).unwrap()["left_out"].clone()
    };
    assert_eq!((left_out("events.jsonl"), left_out("alert-log.jsonl")), (json!(1), json!(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_can_be_one_packed_file_and_leaves_nothing_when_it_fails() {
    let hub = hub().await;
    let folder = hub.file("x", "").with_file_name("packed");
    std::fs::create_dir(&folder).unwrap();
    let out = folder.join("week.tar.zst");
    let args = [
        "export",
        "--for-analysis",
        "--from",
        "2026-11-20T06:00:00Z",
        "--to",
        "2026-11-22",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = hub.holdfast(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut archive =
        tar::Archive::new(zstd::stream::read::Decoder::new(std::fs::File::open(&out).unwrap()).unwrap());
    let names: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert!(names.contains(&"week/manifest.json".to_owned()), "{names:?}");
    hub.on("GET /v1/events?limit=500", Reply::Error(503, "UNAVAILABLE", "says the test"));
    hub.holdfast(&["events"]);
    let other = folder.join("other.tar.zst");
    // The answers for events are used up but for the last one, which is the error.
    let mut last = 0;
    for _ in 0..2 {
        let args = [
            "export",
            "--for-analysis",
            "--from",
            "2026-11-20T06:00:00Z",
            "--to",
            "2026-11-22",
            "--out",
            other.to_str().unwrap(),
        ];
        last = hub.holdfast(&args).status.code().unwrap();
        if last != 0 {
            break;
        }
        std::fs::remove_file(&other).unwrap();
    }
    assert_eq!(last, 69);
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["week.tar.zst"]);
}
