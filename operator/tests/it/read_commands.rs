//! Tests of list and show commands.

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

fn host(name: &str, n: u8) -> Value {
    json!({ "id": format!("018f3c1e-6b1f-7c1d-9d0a-0000000000{n:02}"), "name": name, "state": "online", "wanted": 1, "held": 1,
        "guests_running": 1, "guests": 1, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" })
}

fn detail(name: &str, n: u8, guests: Value) -> Value {
    json!({ "host": host(name, n), "sections": { "guests": guests } })
}

fn guest(name: &str, vmid: u32) -> Value {
    json!({ "uid": format!("018f3c1e-6b1f-7c1d-9d0b-{vmid:012}"), "name": name, "vmid": vmid, "status": "managed", "run": "running" })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_read_page_by_page() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts", Reply::Data(json!({ "items": [host("box1", 1)], "next": "a b" })));
    hub.on("GET /v1/hosts?cursor=a+b", Reply::Data(json!({ "items": [host("box2", 2)] })));
    let output = hub.holdfast(&["host", "list", "--output", "json"]);
    let hosts: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((hosts[0]["name"].clone(), hosts[1]["name"].clone()), ("box1".into(), "box2".into()));
    let table = stdout(&hub.holdfast(&["host", "list"]));
    assert!(table.lines().count() == 3 && !table.contains('\u{1b}'), "no colours into a pipe: {table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_is_found_by_name_uid_or_vmid() {
    let hub = FakeHub::logged_in().await;
    hub.on("GET /v1/hosts", Reply::Data(json!({ "items": [host("box1", 1), host("box2", 2)] })));
    let (one, two) = (json!([guest("web", 101), guest("db", 102)]), json!([guest("web", 201)]));
    hub.on("GET /v1/hosts/018f3c1e-6b1f-7c1d-9d0a-000000000001", Reply::Data(detail("box1", 1, one.clone())));
    hub.on("GET /v1/hosts/018f3c1e-6b1f-7c1d-9d0a-000000000002", Reply::Data(detail("box2", 2, two)));
    hub.on("GET /v1/hosts/box1", Reply::Data(detail("box1", 1, one)));
    let show = |arguments: &[&str]| hub.holdfast(&[&["guest", "show"], arguments].concat());
    for found in
        [&["db"][..], &["102"], &["018f3c1e-6b1f-7c1d-9d0b-000000000102"], &["web", "--host", "box1"]]
    {
        let output = show(found);
        assert_eq!(output.status.code(), Some(0), "{found:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("box1"), "{found:?}");
    }
    let many = show(&["web"]);
    assert_eq!(many.status.code(), Some(2));
    assert!(stderr(&many).contains("box1, box2"), "{}", stderr(&many));
    assert_eq!(show(&["nobody"]).status.code(), Some(4));
    assert_eq!(hub.holdfast(&["host", "show", "box3"]).status.code(), Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsettled_fields_show_both_values() {
    let hub = FakeHub::logged_in().await;
    let mut web = guest("web", 101);
    web["fields"] = json!([{ "field": "network.mtu", "desired": "1400", "observed": "1400",
        "applied": { "value": "1400", "at": "2026-11-21T11:00:00Z" }, "in_force": "next_start" }]);
    hub.on("GET /v1/hosts/box1", Reply::Data(detail("box1", 1, json!([web]))));
    let shown = stdout(&hub.holdfast(&["guest", "show", "web", "--host", "box1"]));
    assert!(
        shown.contains("network.mtu: document 1400; Proxmox 1400 from its next start; last carried out 1400"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_cannot_reach_another_path() {
    let hub = FakeHub::logged_in().await;
    assert_eq!(hub.holdfast(&["host", "show", "../whoami?x"]).status.code(), Some(4));
    assert_eq!(hub.requests("GET /v1/hosts/..%2Fwhoami%3Fx").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_carries_what_the_operator_compared() {
    let hub = FakeHub::logged_in().await;
    let pin = format!("spki/sha256:{}", "ab".repeat(32));
    let request = "018f3c1e-6b1f-7c1d-9d0a-000000000301";
    let path = format!("POST /v1/enrollment-requests/{request}/approve");
    let view = json!({ "id": request, "claimed_name": "attic", "fingerprint": pin, "first_at": "2026-11-21T02:50:00Z", "state": "approved" });
    hub.on(&path, Reply::Data(view));
    let output = hub.holdfast(&["host", "approve", request, "box9", "--fingerprint", &pin]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let requests = hub.requests(&path);
    assert_eq!(requests[0].body, json!({ "host_name": "box9", "fingerprint": pin }));
    assert!(requests[0].headers.contains_key("idempotency-key"));
    let without = hub.holdfast(&["host", "approve", request, "box9"]);
    assert_eq!(without.status.code(), Some(2), "nobody is let in without a fingerprint");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_has_its_exit_code() {
    let hub = FakeHub::logged_in().await;
    let cases = [
        (403, "FORBIDDEN", 77),
        (403, "FROZEN", 6),
        (409, "NAME_TAKEN", 5),
        (422, "IDEMPOTENCY_MISMATCH", 5),
        (503, "BUSY", 69),
        (400, "RANGE", 1),
    ];
    for (status, code, _) in cases {
        hub.on("POST /v1/invites", Reply::Error(status, code, "says the test"));
    }
    for (_, code, exit) in cases {
        let output = hub.holdfast(&["host", "invite", "box1", "--output", "json"]);
        assert_eq!(output.status.code(), Some(exit), "{code}: {}", stderr(&output));
        let error: Value = serde_json::from_str(&stderr(&output)).unwrap();
        assert_eq!(error["error"]["code"], code);
    }
}
