//! Parts as desired, reported and last applied, and lists of them.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::Page;
use holdfast_protocol::report::Sections;
use holdfast_protocol::resource::view::{PartState, PartView};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Box7, uid};

async fn list(box7: &Box7, path: &str) -> Page<PartView> {
    box7.admin.get(&format!("/v1/hosts/box7/{path}")).await.data(StatusCode::OK)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_shows_its_three_states() {
    let box7 = Box7::reported().await;
    let path = format!("/v1/hosts/box7/guests/{}", uid(1));
    let answer = box7.admin.get::<PartView>(&path).await;
    assert_eq!(answer.headers["etag"], "\"1\"");
    let view = answer.data(StatusCode::OK);
    assert_eq!((view.state, view.name.as_str(), view.differences.len()), (PartState::Settled, "web-1", 0));
    assert_eq!(view.desired.unwrap().generation.number(), 1);
    assert_eq!((view.current.unwrap().age_s, view.last_applied.unwrap().generation.number()), (0, 1));
    // More memory: the host has not taken it.
    let patch = json!({ "reason": "more memory", "patch": { "size": { "memory_mib": 1024 } } });
    Box7::made(box7.ask(Method::PATCH, "guests/web-1", 1, &patch).await, StatusCode::OK);
    let view: Value = box7.admin.get(&path).await.data(StatusCode::OK);
    assert_eq!(view["state"], "differs");
    let paths: Vec<&str> =
        view["differences"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["generation", "size.memory_mib"]);
    // The host took it, and says when it carried it out last; one field is not settled yet.
    let field = json!({ "field": "size.memory_mib", "desired": "1024 MiB", "observed": "512 MiB",
        "applied": { "value": "512 MiB", "at": "2026-11-21T01:00:00Z" } });
    let guests = json!([{ "uid": uid(1), "name": "web-1", "vmid": 301, "status": "managed", "run": "running",
        "golden": "2026.11.1", "fields": [field] }]);
    let sections = Sections { guests: serde_json::from_value(guests).unwrap(), ..Sections::default() };
    box7.host.check_in(&box7.host.changed(3, 2, sections), "0s").await.data(StatusCode::OK);
    box7.world.clock.advance(7);
    let view: Value = box7.admin.get(&path).await.data(StatusCode::OK);
    assert_eq!(
        view["differences"],
        json!([{ "path": "size.memory_mib", "desired": "1024 MiB", "current": "512 MiB" }])
    );
    assert_eq!(
        (&view["last_applied"]["generation"], &view["last_applied"]["at"]),
        (&json!(2), &json!("2026-11-21T01:00:00Z"))
    );
    assert_eq!(view["last_applied"]["fields"][0]["applied"]["value"], "512 MiB");
    assert_eq!(view["current"]["age_s"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_has_its_state() {
    let box7 = Box7::reported().await;
    let states = |page: Page<PartView>| -> Vec<(String, PartState)> {
        page.items.into_iter().map(|view| (view.name, view.state)).collect()
    };
    let named = |list: &[(&str, PartState)]| -> Vec<(String, PartState)> {
        list.iter().map(|(name, state)| ((*name).to_owned(), *state)).collect()
    };
    assert_eq!(
        states(list(&box7, "guests").await),
        named(&[("old", PartState::Unnamed), ("web-1", PartState::Settled), ("web-2", PartState::Differs)])
    );
    let targets = list(&box7, "storage-targets").await;
    // The host names its backend in other words here, which is a difference.
    assert_eq!(targets.items[0].differences[0].path, "backend");
    assert_eq!(targets.items[0].used_by[0].of, "policy usual");
    assert_eq!(targets.items[1].state, PartState::Unreported);
    let policies = list(&box7, "policies").await;
    assert_eq!((policies.items[0].state, policies.items[0].used_by.len()), (PartState::Settled, 1));
    assert_eq!(states(list(&box7, "guests/web-1/volumes").await), named(&[("db", PartState::Unreported)]));
    for path in [
        "guests/none/volumes",
        "guests/web-9",
        "policies/none",
        "storage-targets/none",
        "guests/web-1/volumes/no",
    ] {
        let missing = box7.admin.get::<Value>(&format!("/v1/hosts/box7/{path}")).await;
        assert_eq!(missing.code(), ErrorCode::NotFound, "{path}");
    }
    assert_eq!(
        box7.world.anyone().get::<Value>("/v1/hosts/box7/guests").await.code(),
        ErrorCode::Unauthenticated
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages_and_by_filter() {
    let box7 = Box7::reported().await;
    let (mut names, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let more = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page = list(&box7, &format!("guests?limit=1{more}")).await;
        names.extend(page.items.iter().map(|view| view.name.clone()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(names, ["old", "web-1", "web-2"]);
    for (filter, expected) in [
        ("web%25", vec!["web-1", "web-2"]),
        ("@status-absent", vec!["web-2"]),
        ("301", vec!["web-1"]),
        ("@host-box8", vec![]),
    ] {
        let page = list(&box7, &format!("guests?filter={filter}")).await;
        let found: Vec<&str> = page.items.iter().map(|view| view.name.as_str()).collect();
        assert_eq!(found, expected, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_reads_and_does_not_change() {
    let box7 = Box7::start().await;
    let request = json!({ "name": "eve", "role": "viewer", "days": 5 });
    let made: Value =
        box7.admin.send(Method::POST, "/v1/operators", &request).await.data(StatusCode::CREATED);
    let viewer = box7.world.with_token(made["token"].as_str().unwrap()).with("if-match", "\"1\"");
    assert_eq!(
        viewer.get::<Page<PartView>>("/v1/hosts/box7/policies").await.data(StatusCode::OK).items.len(),
        1
    );
    let patch = json!({ "reason": "a try", "patch": { "run": "stopped" } });
    for path in ["guests/web-1", "guests/web-1?dry_run=true"] {
        let refused = viewer.send::<Value>(Method::PATCH, &format!("/v1/hosts/box7/{path}"), &patch).await;
        assert_eq!(refused.code(), ErrorCode::Forbidden, "{path}");
    }
}
