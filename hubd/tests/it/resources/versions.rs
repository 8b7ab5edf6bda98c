//! Versions of a document: one of them, differences, rollback.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::DesiredVersion;
use holdfast_protocol::resource::DocumentDiff;
use holdfast_protocol::resource::requests::ChangePreview;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Box7, document};

async fn three_versions() -> Box7 {
    let box7 = Box7::start().await;
    for (seen, memory) in [(1, 1024), (2, 2048)] {
        let patch =
            json!({ "reason": format!("memory {memory}"), "patch": { "size": { "memory_mib": memory } } });
        Box7::made(box7.ask(Method::PATCH, "guests/web-1", seen, &patch).await, StatusCode::OK);
    }
    box7
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_read_and_two_are_compared() {
    let box7 = three_versions().await;
    let second: DesiredVersion =
        box7.admin.get("/v1/hosts/box7/desired/history/2").await.data(StatusCode::OK);
    assert_eq!((second.generation.number(), second.reason.as_str()), (2, "memory 1024"));
    for missing in ["0", "4", "x", "-1"] {
        let answer = box7.admin.get::<Value>(&format!("/v1/hosts/box7/desired/history/{missing}")).await;
        assert_eq!(answer.code(), ErrorCode::NotFound, "{missing}");
    }
    let memory = |diff: DocumentDiff| -> Vec<(Option<String>, Option<String>)> {
        let changes = diff.changed.into_iter().flat_map(|guest| guest.changes);
        changes.map(|change| (change.before, change.after)).collect()
    };
    let sides = |before: &str, after: &str| vec![(Some(before.to_owned()), Some(after.to_owned()))];
    for (query, expected) in [
        ("", sides("1024", "2048")),
        ("?from=1", sides("512", "2048")),
        ("?to=2", sides("512", "1024")),
        ("?from=3&to=1", sides("2048", "512")),
        ("?from=2&to=2", vec![]),
    ] {
        let diff = box7.admin.get(&format!("/v1/hosts/box7/desired/diff{query}")).await.data(StatusCode::OK);
        assert_eq!(memory(diff), expected, "{query}");
    }
    let first: DocumentDiff =
        box7.admin.get("/v1/hosts/box7/desired/diff?from=0&to=1").await.data(StatusCode::OK);
    assert_eq!((first.from.number(), first.added.len()), (0, 2));
    for (query, code) in
        [("?from=9", ErrorCode::NotFound), ("?to=9", ErrorCode::NotFound), ("?from=x", ErrorCode::Range)]
    {
        let answer = box7.admin.get::<Value>(&format!("/v1/hosts/box7/desired/diff{query}")).await;
        assert_eq!(answer.code(), code, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_a_new_generation_with_the_old_content() {
    let box7 = three_versions().await;
    let body = json!({ "reason": "it did not help", "to": 1 });
    let preview: ChangePreview =
        box7.ask(Method::POST, "desired/rollback?dry_run=true", 3, &body).await.data(StatusCode::OK);
    assert_eq!((preview.diff.from.number(), preview.diff.to.number()), (3, 4));
    let answer = box7.ask::<DesiredVersion>(Method::POST, "desired/rollback", 3, &body).await;
    assert_eq!(answer.headers["etag"], "\"4\"");
    let version = answer.data(StatusCode::OK);
    assert_eq!((version.generation.number(), version.reason.as_str()), (4, "it did not help"));
    let mut expected = document(4);
    expected["guests"][0]["policy"] = json!("usual");
    let read = |text: &str| holdfast_protocol::desired::Desired::parse(text.as_bytes()).unwrap();
    assert_eq!(read(&version.document), read(&expected.to_string()));
    for (seen, to, code) in [(4, 9, ErrorCode::NotFound), (3, 1, ErrorCode::PreconditionFailed)] {
        let body = json!({ "reason": "another", "to": to });
        let refused = box7.ask::<Value>(Method::POST, "desired/rollback", seen, &body).await;
        assert_eq!(refused.code(), code, "{seen} {to}");
    }
}

/// What a document may not do, a rollback may not do either.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_held_to_the_same_checks() {
    let box7 = Box7::reported().await;
    let mut other = document(2);
    other["guests"][1]["golden"] = json!("2026.12.1");
    let put = box7.admin.put_desired::<DesiredVersion>("box7", Some("\"1\""), other.to_string()).await;
    put.data(StatusCode::OK);
    // The second guest is made meanwhile, from the newer image.
    let guests = json!([{ "uid": super::uid(2), "name": "web-2", "vmid": 302, "status": "managed", "run": "running",
        "golden": "2026.12.1" }]);
    let sections = holdfast_protocol::report::Sections {
        guests: serde_json::from_value(guests).unwrap(),
        ..Default::default()
    };
    box7.host.check_in(&box7.host.changed(3, 2, sections), "0s").await.data(StatusCode::OK);
    let body = json!({ "reason": "back to the old image", "to": 1 });
    for path in ["desired/rollback", "desired/rollback?dry_run=true"] {
        let refused = box7.ask::<Value>(Method::POST, path, 2, &body).await;
        assert_eq!(refused.code(), ErrorCode::Unsupported, "{path}");
        assert_eq!(refused.envelope.error.unwrap().details["path"], "guests[1].golden");
    }
    assert_eq!(box7.newest().await.generation.number(), 2);
}
