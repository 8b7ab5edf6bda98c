//! Creating, setting and merging parts.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::operator::DesiredVersion;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Box7, document, guest, policy, target, uid};
use crate::world::World;

/// Each kind: its list, a new part, the path of one that is there, a merge of it, and where that shows in the document.
fn kinds() -> [(&'static str, Value, &'static str, Value, &'static str, Value); 4] {
    let volume = json!({ "name": "logs", "mount": "/srv/logs", "size_gib": 2, "kind": "hot" });
    [
        (
            "guests",
            guest(3),
            "guests/web-2",
            json!({ "size": { "memory_mib": 1024 } }),
            "/guests/1/size/memory_mib",
            json!(1024),
        ),
        (
            "guests/web-1/volumes",
            volume,
            "guests/web-1/volumes/db",
            json!({ "size_gib": 9 }),
            "/guests/0/volumes/0/size_gib",
            json!(9),
        ),
        (
            "storage-targets",
            target("usb3", 3),
            "storage-targets/usb2",
            json!({ "label": "blue" }),
            "/storage/1/label",
            json!("blue"),
        ),
        (
            "policies",
            policy("rare", 2),
            "policies/usual",
            json!({ "tiers": { "local": { "consistency": "application" } } }),
            "/policies/0/tiers/local/consistency",
            json!("application"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_made_set_and_merged_as_a_new_generation() {
    for (list, new, one, patch, pointer, value) in kinds() {
        let box7 = Box7::start().await;
        let body = json!({ "reason": "a new one", "value": new });
        let answer = box7.ask(Method::POST, list, 1, &body).await;
        assert_eq!(answer.headers["etag"], "\"2\"", "{list}");
        let made = Box7::made(answer, StatusCode::CREATED);
        assert_eq!((made.generation.number(), made.name.as_str()), (2, new["name"].as_str().unwrap()));
        assert_eq!((made.author.as_str(), made.reason.as_str()), ("admin", "a new one"));
        let twice: crate::world::Answered<Value> = box7.ask(Method::POST, list, 2, &body).await;
        assert_eq!(twice.code(), ErrorCode::NameTaken, "{list}");
        let body = json!({ "reason": "changed a little", "patch": patch });
        let merged = Box7::made(box7.ask(Method::PATCH, one, 2, &body).await, StatusCode::OK);
        assert_eq!(merged.generation.number(), 3);
        let document = box7.newest_document().await;
        assert_eq!(document.pointer(pointer), Some(&value), "{list}");
        // Set whole, as it was read.
        let view: Value = box7.admin.get(&format!("/v1/hosts/box7/{one}")).await.data(StatusCode::OK);
        let body = json!({ "reason": "as it is", "value": view["desired"]["value"] });
        let set = Box7::made(box7.ask(Method::PUT, one, 3, &body).await, StatusCode::OK);
        assert_eq!((set.generation.number(), set.kind), (4, merged.kind));
        let mut before = document;
        before["generation"] = json!(4);
        assert_eq!(box7.newest_document().await, before, "nothing but the generation");
        let versions: Value = box7.admin.get("/v1/hosts/box7/desired/history").await.data(StatusCode::OK);
        let reasons: Vec<&str> =
            versions["items"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
        assert_eq!(reasons[..3], ["as it is", "changed a little", "a new one"]);
    }
}

/// The same change by its part on one host and by the whole document on another gives the same content.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_and_the_whole_document_give_one_content() {
    for (_, _, one, patch, pointer, value) in kinds() {
        let box7 = Box7::start().await;
        box7.world.enrol("box8").await;
        let body = json!({ "reason": "by its part", "patch": patch });
        Box7::made(box7.ask(Method::PATCH, one, 1, &body).await, StatusCode::OK);
        let mut whole = document(2);
        *whole.pointer_mut(pointer).unwrap_or(&mut json!(null)) = value;
        let version: DesiredVersion =
            box7.admin.put_desired("box8", Some("\"0\""), whole.to_string()).await.data(StatusCode::OK);
        let by_part = box7.newest().await;
        assert_eq!(by_part.content, version.content, "{one}");
        let read = |version: &DesiredVersion| Desired::parse(version.document.as_bytes()).unwrap();
        assert_eq!(read(&by_part), read(&version));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_guest_gets_an_identity_and_a_repeat_finds_it() {
    let world = World::start().await;
    world.enrol("box7").await;
    let admin = world.admin().with("if-match", "\"0\"").with("idempotency-key", "add-1");
    let mut new = guest(1);
    new.as_object_mut().unwrap().remove("uid");
    let body = json!({ "reason": "the first part of all", "value": new });
    let first: Value =
        admin.send(Method::POST, "/v1/hosts/box7/guests", &body).await.data(StatusCode::CREATED);
    let uid = first["value"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(first["generation"], 1, "a document of its own");
    let again: Value =
        admin.send(Method::POST, "/v1/hosts/box7/guests", &body).await.data(StatusCode::CREATED);
    assert_eq!(again, first);
    let other = json!({ "reason": "something else", "value": new });
    let reused = admin.send::<Value>(Method::POST, "/v1/hosts/box7/guests", &other).await;
    assert_eq!(reused.code(), ErrorCode::IdempotencyMismatch);
    let seen = world.admin().get::<Value>(&format!("/v1/hosts/box7/guests/{uid}")).await;
    assert_eq!(seen.data(StatusCode::OK)["name"], "web-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_saw_the_same_one_writes() {
    let box7 = Box7::start().await;
    let patch = |memory: u32| json!({ "reason": "memory", "patch": { "size": { "memory_mib": memory } } });
    Box7::made(box7.ask(Method::PATCH, "guests/web-1", 1, &patch(1024)).await, StatusCode::OK);
    // Another guest, but of the same document: what was in between could matter.
    let late = box7.ask::<Value>(Method::PATCH, "guests/web-2", 1, &patch(2048)).await;
    assert_eq!(late.code(), ErrorCode::PreconditionFailed);
    assert_eq!(late.envelope.error.unwrap().details["current"], "2");
    let unseen = box7.ask::<Value>(Method::PATCH, "guests/web-2", 40, &patch(2048)).await;
    assert_eq!(unseen.code(), ErrorCode::PreconditionFailed);
    let bare = box7.admin.send::<Value>(Method::PATCH, "/v1/hosts/box7/guests/web-2", &patch(1)).await;
    assert_eq!(bare.code(), ErrorCode::PreconditionRequired);
    assert_eq!(box7.newest().await.generation.number(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_changes_nothing() {
    let box7 = Box7::reported().await;
    let patch = |patch: Value| json!({ "reason": "a test", "patch": patch });
    let value = |value: Value| json!({ "reason": "a test", "value": value });
    let cases = [
        (Method::PATCH, "guests/web-9", patch(json!({})), ErrorCode::NotFound),
        (Method::PATCH, "guests/No Name", patch(json!({})), ErrorCode::NotFound),
        (Method::PATCH, "policies/none", patch(json!({})), ErrorCode::NotFound),
        (Method::PATCH, "guests/web-1/volumes/none", patch(json!({})), ErrorCode::NotFound),
        (Method::PATCH, "guests/web-1", patch(json!({ "features": "x" })), ErrorCode::UnknownField),
        (Method::PATCH, "guests/web-1", patch(json!({ "size": { "memory_mib": 1 } })), ErrorCode::Range),
        (Method::PATCH, "guests/web-1", patch(json!({ "size": null })), ErrorCode::Missing),
        (Method::PATCH, "guests/web-1", patch(json!({ "uid": uid(9) })), ErrorCode::Range),
        (Method::PATCH, "guests/web-1", patch(json!({ "policy": "none" })), ErrorCode::PolicyUnknown),
        (Method::PATCH, "guests/web-1", patch(json!({ "name": "web-2" })), ErrorCode::DuplicateName),
        (
            Method::PATCH,
            "guests/web-1",
            patch(json!({ "network": { "address": "10.66.0.12/24" } })),
            ErrorCode::DuplicateAddress,
        ),
        (Method::PATCH, "guests/web-1", patch(json!({ "customer": "umbrella" })), ErrorCode::Unsupported),
        (Method::PATCH, "guests/web-1", json!({ "reason": "x", "patch": {} }), ErrorCode::Range),
        (Method::PATCH, "guests/web-1", json!({ "patch": {} }), ErrorCode::Missing),
        (Method::PATCH, "guests/web-1", json!({ "reason": "a test", "value": {} }), ErrorCode::UnknownField),
        (Method::PATCH, "policies/usual", patch(json!({ "tiers": { "local": null } })), ErrorCode::Range),
        (
            Method::PATCH,
            "storage-targets/usb2",
            patch(json!({ "backend": { "usb": { "uuid": "c2f1a8b0-4a1e-4a53-9b7e-000000000001" } } })),
            ErrorCode::DuplicateTarget,
        ),
        (Method::PUT, "policies/usual", value(policy("other", 1)), ErrorCode::Range),
        (Method::PUT, "policies/other", value(policy("other", 1)), ErrorCode::NotFound),
        (Method::POST, "guests", value(json!("web-3")), ErrorCode::Range),
        (Method::POST, "guests", value(json!({ "name": "web-3" })), ErrorCode::Missing),
        (
            Method::POST,
            "guests/web-9/volumes",
            value(json!({ "name": "x", "mount": "/x", "size_gib": 1, "kind": "hot" })),
            ErrorCode::NotFound,
        ),
        (
            Method::POST,
            "guests/web-1/volumes",
            value(json!({ "name": "x", "mount": "/srv/db", "size_gib": 1, "kind": "hot" })),
            ErrorCode::DuplicateVolume,
        ),
        (Method::POST, "guests?dry_run=perhaps", value(guest(3)), ErrorCode::Range),
        (Method::POST, "guests?on_host=leave", value(guest(3)), ErrorCode::Range),
    ];
    for (method, path, body, code) in cases {
        let refused = box7.ask::<Value>(method, path, 1, &body).await;
        assert_eq!(refused.code(), code, "{path} {body}");
    }
    for twice in [
        r#"{"reason":"a test","patch":{"run":"stopped","run":"running"}}"#,
        r#"{"reason":"a test","reason":"b","patch":{}}"#,
    ] {
        let client = box7.admin.with("if-match", "\"1\"");
        let path = "/v1/hosts/box7/guests/web-1";
        let refused = client.send_bytes::<Value>(Method::PATCH, path, twice.as_bytes().to_vec()).await;
        assert_eq!(refused.code(), ErrorCode::DuplicateKey, "{twice}");
    }
    for (query, kind) in [
        ("limit=0", "guests"),
        ("filter=@state-online", "policies"),
        ("filter=%25%25", "guests"),
        ("x=1", "guests"),
    ] {
        let refused = box7.admin.get::<Value>(&format!("/v1/hosts/box7/{kind}?{query}")).await;
        assert_eq!(refused.code(), ErrorCode::Range, "{kind} {query}");
    }
    assert_eq!(box7.newest().await.generation.number(), 1);
}
