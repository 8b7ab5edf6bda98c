//! Tests of `holdfast alert` and of maintenance.

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

const BOX1: &str = "018f3c1e-6b1f-7c1d-9d0a-000000000001";

fn host() -> Value {
    json!({ "host": { "id": BOX1, "name": "box1", "state": "online", "wanted": 1, "held": 1, "guests_running": 1,
        "guests": 1, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" }, "sections": {} })
}

fn alert(number: u32) -> Value {
    json!({ "id": format!("{BOX1}-{number}"), "host": "box1", "subject": "host", "code": "DISK_FULL",
        "severity": "critical", "phase": "firing", "phase_since": "2026-11-21T01:01:00Z",
        "since": "2026-11-21T01:00:00Z", "message": "as it is", "remedy": "Free room." })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_is_listed_and_acknowledged_by_its_short_id() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/alerts", Reply::Data(json!({ "items": [alert(12)], "next": "more" })));
    hub.on("GET /v1/alerts?cursor=more", Reply::Data(json!({ "items": [alert(13)] })));
    hub.on("GET /v1/alerts?filter=all", Reply::Data(json!({ "items": [] })));
    hub.on("GET /v1/hosts/box1", Reply::Data(host()));
    let listed = stdout(&hub.holdfast(&["alert", "list"]));
    assert!(listed.contains("box1/12") && listed.contains("box1/13"), "{listed}");
    hub.on(
        "GET /v1/alerts?host=box1&guest=web&code=DISK_FULL&severity=warning",
        Reply::Data(json!({ "items": [alert(14)] })),
    );
    let some = ["--host", "box1", "--guest", "web", "--code", "DISK_FULL", "--severity", "warning"];
    let some = stdout(&hub.holdfast(&[&["alert", "list"], &some[..]].concat()));
    assert!(some.contains("box1/14") && !some.contains("box1/12"), "{some}");
    let all = hub.holdfast(&["alert", "list", "--all", "--output", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&stdout(&all)).unwrap(), json!([]));

    let path = format!("POST /v1/alerts/{BOX1}-12/acknowledge");
    let mut known = alert(12);
    known["acknowledged"] = json!({ "by": "ada", "at": "2026-11-21T02:00:00Z" });
    hub.on(&path, Reply::Data(known));
    let until = "2026-11-21T06:00:00Z";
    for end in [&[][..], &["--until", until], &["--for", "2h"]] {
        let output = hub.holdfast(&[&["alert", "ack", "box1/12"], end].concat());
        assert_eq!(output.status.code(), Some(0), "{end:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("acknowledged by ada"));
    }
    let bodies: Vec<Value> = hub.requests(&path).into_iter().map(|request| request.body).collect();
    assert_eq!(bodies[..2], [json!({}), json!({ "until": until })]);
    assert!(bodies[2]["until"].is_string());
    // The whole id is taken as it is.
    let whole = format!("{BOX1}-12");
    assert_eq!(hub.holdfast(&["alert", "ack", &whole]).status.code(), Some(0));
    assert_eq!(hub.holdfast(&["alert", "show", "box1/99"]).status.code(), Some(4));
    hub.on("GET /v1/alerts/hub-3", Reply::Error(404, "NOT_FOUND", "there is no such alert here"));
    assert_eq!(hub.holdfast(&["alert", "show", "hub/3"]).status.code(), Some(4));
    assert_eq!(hub.requests("GET /v1/alerts/hub-3").len(), 1);
    hub.on("POST /v1/alerts/hub-3/unacknowledge", Reply::Error(409, "INCIDENT_OVER", "it is over"));
    assert_eq!(hub.holdfast(&["alert", "unack", "hub/3"]).status.code(), Some(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mute_needs_an_end_and_a_reason() {
    let hub = FakeHub::logged_in().await;
    let silence = json!({ "id": 4, "matchers": ["host=box1"], "from": "2026-11-21T02:00:00Z",
        "until": "2026-11-24T02:00:00Z", "by": "ada", "comment": "why" });
    hub.on("POST /v1/silences", Reply::Data(silence.clone()));
    hub.on("POST /v1/silences/4/end", Reply::Data(silence));
    let window = json!({ "from": "2026-11-21T02:00:00Z", "until": "2026-11-21T04:00:00Z", "by": "ada" });
    hub.on("POST /v1/hosts/box1/maintenance", Reply::Data(json!({ "host": "box1", "windows": [window] })));
    hub.on("POST /v1/hosts/box1/maintenance/end", Reply::Data(json!({ "host": "box1", "windows": [] })));
    let bad: [&[&str]; 9] = [
        &["alert", "silence", "add", "host=box1", "--comment", "why"],
        &["alert", "silence", "add", "host=box1", "--for", "2h"],
        &["alert", "silence", "add", "--for", "2h", "--comment", "why"],
        &["alert", "silence", "add", "host=box1", "--for", "2 weeks", "--comment", "why"],
        &[
            "alert",
            "silence",
            "add",
            "a=b",
            "--for",
            "2h",
            "--until",
            "2026-11-24T02:00:00Z",
            "--comment",
            "x",
        ],
        &["alert", "silence", "end", "four"],
        &["alert", "ack", "hub/1", "--for", "2h", "--until", "2026-11-24T02:00:00Z"],
        &["host", "maintenance", "box1"],
        &["host", "maintenance", "box1", "--for", "2h", "--end"],
    ];
    for words in bad {
        assert_eq!(hub.holdfast(words).status.code(), Some(2), "{words:?}");
    }
    let add = ["alert", "silence", "add", "host=box1", "--until", "2026-11-24T02:00:00Z", "--comment", "why"];
    assert_eq!(hub.holdfast(&add).status.code(), Some(0));
    let requests = hub.requests("POST /v1/silences");
    assert_eq!(requests.len(), 1);
    let body = json!({ "matchers": ["host=box1"], "until": "2026-11-24T02:00:00Z", "comment": "why" });
    assert_eq!(requests[0].body, body);
    assert!(requests[0].headers.contains_key("idempotency-key"));
    assert_eq!(hub.holdfast(&["alert", "silence", "end", "4"]).status.code(), Some(0));
    let announced = hub.holdfast(&["host", "maintenance", "box1", "--for", "2h"]);
    assert!(stdout(&announced).contains("box1 is in maintenance until 2026-11-21 04:00:00Z"));
    let ended = hub.holdfast(&["host", "maintenance", "box1", "--end"]);
    assert!(stdout(&ended).contains("box1 is not in maintenance"), "{}", stderr(&ended));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_of_a_receiver_ends_with_its_answer() {
    let hub = FakeHub::logged_in().await;
    let notices = json!(["hub/ops/test/14", "hub/ops/test/15"]);
    hub.on("POST /v1/receivers/ops/test", Reply::Data(json!({ "receiver": "ops", "notices": notices })));
    let delivery = |number: u64, notice: &str, outcome: &str| {
        json!({ "number": number, "at": "2026-11-21T02:00:00Z", "receiver": "ops", "notice": notice,
            "title": "a test", "outcome": outcome, "tries": 1, "remark": "401: no such token" })
    };
    let ended = |outcome: &str| {
        let own = [delivery(3, "hub/ops/test/15", outcome), delivery(2, "hub/ops/test/14", "delivered")];
        json!({ "items": [own[0], own[1], delivery(1, "hub/ops/test/1", "refused")] })
    };
    hub.on("GET /v1/deliveries", Reply::Data(ended("delivered")));
    hub.on("GET /v1/deliveries", Reply::Data(ended("refused")));
    hub.on("GET /v1/deliveries", Reply::Data(json!({ "items": [] })));
    let good = hub.holdfast(&["alert", "test", "ops", "--output", "json"]);
    assert_eq!(good.status.code(), Some(0), "{}", stderr(&good));
    let shown: Value = serde_json::from_str(&stdout(&good)).unwrap();
    assert_eq!(shown.as_array().unwrap().len(), 2, "its own deliveries alone");
    let refused = hub.holdfast(&["alert", "test", "ops"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("401: no such token"), "{}", stderr(&refused));
    let waiting = json!({ "name": "ops", "kind": "ntfy", "waiting": 2, "failure": "it does not answer" });
    hub.on("GET /v1/receivers", Reply::Data(json!({ "items": [waiting] })));
    let late = hub.holdfast(&["alert", "test", "ops", "--timeout", "1"]);
    assert_eq!(late.status.code(), Some(7), "{}", stderr(&late));
    assert!(stderr(&late).contains("it does not answer"), "{}", stderr(&late));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_of_a_host_or_an_alert_and_an_explanation_of_a_code() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts/box1", Reply::Data(host()));
    let entry = json!({ "number": 7, "at": "2026-11-21T01:01:00Z", "host": "box1", "kind": "suppressed",
        "alert": format!("{BOX1}-12"), "text": "not sent to ops: silenced by 4" });
    let page = json!({ "items": [entry] });
    hub.on(&format!("GET /v1/alerts/log?host={BOX1}"), Reply::Data(page.clone()));
    hub.on(&format!("GET /v1/alerts/log?alert={BOX1}-12"), Reply::Data(page));
    for words in [["--host", "box1"], ["--alert", "box1/12"]] {
        let output = hub.holdfast(&[&["alert", "log"][..], &words].concat());
        assert!(stdout(&output).contains("not sent to ops: silenced by 4"), "{}", stderr(&output));
    }
    let both = ["alert", "log", "--host", "box1", "--alert", "box1/12"];
    assert_eq!(hub.holdfast(&both).status.code(), Some(2));
    let explained = json!({ "code": "DISK_FULL", "subject": "host", "severity": "critical", "fires_after_s": 60,
        "clears_after_s": 120, "route": "default", "receivers": [], "inhibited_by": ["HOST_OFFLINE"] });
    hub.on("POST /v1/alerts/explain", Reply::Data(explained));
    let output = hub.holdfast(&["alert", "explain", "DISK_FULL", "--host", "box1", "--severity", "critical"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let body = json!({ "code": "DISK_FULL", "host": "box1", "severity": "critical" });
    assert_eq!(hub.requests("POST /v1/alerts/explain")[0].body, body);
    for words in [["DISK_FUL", "--host", "box1"], ["GUEST_CRASHED", "--guest", "web"]] {
        assert_eq!(hub.holdfast(&[&["alert", "explain"][..], &words].concat()).status.code(), Some(2));
    }
}
