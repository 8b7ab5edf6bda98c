//! Removal: only what nothing uses, and what the host does not have.

use holdfast_protocol::code::ErrorCode;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Box7;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_is_refused_with_its_users() {
    let box7 = Box7::start().await;
    for (path, user) in [
        ("policies/usual", "guest web-1 (policy)"),
        ("storage-targets/usb1", "policy usual (tiers.local.target)"),
    ] {
        let refused =
            box7.ask::<Value>(Method::DELETE, &format!("{path}?reason=tidy%20up"), 1, &Value::Null).await;
        assert_eq!(refused.code(), ErrorCode::InUse, "{path}");
        assert_eq!(refused.envelope.error.unwrap().details["users"], user);
    }
    // In the order of use, all of them go.
    let patch = json!({ "reason": "no policy", "patch": { "policy": null } });
    Box7::made(box7.ask(Method::PATCH, "guests/web-1", 1, &patch).await, StatusCode::OK);
    for (seen, path) in [
        (2, "policies/usual"),
        (3, "storage-targets/usb1"),
        (4, "guests/web-1/volumes/db"),
        (5, "guests/web-1"),
    ] {
        let answer = box7.ask(Method::DELETE, &format!("{path}?reason=tidy%20up"), seen, &Value::Null).await;
        let removed = Box7::made(answer, StatusCode::OK);
        assert_eq!((removed.generation.number(), removed.value), (seen + 1, None), "{path}");
        let path = format!("{path}?reason=tidy%20up");
        let again = box7.ask::<Value>(Method::DELETE, &path, seen + 1, &Value::Null).await;
        assert_eq!(again.code(), ErrorCode::NotFound, "{path}");
    }
    let document = box7.newest_document().await;
    assert_eq!((document["guests"].as_array().unwrap().len(), document.get("policies")), (1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_has_stays_unless_it_is_left_there() {
    let box7 = Box7::reported().await;
    let remove = |path: &str, seen: u64| {
        let (path, box7) = (format!("{path}reason=tidy%20up"), &box7);
        async move { box7.ask::<Value>(Method::DELETE, &path, seen, &Value::Null).await }
    };
    for path in [
        "guests/web-1?",
        "guests/web-1/volumes/db?",
        "guests/web-1?dry_run=true&",
        "guests/web-1?on_host=refuse&",
    ] {
        let refused = remove(path, 1).await;
        assert_eq!(refused.code(), ErrorCode::OnHost, "{path}");
        let problem = refused.envelope.error.unwrap();
        assert!(problem.message.contains("Nothing was removed: "), "{problem}");
    }
    let refused = remove("guests/web-1?", 1).await.envelope.error.unwrap();
    assert!(refused.message.contains("`holdfast guest remove box7 web-1 --leave`"), "{refused}");
    assert_eq!(refused.details["state"], "VMID 301");
    // One that was not made yet simply goes.
    let gone = remove("guests/web-2?", 1).await.data(StatusCode::OK);
    assert_eq!((&gone["name"], &gone["generation"]), (&json!("web-2"), &json!(2)));
    let left = remove("guests/web-1?on_host=leave&", 2).await.data(StatusCode::OK);
    assert_eq!(left["generation"], 3);
    // It is shown as what it is then.
    let view: Value = box7.admin.get("/v1/hosts/box7/guests/web-1").await.data(StatusCode::OK);
    assert_eq!((&view["state"], view.get("desired")), (&json!("unnamed"), None));
    let policies = remove("policies/usual?", 3).await.data(StatusCode::OK);
    assert_eq!(policies["generation"], 4);
    let mounted = remove("storage-targets/usb1?", 4).await;
    assert_eq!(mounted.code(), ErrorCode::OnHost);
    let words = mounted.envelope.error.unwrap().message;
    assert!(words.contains("`holdfast storage set box7 usb1 state=decommissioned`"), "{words}");
    remove("storage-targets/usb2?", 4).await.data(StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_says_why_and_is_known_by_its_key() {
    let box7 = Box7::start().await;
    let bare = box7.ask::<Value>(Method::DELETE, "guests/web-2", 1, &Value::Null).await;
    assert_eq!(bare.code(), ErrorCode::Missing);
    let client = box7.admin.with("if-match", "\"1\"").with("idempotency-key", "rm-1");
    let path = "/v1/hosts/box7/guests/web-2?reason=not%20needed";
    let first = client.send_bytes::<Value>(Method::DELETE, path, Vec::new()).await.data(StatusCode::OK);
    assert_eq!(first["reason"], "not needed");
    let again = client.send_bytes::<Value>(Method::DELETE, path, Vec::new()).await.data(StatusCode::OK);
    assert_eq!(again, first);
    let other = "/v1/hosts/box7/guests/web-2?reason=another%20reason";
    let reused = client.send_bytes::<Value>(Method::DELETE, other, Vec::new()).await;
    assert_eq!(reused.code(), ErrorCode::IdempotencyMismatch);
}
