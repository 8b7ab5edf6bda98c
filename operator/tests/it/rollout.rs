//! Tests of `holdfast rollout`, and of `holdfast host label` and `host window`.

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, Reply, stderr, stdout};

fn view(state: &str, more: &Value) -> Value {
    let mut view = json!({
        "number": 1, "version": "2026.12.0", "state": state, "by": "ada", "at": "2026-11-27T12:00:00Z",
        "waves": [{ "hosts": [{ "host": "box1", "state": "waiting" }], "max_failures": 0, "soak_s": 60, "timeout_s": 600 }]
    });
    if let (Some(view), Some(more)) = (view.as_object_mut(), more.as_object()) {
        view.extend(more.clone());
    }
    view
}

fn host(name: &str, labels: &Value) -> Value {
    json!({ "id": "018f3c1e-6b1f-7c1d-9d0a-0000000000f1", "name": name, "state": "online", "wanted": 1, "held": 1,
        "guests_running": 0, "guests": 0, "attention": 0, "certificate_ends_at": "2026-12-20T00:00:00Z", "labels": labels })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_has_waves_by_label_windows_dates_and_a_rate() {
    let hub = FakeHub::logged_in().await;
    hub.on("POST /v1/rollouts", Reply::Data(view("planned", &json!({}))));
    let output = hub.holdfast(&[
        "rollout",
        "plan",
        "2026.12.0",
        "--wave",
        "label=tier=canary+site=vienna,failures=0,soak=1h,timeout=4h",
        "--wave",
        "rest,failures=2,soak=0s,timeout=1d",
        "--window",
        "MON-fri 20:00-04:00 Europe/Vienna",
        "--window",
        "sat,sun 00:00-00:00 UTC",
        "--not",
        "2026-12-24..2027-01-02 Europe/Vienna",
        "--per-hour",
        "10",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("`holdfast rollout start 1` begins"), "{}", stdout(&output));
    let sent = &hub.requests("POST /v1/rollouts")[0];
    assert!(sent.headers.contains_key("idempotency-key"));
    let wave = |hosts: Value, failures: u32, soak: u32, timeout: u32| json!({ "hosts": hosts, "max_failures": failures, "soak_s": soak, "timeout_s": timeout });
    let labelled = json!({ "labelled": { "site": "vienna", "tier": "canary" } });
    assert_eq!(
        sent.body,
        json!({
            "version": "2026.12.0",
            "waves": [wave(labelled, 0, 3_600, 14_400), wave(json!("rest"), 2, 0, 86_400)],
            "times": {
                "windows": ["mon-fri 20:00-04:00 Europe/Vienna", "sat,sun 00:00-00:00 UTC"],
                "not": ["2026-12-24..2027-01-02 Europe/Vienna"],
                "per_hour": 10
            }
        })
    );
    let wave = "rest,failures=2,soak=0s,timeout=1d";
    let back = ["rollout", "plan", "2026.12.0", "--wave", wave, "--on-failure", "roll-back=2026.12.1"];
    assert_eq!(hub.holdfast(&back).status.code(), Some(0));
    assert_eq!(hub.requests("POST /v1/rollouts")[1].body["on_failure"], json!({ "roll_back": "2026.12.1" }));
    let guests = ["rollout", "plan", "2026.12.0", "--wave", wave, "--subject", "guest-agent"];
    assert_eq!(hub.holdfast(&guests).status.code(), Some(0));
    assert_eq!(hub.requests("POST /v1/rollouts")[2].body["subject"], "guest_agent");
    let images = ["rollout", "plan", "2026.12.0", "--wave", wave, "--subject", "golden"];
    assert_eq!(hub.holdfast(&images).status.code(), Some(0));
    assert_eq!(hub.requests("POST /v1/rollouts")[3].body["subject"], "golden");
    for wrong in [
        ["--window", "at night"],
        ["--window", "mon 20:00-20:30 UTC"],
        ["--not", "christmas"],
        ["--per-hour", "0"],
        ["--on-failure", "roll-back"],
        ["--wave", "label=tier,failures=2,soak=0s,timeout=1d"],
    ] {
        let refused = hub.holdfast(&["rollout", "plan", "2026.12.0", "--wave", wave, wrong[0], wrong[1]]);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {}", stderr(&refused));
    }
    assert_eq!(hub.requests("POST /v1/rollouts").len(), 4, "what is wrong is not sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_leaves_trials_alone_unless_they_are_taken_back() {
    let hub = FakeHub::logged_in().await;
    let (pause, take_back) = ("POST /v1/rollouts/1/pause", "POST /v1/rollouts/1/take-back");
    for path in [pause, take_back] {
        hub.on(path, Reply::Data(view("paused", &json!({}))));
    }
    let asked = || (hub.requests(pause).len(), hub.requests(take_back).len());
    assert_eq!(hub.holdfast(&["rollout", "pause", "1"]).status.code(), Some(0));
    assert_eq!(asked(), (1, 0));
    assert_eq!(hub.holdfast(&["rollout", "pause", "1", "--take-back"]).status.code(), Some(0));
    assert_eq!(asked(), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_says_who_is_next_and_ends_with_an_error_when_it_is_held() {
    let hub = FakeHub::logged_in().await;
    let wait = json!({ "why": "host_window", "until": "2026-12-01T19:00:00Z" });
    let waiting = json!([{ "hosts": [{ "host": "box1", "state": "waiting", "wait": wait }],
        "max_failures": 0, "soak_s": 60, "timeout_s": 600 }]);
    let open = json!({ "number": 1, "opened_at": "2026-11-27T12:00:00Z" });
    hub.on("GET /v1/rollouts/1", Reply::Data(view("running", &json!({ "open": open, "waves": waiting }))));
    hub.on(
        "GET /v1/rollouts/1",
        Reply::Data(view("held", &json!({ "open": open, "reason": "box1 failed" }))),
    );
    let output = hub.holdfast(&["rollout", "watch", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let said = stderr(&output);
    for part in [
        "wave 1 of 1, 0 of 1 hosts done, 0 failed; next is box1: its window opens Tue 2026-12-01 19:00Z",
        "rollout 1 is held, and nothing is offered: box1 failed",
        "holdfast rollout abort 1",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_set_and_removed_and_select_hosts_for_windows() {
    let hub = FakeHub::logged_in().await;
    hub.on("POST /v1/hosts/box1/labels", Reply::Data(host("box1", &json!({ "tier": "canary" }))));
    let output = hub.holdfast(&["host", "label", "box1", "tier=canary", "site-"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("tier=canary"), "{}", stdout(&output));
    let sent = &hub.requests("POST /v1/hosts/box1/labels")[0];
    assert_eq!(sent.body, json!({ "set": { "tier": "canary" }, "remove": ["site"] }));
    for wrong in [&["tier=a", "tier=b"][..], &["tier-", "tier-"], &["tier"], &["Tier=a"], &[]] {
        let refused = hub.holdfast(&[&["host", "label", "box1"], wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {}", stderr(&refused));
    }
    assert_eq!(hub.requests("POST /v1/hosts/box1/labels").len(), 1);

    let hosts = [host("box1", &json!({ "customer": "acme" })), host("box2", &json!({}))];
    hub.on("GET /v1/hosts", Reply::Data(json!({ "items": hosts, "next": null })));
    let put = "PUT /v1/hosts/018f3c1e-6b1f-7c1d-9d0a-0000000000f1/update-windows";
    hub.on(put, Reply::Data(hosts[0].clone()));
    let window = ["host", "window", "--label", "customer=acme", "--window", "sun 01:00-05:00 UTC"];
    let unasked = hub.holdfast(&window);
    assert_eq!(unasked.status.code(), Some(2), "without a terminal it wants --yes: {}", stderr(&unasked));
    let output = hub.holdfast(&[&window[..], &["--yes"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(hub.requests(put).len(), 1, "box2 has no such label");
    assert_eq!(hub.requests(put)[0].body, json!({ "windows": ["sun 01:00-05:00 UTC"] }));
    let none = hub.holdfast(&["host", "window", "--label", "customer=none", "--any-time"]);
    assert_eq!(none.status.code(), Some(4), "{}", stderr(&none));
}
