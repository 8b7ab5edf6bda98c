//! Tests of `attach_storage` and `detach_storage` at intake.

use holdfast_protocol::code::ErrorCode::{self, Missing, Range, TargetChanged, TargetKind, UnknownField};
use serde_json::{Value, json};

use crate::intake::hand::job;
use crate::intake::store_fixture::{StoreFixture, target};

fn disk(name: &str) -> Value {
    json!({ "name": name, "class": "slow", "role": "local-backup",
        "backend": { "usb": { "uuid": "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a01" } } })
}

fn order(verb: &str, args: &Value) -> String {
    format!("\"target\":{{\"kind\":\"host\"}},\"verb\":\"{verb}\",\"args\":{args}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_approved_under_its_own_name_and_from_what_is_approved() {
    let mut listener = StoreFixture::open().await;
    let attach = |args: Value| order("attach_storage", &args);
    let new = attach(json!({ "to": disk("usb1") }));
    let of_a_guest = format!(
        "\"target\":{},\"verb\":\"attach_storage\",\"args\":{}",
        target(),
        json!({ "to": disk("usb1") })
    );
    let cases: [(&str, String, ErrorCode); 7] = [
        ("under another name", attach(json!({ "from": disk("usb2"), "to": disk("usb1") })), Range),
        (
            "in place of what is not there",
            attach(json!({ "from": disk("usb1"), "to": disk("usb1") })),
            TargetChanged,
        ),
        ("nothing", attach(json!({})), Missing),
        ("by force", attach(json!({ "to": disk("usb1"), "force": true })), UnknownField),
        ("of a guest", of_a_guest, TargetKind),
        (
            "let go, and not there",
            order("detach_storage", &json!({ "from": disk("usb1"), "to": "disconnected" })),
            TargetChanged,
        ),
        ("let go, and nothing named", order("detach_storage", &json!({ "to": "disconnected" })), Missing),
    ];
    for (name, bad, code) in cases {
        let (id, payload) = listener.payload(&bad).await;
        let blob = job(payload.as_bytes(), &[&listener.alice]);
        listener.refuses(name, id, &blob, code).await;
        let (id, payload) = listener.payload(&new).await;
        let outcome = listener.leave(id, &job(payload.as_bytes(), &[&listener.alice])).await;
        assert!(matches!(outcome, agent_store::job_intake::Outcome::Taken), "{name}: {outcome:?}");
    }
}
