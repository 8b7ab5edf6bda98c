//! `holdfast order`: what is sent, what is shown, and how it ends.

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

const ID: &str = "019d0000-0000-7000-8000-000000000001";
const HOST: &str = "018f3c1e-6b1f-7c1d-9d0a-0000000000f1";
const GUEST: &str = "00000000-0000-0000-0000-000000000007";

fn order(state: &str, report: &Value) -> Value {
    json!({
        "id": ID, "act": { "kind": "backup_now", "guest": GUEST }, "state": state, "by": "eve",
        "created_at": "2026-11-27T12:00:00Z", "expires_at": "2026-11-27T13:00:00Z", "report": report
    })
}

fn host() -> Value {
    json!({ "host": { "id": HOST, "name": "box1", "state": "online", "wanted": 1, "held": 1, "guests_running": 1,
        "guests": 1, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" },
        "sections": { "guests": [{ "uid": GUEST, "name": "web-1", "vmid": 300, "status": "managed", "run": "running" }] } })
}

fn report(state: &str, rest: &Value) -> Value {
    let mut report = json!({ "id": ID, "state": state, "claimed_at": "2026-11-27T12:00:01Z" });
    report.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_ordered_by_the_guests_name_and_followed_to_its_archive() {
    let hub = FakeHub::logged_in().await;
    let path = format!("GET /v1/hosts/{HOST}/work-orders/{ID}");
    hub.on("GET /v1/hosts/box1", Reply::Data(host()));
    let make = format!("POST /v1/hosts/{HOST}/work-orders");
    hub.on(&make, Reply::Data(order("pending", &Value::Null)));
    hub.on(&path, Reply::Data(json!({ "order": order("running", &report("running", &json!({}))) })));
    let result = json!({ "kind": "backup", "archive": "backup2:backup/vzdump-lxc-300.tar.zst", "storage": "backup2",
        "bytes": 4096, "taken_at": "2026-11-27T12:00:05Z" });
    let phases = json!([{ "name": "back_up", "status": "done", "attempts": 2, "took_ms": 4200 }]);
    let ended =
        report("succeeded", &json!({ "result": result, "phases": phases, "log": ["12:00:09 finished"] }));
    hub.on(&path, Reply::Data(json!({ "order": order("succeeded", &ended) })));
    let output =
        hub.holdfast(&["order", "backup", "box1", "web-1", "--tier", "off-site", "--within", "30", "--wait"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let sent = &hub.requests(&make)[0].body;
    assert_eq!(
        *sent,
        json!({ "act": { "kind": "backup_now", "guest": GUEST, "tier": "off_site" }, "life_s": 1800 })
    );
    let shown = stdout(&output);
    for part in ["vzdump-lxc-300.tar.zst, 4.0 KiB", "back_up done, 4.2 s, 2 tries", "12:00:09 finished"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_fails_ends_with_its_reason_and_the_command_with_an_error() {
    let hub = FakeHub::logged_in().await;
    let problem = json!({ "code": "QUOTA", "message": "too many today" });
    let failed = order("failed", &report("failed", &json!({ "problem": problem })));
    let path = format!("GET /v1/hosts/box1/work-orders/{ID}");
    hub.on(&path, Reply::Data(json!({ "order": failed })));
    let output = hub.holdfast(&["order", "watch", "box1", ID]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("failed on box1: too many today [QUOTA]"), "{}", stderr(&output));
    let reading =
        json!({ "order": ID, "read_at": "2026-11-27T12:00:00Z", "text": "lock backup on web-1\u{1b}[2J" });
    let other = ID.replace("019d", "019e");
    let path = format!("GET /v1/hosts/box1/work-orders/{other}");
    hub.on(&path, Reply::Data(json!({ "order": order("succeeded", &Value::Null), "text": reading })));
    let shown = stdout(&hub.holdfast(&["order", "show", "box1", &other]));
    assert!(shown.contains("lock backup on web-1") && !shown.contains('\u{1b}'), "{shown}");
    let list = format!("GET /v1/hosts/{HOST}/work-orders?state=pending");
    hub.on("GET /v1/hosts/box1", Reply::Data(host()));
    hub.on(&list, Reply::Data(json!({ "items": [order("pending", &Value::Null)] })));
    let listed = hub.holdfast(&["order", "list", "box1", "--state", "pending", "--output", "json"]);
    let listed: Value = serde_json::from_str(&stdout(&listed)).unwrap();
    assert_eq!((listed[0]["host"].clone(), listed[0]["state"].clone()), ("box1".into(), "pending".into()));
    for wrong in [
        ["diagnose", "box1", "shell"].as_slice(),
        &["backup", "box1", "web-1", "--tier", "snapshot"],
        &["refresh", "box1", "--within", "1441"],
    ] {
        let refused = hub.holdfast(&[&["order"], wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
}
