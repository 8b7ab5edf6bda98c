//! Tests of list and show commands.

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

fn host(name: &str, n: u8) -> Value {
    json!({ "id": format!("018f3c1e-6b1f-7c1d-9d0a-0000000000{n:02}"), "name": name, "state": "online", "wanted": 1, "held": 1,
        "guests_running": 1, "guests": 1, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z" })
}

fn on_host(name: &str, n: u8, guest: &Value) -> Value {
    let host = host(name, n);
    json!({ "host_id": host["id"], "host": name, "host_state": "online", "guest": guest })
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
    let (web, db, other) = (guest("web", 101), guest("db", 102), guest("web", 201));
    let webs = [on_host("box1", 1, &web), on_host("box2", 2, &other)];
    hub.on("GET /v1/guests?filter=web&limit=500", Reply::Data(json!({ "items": webs })));
    for text in ["db", "102", "018f3c1e-6b1f-7c1d-9d0b-000000000102"] {
        let items = json!({ "items": [on_host("box1", 1, &db)] });
        hub.on(&format!("GET /v1/guests?filter={text}&limit=500"), Reply::Data(items));
    }
    let on_box1 = json!({ "items": [on_host("box1", 1, &web)] });
    hub.on("GET /v1/guests?host=box1&filter=web&limit=500", Reply::Data(on_box1));
    hub.on("GET /v1/guests?filter=nobody&limit=500", Reply::Data(json!({ "items": [] })));
    hub.on("GET /v1/guests?limit=500", Reply::Data(json!({ "items": webs })));
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
    assert_eq!(show(&["@all"]).status.code(), Some(4), "a filter is no name");
    assert_eq!(hub.holdfast(&["host", "show", "box3"]).status.code(), Some(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_pass_their_filter_on_and_a_wrong_one_asks_nothing() {
    let hub = FakeHub::logged_in().await;
    let stopped = json!({ "items": [on_host("box1", 1, &guest("web", 101))], "next": "x" });
    hub.on("GET /v1/guests?filter=%40run-stopped%2C-%25test%25&limit=500", Reply::Data(stopped));
    let empty = Reply::Data(json!({ "items": [] }));
    hub.on("GET /v1/guests?filter=%40run-stopped%2C-%25test%25&limit=500&cursor=x", empty.clone());
    let output = hub.holdfast(&["guest", "list", "--filter", "@run-stopped,-%test%", "--output", "json"]);
    let guests: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&guests[0]["name"], &guests[0]["host"], &guests[1]),
        (&"web".into(), &"box1".into(), &Value::Null)
    );
    hub.on("GET /v1/hosts?filter=%40label-tier%3Dcanary", empty);
    assert_eq!(hub.holdfast(&["host", "list", "--filter", "@label-tier=canary"]).status.code(), Some(0));
    hub.on("GET /v1/hosts?filter=-%40state-online", Reply::Data(json!({ "items": [] })));
    assert_eq!(hub.holdfast(&["host", "list", "--filter", "-@state-online"]).status.code(), Some(0));
    for wrong in [["guest", "list", "--filter", "@pool-x"], ["host", "list", "--filter", "5000"]] {
        let output = hub.holdfast(&wrong);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("cannot be a part of this filter"), "{}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsettled_fields_show_both_values() {
    let hub = FakeHub::logged_in().await;
    let mut web = guest("web", 101);
    web["fields"] = json!([{ "field": "network.mtu", "desired": "1400", "observed": "1400",
        "applied": { "value": "1400", "at": "2026-11-21T11:00:00Z" }, "in_force": "next_start" }]);
    let items = json!({ "items": [on_host("box1", 1, &web)] });
    hub.on("GET /v1/guests?host=box1&filter=web&limit=500", Reply::Data(items));
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
