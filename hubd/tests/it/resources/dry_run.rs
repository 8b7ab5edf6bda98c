//! Dry runs: judged as the change would be, and nothing is written.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::job::act::Verb;
use holdfast_protocol::resource::effects::EffectKind;
use holdfast_protocol::resource::requests::ChangePreview;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Box7, document, guest, policy};
use crate::rows::{Row, rows};

fn all_rows(box7: &Box7) -> Vec<Row> {
    rows(&box7.world.folder.join("hub.db"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_every_change_writes_nothing() {
    let box7 = Box7::reported().await;
    box7.host.check_in(&box7.host.changed(3, 1, Default::default()), "0s").await.data(StatusCode::OK);
    let before = all_rows(&box7);
    assert_eq!(before.iter().filter(|(table, _)| table == "desired").count(), 1);
    let whole = json!({ "reason": "a dry run", "document": document(2).to_string() });
    let value = |value: Value| json!({ "reason": "a dry run", "value": value });
    let patch = json!({ "reason": "a dry run", "patch": { "size": { "cores": 4 } } });
    let calls = [
        (Method::PUT, "desired?dry_run=true", whole),
        (Method::POST, "guests?dry_run=true", value(guest(3))),
        (Method::PUT, "guests/web-2?dry_run=true", value(guest(2))),
        (Method::PATCH, "guests/web-1?dry_run=true", patch),
        (Method::PUT, "policies/usual?dry_run=true", value(policy("usual", 3))),
        (Method::DELETE, "guests/web-2?dry_run=true&reason=a%20dry%20run", Value::Null),
        (Method::DELETE, "guests/web-1?dry_run=true&on_host=leave&reason=a%20dry%20run", Value::Null),
        (Method::POST, "desired/rollback?dry_run=true", json!({ "reason": "a dry run", "to": 1 })),
    ];
    for (method, path, body) in calls {
        let client = box7.admin.with("if-match", "\"1\"").with("idempotency-key", "dry-1");
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer =
            client.send_bytes::<ChangePreview>(method, &format!("/v1/hosts/box7/{path}"), bytes).await;
        assert!(answer.headers.get("etag").is_none(), "{path}: nothing was put");
        let preview = answer.data(StatusCode::OK);
        assert_eq!((preview.host.as_str(), preview.diff.to.number()), ("box7", 2), "{path}");
    }
    assert_eq!(all_rows(&box7), before);
    // The same table sees a change that is made.
    let patch = json!({ "reason": "a real one", "patch": { "size": { "cores": 4 } } });
    Box7::made(box7.ask(Method::PATCH, "guests/web-1", 1, &patch).await, StatusCode::OK);
    assert_ne!(all_rows(&box7), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_would_be_done_and_what_waits() {
    let box7 = Box7::reported().await;
    let judge = |path: &'static str, body: Value| {
        let box7 = &box7;
        async move { box7.ask::<ChangePreview>(Method::PATCH, path, 1, &body).await.data(StatusCode::OK) }
    };
    let patch = |patch: Value| json!({ "reason": "a dry run", "patch": patch });
    let bigger = patch(json!({ "size": { "memory_mib": 1024, "rootfs_gib": 16 }, "run": "stopped" }));
    let preview = judge("guests/web-1?dry_run=true", bigger).await;
    let fields: Vec<_> = preview.diff.changed[0].changes.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(fields, ["run", "size.memory_mib", "size.rootfs_gib"]);
    let kinds: Vec<EffectKind> = preview.effects.iter().map(|one| one.effect).collect();
    assert_eq!(kinds, [EffectKind::Stop, EffectKind::Reconfigure, EffectKind::Grow]);
    assert!(preview.signatures.is_empty() && !preview.not_judged.is_empty() && preview.reported_at.is_some());
    let fewer = judge(
        "policies/usual?dry_run=true",
        patch(json!({ "tiers": { "local": { "retention": { "keep": { "last": 2 } } } } })),
    )
    .await;
    assert_eq!(fewer.diff.weaker[0].guest.name.as_str(), "web-1");
    assert_eq!(fewer.signatures[0].verb, Verb::LoosenPolicy);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_refuses_what_the_change_would() {
    let box7 = Box7::reported().await;
    let patch = |patch: Value| json!({ "reason": "a dry run", "patch": patch });
    for (seen, patch, code) in [
        (0, patch(json!({})), ErrorCode::NotFound),
        (7, patch(json!({})), ErrorCode::PreconditionFailed),
        (1, patch(json!({ "customer": "umbrella" })), ErrorCode::Unsupported),
        (1, patch(json!({ "policy": "none" })), ErrorCode::PolicyUnknown),
    ] {
        let real = box7.ask::<Value>(Method::PATCH, "guests/web-1", seen, &patch).await;
        let dry = box7.ask::<Value>(Method::PATCH, "guests/web-1?dry_run=true", seen, &patch).await;
        assert_eq!((real.code(), dry.code()), (code, code), "{patch}");
        assert_eq!(real.envelope.error.unwrap().message, dry.envelope.error.unwrap().message);
    }
    let stale = json!({ "reason": "a dry run", "document": document(1).to_string().replace("512", "768") });
    let dry = box7.ask::<Value>(Method::PUT, "desired?dry_run=true", 1, &stale).await;
    assert_eq!(dry.code(), ErrorCode::GenerationConflict);
}
